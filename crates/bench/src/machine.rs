//! What the figures were made on.

use serde::Serialize;

/// The machine and the build.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    /// The processor's name.
    pub(crate) cpu: String,
    /// Processors this process may use.
    pub(crate) cpus: usize,
    /// Processes that wanted a processor over the last minute, when the run began.
    pub(crate) load: String,
    /// `release`, or `debug`, which says nothing about speed.
    pub(crate) build: &'static str,
}

impl Machine {
    /// Looks at this machine.
    pub(crate) fn look() -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = cpuinfo.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
        let loadavg = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Self {
            cpu: cpu.unwrap_or(std::env::consts::ARCH).to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            load: loadavg.split(' ').next().unwrap_or_default().to_owned(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
        }
    }
}
