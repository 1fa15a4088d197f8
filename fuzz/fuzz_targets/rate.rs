//! Any text as a rate: a rate that reads back as itself, or a fault inside the text.
//!
//! Run with `cargo +nightly fuzz run rate`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate::Rate;

fuzz_target!(|text: &str| {
    match text.parse::<Rate>() {
        Ok(rate) => assert_eq!(rate.to_string().parse::<Rate>(), Ok(rate), "{text:?} as {rate}"),
        Err(error) => assert!((1..=text.chars().count() + 1).contains(&error.column), "{text:?}: {error:?}"),
    }
});
