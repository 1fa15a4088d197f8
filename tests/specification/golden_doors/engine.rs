//! The engine, called as a library.

use tidegate_testkit::{EngineDoor, golden};

#[tokio::test]
async fn the_engine_answers_every_row() {
    let rows = golden::load().unwrap();
    let report = golden::run(&rows, EngineDoor::FIELDS, async |engine| EngineDoor(engine)).await;
    let report = report.unwrap_or_else(|failures| panic!("{failures}"));
    assert_eq!(report.rows, rows.len());
    println!("{report:?}");
}
