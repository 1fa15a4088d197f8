use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::{Server, Settings};

/// Waits for what should happen; a test fails when it has not happened in this time.
const PATIENCE: Duration = Duration::from_secs(30);

const LIMITS: &str = "limits: [{name: all, per: [], rate: 5/h}]";

/// As on a mount that is gone.
fn stalls(_: &Path) -> file::Reading {
    loop {
        std::thread::park();
    }
}

#[test]
fn a_reading_that_never_ends_does_not_hold_up_the_end() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limits.yaml");
        std::fs::write(&path, LIMITS).unwrap();
        let (file, loaded) = LimitsFile::open(&path).unwrap();
        let free = || Some("127.0.0.1:0".to_owned());
        let settings = Settings { listen: free(), admin: free(), file: Some(file.read_by(stalls)), ..Settings::new() };
        let server = Server::bind(loaded.policy, settings).await.unwrap();
        let reloads = server.reloads().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(server.run(async {
            let _ = stopped.await;
        }));
        let mut asked = tokio::spawn(async move { reloads.reload(Cause::Signal).await });
        let early = tokio::time::timeout(Duration::from_millis(300), &mut asked).await;
        assert!(early.is_err(), "the file is being read");
        stop.send(()).unwrap();
        tokio::time::timeout(PATIENCE, running).await.expect("the server ends").unwrap();
        let told = tokio::time::timeout(PATIENCE, asked).await.expect("whoever asked is told").unwrap();
        assert_eq!(told, Err(ReloadError::Busy));
    });
    // The thread that reads is never done.
    runtime.shutdown_background();
}

/// How often a file was read that fails the first times.
static READ: AtomicUsize = AtomicUsize::new(0);

#[tokio::test]
async fn what_passes_is_tried_again_and_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limits.yaml");
    std::fs::write(&path, LIMITS).unwrap();
    let (file, loaded) = LimitsFile::open(&path).unwrap();
    // As where too many files are open, say: nothing about the file itself changes.
    let file = file.read_by(|path| match READ.fetch_add(1, Ordering::Relaxed) {
        0..3 => (tidegate::config::load(&path.join("none")), Vec::new()),
        _ => (tidegate::config::load(path), Vec::new()),
    });
    let free = || Some("127.0.0.1:0".to_owned());
    let settings = Settings { listen: free(), admin: free(), file: Some(file), ..Settings::new() };
    let server = Server::bind(loaded.policy, settings).await.unwrap();
    let (reloads, shared) = (server.reloads().unwrap(), Arc::clone(server.shared()));
    let running = tokio::spawn(server.run(std::future::pending()));
    let told = reloads.reload(Cause::Signal).await.unwrap_err();
    assert!(told.to_string().contains("cannot be read"), "{told}");
    let counts = || {
        let text = shared.metrics.encode().unwrap();
        let count = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        ["tidegate_limits_file_refused", "tidegate_reloads_total{result=\"failure\"}"].map(|name| count(name).unwrap())
    };
    assert_eq!(counts(), [1, 1]);
    let good = async {
        while counts()[0] == 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, good).await.expect("it is read again by itself");
    assert_eq!(READ.load(Ordering::Relaxed), 4);
    assert_eq!(counts(), [0, 1], "the same fault three times is told once");
    running.abort();
}
