//! The limits file on disk with the files that its values come from, and what tells one state of
//! them from another.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tidegate::config::{self, Faults, Loaded, Lookup, SystemLookup};

use super::ReloadError;

/// How many files of `file:` references are looked at, besides the limits file: the first ones.
const REFERENCES_MAX: usize = 100;

/// A limits file, and the state it was in when it was last read.
#[derive(Debug)]
pub struct LimitsFile {
    path: PathBuf,
    read_at: Fingerprint,
    read: fn(&Path) -> Reading,
}

/// What was read, and what the files of its `file:` references were like before they were read.
pub(super) type Reading = (Result<Loaded, Faults>, Vec<(PathBuf, State)>);

/// What the limits file and the files of its `file:` references are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    file: State,
    references: Vec<(PathBuf, State)>,
}

/// What a file is like, as far as can be told without reading it: where its links lead, its size,
/// number, times and rights. A file that cannot be looked at has a state too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    target: Option<PathBuf>,
    modified: Option<SystemTime>,
    len: u64,
    inode: Inode,
}

/// Device, number, time of change and mode. The time of change tells what puts the time of the
/// contents back, and what changes rights only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Inode {
    device: u64,
    number: u64,
    changed: (i64, i64),
    mode: u32,
}

impl LimitsFile {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// Every fault of it.
    pub fn open(path: impl Into<PathBuf>) -> Result<(Self, Loaded), Faults> {
        let path = path.into();
        // Looked at before it is read: a change in between is then seen as one.
        let file = State::of(&path);
        let (loaded, references) = read(&path);
        Ok((Self { path, read_at: Fingerprint { file, references }, read }, loaded?))
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it anew. What was read before stays known if this is dropped.
    pub(super) async fn load(&mut self) -> Result<Loaded, ReloadError> {
        let (path, read) = (self.path.clone(), self.read);
        // A limits file may be large, and on a disk that is slow or does not answer.
        let reading = tokio::task::spawn_blocking(move || {
            let file = State::of(&path);
            let (loaded, references) = read(&path);
            (loaded, Fingerprint { file, references })
        });
        // What failed was logged where it happened.
        let (loaded, read_at) = reading.await.map_err(|_| ReloadError::Broken)?;
        self.read_at = read_at;
        Ok(loaded?)
    }

    /// What it is like now; none where that cannot be found out.
    pub(super) async fn look(&self) -> Option<Fingerprint> {
        let path = self.path.clone();
        let references: Vec<PathBuf> = self.read_at.references.iter().map(|(path, _)| path.clone()).collect();
        let looking = tokio::task::spawn_blocking(move || Fingerprint {
            file: State::of(&path),
            references: references.into_iter().map(|path| (path.clone(), State::of(&path))).collect(),
        });
        looking.await.ok()
    }

    /// What it was like when it was last read.
    pub(super) fn read_at(&self) -> &Fingerprint {
        &self.read_at
    }

    /// Where its links led when it was last read.
    pub(super) fn target(&self) -> Option<&Path> {
        self.read_at.file.target.as_deref()
    }
}

fn read(path: &Path) -> Reading {
    let seen = Arc::default();
    let loaded = config::load_with(path, Seeing { seen: Arc::clone(&seen) });
    let references = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    (loaded, references)
}

/// The real environment and files; remembers which files were asked for and what they were like.
struct Seeing {
    // Shared with whoever made it, which reads it when this is done.
    seen: Arc<Mutex<Vec<(PathBuf, State)>>>,
}

impl Lookup for Seeing {
    fn variable(&self, name: &str) -> io::Result<Option<String>> {
        SystemLookup.variable(name)
    }

    fn file(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() < REFERENCES_MAX && seen.iter().all(|(known, _)| known != path) {
            seen.push((path.to_owned(), State::of(path)));
        }
        drop(seen);
        SystemLookup.file(path, bytes_max)
    }
}

impl State {
    fn of(path: &Path) -> Self {
        let target = path.canonicalize().ok();
        let metadata = std::fs::metadata(path).ok();
        Self {
            target,
            modified: metadata.as_ref().and_then(|metadata| metadata.modified().ok()),
            len: metadata.as_ref().map_or(0, Metadata::len),
            inode: metadata.as_ref().map_or(Inode::default(), inode),
        }
    }
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> Inode {
    use std::os::unix::fs::MetadataExt;
    Inode {
        device: metadata.dev(),
        number: metadata.ino(),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
        mode: metadata.mode(),
    }
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> Inode {
    Inode::default()
}

#[cfg(test)]
impl LimitsFile {
    /// The same file, read otherwise from now on.
    pub(super) fn read_by(self, read: fn(&Path) -> Reading) -> Self {
        Self { read, ..self }
    }
}
