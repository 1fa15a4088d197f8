//! The system's word that something changed in the folders of the limits file.
//!
//! Folders are watched, not the file: a file that is replaced by a rename, or reached through a
//! link that is swapped, is another file afterwards. What changed is then for the file's
//! fingerprint to say; this only wakes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use super::file::LimitsFile;

/// A changed file has to stay as it is for so long before it is read: it may still be being written.
const SETTLED_AFTER: Duration = Duration::from_millis(100);
/// The same, while somebody has the file open for writing: half a file may well be valid.
const SETTLED_AFTER_OPEN: Duration = Duration::from_secs(2);

/// Wakes when something changes near the file.
pub(super) struct Watch {
    signal: Arc<Signal>,
    /// Where the file's links led when watching began.
    target: Option<PathBuf>,
    // Watches until it is dropped. None where the system cannot watch.
    watcher: Option<RecommendedWatcher>,
}

#[derive(Debug, Default)]
struct Signal {
    changed: Notify,
    open_for_writing: AtomicBool,
}

impl Watch {
    /// Watches as far as the system can. Where it cannot, the log says so, and the file is only
    /// looked at every two seconds.
    pub(super) fn start(file: &LimitsFile) -> Self {
        let signal = Arc::new(Signal::default());
        let target = file.target().map(Path::to_owned);
        let watcher = match watch(file.path(), target.as_deref(), Arc::clone(&signal)) {
            Ok(watcher) => Some(watcher),
            Err(error) => {
                tracing::warn!(%error, "the limits file cannot be watched; it is looked at every two seconds instead");
                None
            }
        };
        Self { signal, target, watcher }
    }

    /// Watches elsewhere, if the file's links led elsewhere when it was read: to another folder, or to
    /// another name in the same one.
    pub(super) fn follow(&mut self, file: &LimitsFile) {
        if file.target() != self.target.as_deref() {
            *self = Self::start(file);
        }
    }

    /// Until something changed since the last call.
    pub(super) async fn changed(&self) {
        self.signal.changed.notified().await;
    }

    /// How long a changed file has to stay as it is before it is read.
    pub(super) fn settled_after(&self) -> Duration {
        // Without the system's word the file may be open at any time.
        let may_be_open = self.watcher.is_none() || self.signal.open_for_writing.load(Ordering::Relaxed);
        if may_be_open { SETTLED_AFTER_OPEN } else { SETTLED_AFTER }
    }
}

fn watch(path: &Path, target: Option<&Path>, signal: Arc<Signal>) -> notify::Result<RecommendedWatcher> {
    // The file may be called otherwise where its links lead to.
    let names: Vec<OsString> =
        [Some(path), target].into_iter().flatten().filter_map(Path::file_name).map(Into::into).collect();
    let is_file = move |path: &PathBuf| path.file_name().is_some_and(|name| names.iter().any(|own| own == name));
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        if let Ok(event) = &event
            && event.paths.iter().any(&is_file)
            && let Some(open) = opens(&event.kind)
        {
            signal.open_for_writing.store(open, Ordering::Relaxed);
        }
        // Reading the file raises events as well; those change nothing.
        if !matches!(event, Ok(Event { kind: EventKind::Access(AccessKind::Open(_)), .. })) {
            signal.changed.notify_one();
        }
    })?;
    for folder in folders(path, target) {
        watcher.watch(&folder, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

/// Whether after this event somebody has the file open for writing; none where it does not say.
fn opens(kind: &EventKind) -> Option<bool> {
    match kind {
        EventKind::Modify(ModifyKind::Data(_)) => Some(true),
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(false),
        EventKind::Modify(ModifyKind::Name(_)) | EventKind::Remove(_) => Some(false),
        _ => None,
    }
}

/// The folder that the path names, and the one that its links lead to.
fn folders(path: &Path, target: Option<&Path>) -> Vec<PathBuf> {
    let parent = |path: &Path| match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut folders = vec![parent(path)];
    if let Some(target) = target {
        let behind = parent(target);
        if folders.iter().all(|folder| folder.canonicalize().ok().as_ref() != Some(&behind)) {
            folders.push(behind);
        }
    }
    folders
}
