//! Ports that stay free for a server while it is down.

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

/// A port of 127.0.0.1 that nothing else of the tests takes as long as this lives.
///
/// It lies below those that the system gives to outgoing connections. A port among those could be
/// given away while its server is restarted; and a client that connects again and again to a
/// server that is down would at some time be given that very port, and so be connected to itself.
#[derive(Debug)]
pub(super) struct Port {
    number: u16,
    /// Locked against other test processes; the lock ends with this one.
    _lock: File,
}

impl Port {
    /// A port that is free now.
    ///
    /// # Panics
    /// If there is none in a thousand.
    #[track_caller]
    pub(super) fn reserve() -> Self {
        let range = candidates();
        let width = u64::from(range.end - range.start);
        let folder = std::env::temp_dir().join("tidegate-test-ports");
        fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
        for _ in 0..1_000 {
            let number = range.start + u16::try_from(random() % width).expect("a port's range");
            let lock = File::create(folder.join(number.to_string())).expect("a lock file can be made");
            if lock.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Self { number, _lock: lock };
            }
        }
        panic!("no port of {range:?} is free");
    }

    pub(super) const fn number(&self) -> u16 {
        self.number
    }
}

/// From above the ports of well-known services up to those of outgoing connections.
fn candidates() -> Range<u16> {
    let outgoing = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok();
    let outgoing = outgoing.and_then(|range| range.split_whitespace().next()?.parse().ok());
    10_000..outgoing.filter(|&first| first > 12_000).unwrap_or(32_768)
}

fn random() -> u64 {
    // Each `RandomState` has keys of its own.
    RandomState::new().build_hasher().finish()
}
