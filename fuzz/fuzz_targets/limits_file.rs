//! Any bytes as a limits file: an answer, never a panic, and an answer that can be shown.
//!
//! Run with `cargo +nightly fuzz run limits_file`; `examples/` makes a good first corpus.
#![no_main]

use std::io;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tidegate::config::{self, Lookup, Source};

/// An environment with one variable and one file, so that references are followed and nothing of
/// the machine is read.
struct Fixed;

impl Lookup for Fixed {
    fn variable(&self, name: &str) -> io::Result<Option<String>> {
        Ok((name == "A").then(|| "60/min".to_owned()))
    }

    fn file(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
        if path == Path::new("/a") { Ok(vec![b'a'; bytes_max.min(8)]) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

fuzz_target!(|bytes: &[u8]| {
    match config::parse_bytes(bytes, &Source::with_lookup("limits.yaml", Fixed)) {
        Ok(loaded) => {
            // What was accepted can be decided by.
            let engine = tidegate::Engine::new(loaded.policy);
            drop(engine);
        }
        Err(faults) => {
            assert!(!faults.faults.is_empty());
            assert!(!faults.with_snippets().is_empty());
        }
    }
});
