//! Which servers there are, and where their programs lie.

use std::fmt;
use std::path::{Path, PathBuf};

/// A server and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavor {
    /// Redis 7.0, of Debian. The only one that is built with TLS.
    Redis70,
    /// Redis 8.2.
    Redis82,
    /// Valkey 8.1.
    Valkey81,
    /// Valkey 9.1.
    Valkey91,
}

impl Flavor {
    /// All of them, the oldest first.
    pub const fn all() -> [Self; 4] {
        [Self::Redis70, Self::Redis82, Self::Valkey81, Self::Valkey91]
    }

    /// The product: `redis` or `valkey`.
    pub const fn product(self) -> &'static str {
        match self {
            Self::Redis70 | Self::Redis82 => "redis",
            Self::Valkey81 | Self::Valkey91 => "valkey",
        }
    }

    /// The version, as in `8.2`; what comes after it is the package's affair.
    pub const fn version(self) -> &'static str {
        match self {
            Self::Redis70 => "7.0",
            Self::Redis82 => "8.2",
            Self::Valkey81 => "8.1",
            Self::Valkey91 => "9.1",
        }
    }

    /// Whether the program is built with TLS.
    pub const fn has_tls(self) -> bool {
        matches!(self, Self::Redis70)
    }

    /// The server's program. It is Sentinel's, too, with `--sentinel`.
    ///
    /// # Panics
    /// If it is not installed.
    #[track_caller]
    pub fn program(self) -> PathBuf {
        let program = folder().join(self.to_string()).join(format!("{}-server", self.product()));
        assert!(
            program.is_file(),
            "{self} is not here: run `scripts/setup.sh servers` ({} is missing)",
            program.display()
        );
        program
    }

    /// A program of redis-tools that came with Redis 7.0: `redis-cli` or `redis-benchmark`. They
    /// work with every server.
    ///
    /// # Panics
    /// If it is not installed.
    #[track_caller]
    pub fn tool(name: &str) -> PathBuf {
        let program = folder().join(Self::Redis70.to_string()).join(name);
        assert!(program.is_file(), "{name} is not here: run `scripts/setup.sh servers`");
        program
    }
}

/// `redis-7.0`: also the name of the folder with its programs.
impl fmt::Display for Flavor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.product(), self.version())
    }
}

/// The folder with a folder for each server: `TIDEGATE_SERVERS`, or the workspace's own.
fn folder() -> PathBuf {
    match std::env::var_os("TIDEGATE_SERVERS") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.servers/bin"),
    }
}
