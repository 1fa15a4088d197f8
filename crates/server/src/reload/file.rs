//! The limits file on disk, and what tells one state of it from another.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tidegate::config::{self, Faults, Loaded};

use super::ReloadError;

/// A limits file, and the state it was in when it was last read.
#[derive(Debug)]
pub struct LimitsFile {
    path: PathBuf,
    read_at: Fingerprint,
}

/// What a file is like, as far as can be told without reading it: where its links lead, and its
/// size, number and times. A file that cannot be looked at has a fingerprint too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    target: Option<PathBuf>,
    modified: Option<SystemTime>,
    len: u64,
    inode: (u64, u64),
}

impl LimitsFile {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// Every fault of it.
    pub fn open(path: impl Into<PathBuf>) -> Result<(Self, Loaded), Faults> {
        let path = path.into();
        // Looked at before it is read: a change in between is then seen as one.
        let read_at = Fingerprint::of(&path);
        let loaded = config::load(&path)?;
        Ok((Self { path, read_at }, loaded))
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it anew.
    pub(super) async fn load(&mut self) -> Result<Loaded, ReloadError> {
        self.read_at = self.look();
        let path = self.path.clone();
        // A limits file may be on a slow disk, and large.
        match tokio::task::spawn_blocking(move || config::load(&path)).await {
            Ok(loaded) => Ok(loaded?),
            // It was logged where it happened.
            Err(_) => Err(ReloadError::Broken),
        }
    }

    /// What it is like now.
    pub(super) fn look(&self) -> Fingerprint {
        Fingerprint::of(&self.path)
    }

    /// What it was like when it was last read.
    pub(super) fn read_at(&self) -> &Fingerprint {
        &self.read_at
    }
}

impl Fingerprint {
    fn of(path: &Path) -> Self {
        let target = path.canonicalize().ok();
        let metadata = std::fs::metadata(path).ok();
        Self {
            target,
            modified: metadata.as_ref().and_then(|metadata| metadata.modified().ok()),
            len: metadata.as_ref().map_or(0, Metadata::len),
            inode: metadata.as_ref().map_or((0, 0), inode),
        }
    }
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> (u64, u64) {
    (0, 0)
}
