//! Reading the limits file anew: when it changes, on SIGHUP, and on `POST /-/reload`.
//!
//! # Layout
//! - `file`: the file, and how a change of it is noticed however it is replaced.
//! - `watch`: the system's word that something changed.
//! - here: one task that owns the file and reloads, one reload at a time.
//!
//! A file that has faults never replaces a good one: the limits in force stay, the log says every
//! fault, and `tidegate_limits_file_refused` is 1 until the file is good again. While it is refused,
//! it is read again every two seconds: what it lacks may come back without any change of the file.

mod file;
mod watch;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tidegate::Reloaded;
use tidegate::config::Faults;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

pub use file::LimitsFile;

use crate::admin::OpenToAll;
use crate::http::Shared;
use file::Fingerprint;
use watch::Watch;

/// Requests to reload that wait at a time.
const WAITING_MAX: usize = 16;
/// How often the file is looked at without any word from the system, which may miss a change (some
/// network and overlay file systems, links that lead through other folders).
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Why the limits file was read anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It changed on disk.
    Changed,
    /// It was refused, and may be good by now: what it needs may be back.
    Retry,
    /// SIGHUP.
    Signal,
    /// `POST /-/reload`.
    Admin,
}

impl Cause {
    const fn name(self) -> &'static str {
        match self {
            Self::Changed => "file changed",
            Self::Retry => "tried again",
            Self::Signal => "SIGHUP",
            Self::Admin => "POST /-/reload",
        }
    }
}

/// Why the file was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReloadError {
    /// It has faults.
    #[error("{0}")]
    Faults(#[from] Faults),
    /// It would leave the admin listener open to everybody.
    #[error("{0}")]
    OpenToAll(#[from] Arc<OpenToAll>),
    /// Reading it met a fault of Tidegate itself.
    #[error("reading the limits file met a fault of the server; its log says more, please report it")]
    Broken,
    /// The server is ending, or too many reloads wait already.
    #[error("no reload can be made now: the server is ending, or too many reloads wait; try again")]
    Busy,
}

/// Asks the task that owns the file to read it anew.
#[derive(Clone, Debug)]
pub struct Reloads(mpsc::Sender<Asked>);

struct Asked {
    cause: Cause,
    answer: oneshot::Sender<Result<Reloaded, ReloadError>>,
}

impl Reloads {
    /// Reads the file anew, whether or not it changed.
    ///
    /// # Errors
    /// [`ReloadError`]; the limits in force stay as they were.
    pub async fn reload(&self, cause: Cause) -> Result<Reloaded, ReloadError> {
        let (answer, answered) = oneshot::channel();
        self.0.try_send(Asked { cause, answer }).map_err(|_| ReloadError::Busy)?;
        answered.await.unwrap_or(Err(ReloadError::Busy))
    }
}

/// The task that owns the limits file.
pub(crate) struct Reloader {
    file: LimitsFile,
    asked: mpsc::Receiver<Asked>,
    /// Why the file was refused when it was last read; none where it was taken.
    refused: Option<ReloadError>,
}

/// What made the task look at the file.
enum Woken {
    Asked(Asked),
    Changed,
    Tick,
}

impl Reloader {
    pub(crate) fn new(file: LimitsFile) -> (Self, Reloads) {
        let (sender, asked) = mpsc::channel(WAITING_MAX);
        (Self { file, asked, refused: None }, Reloads(sender))
    }

    /// Reloads until `stop`, which is heeded while a file system does not answer as well.
    pub(crate) async fn run(mut self, shared: Arc<Shared>, stop: impl Future<Output = ()>) {
        tokio::select! {
            () = stop => {}
            () = self.reload_for_ever(&shared) => {}
        }
    }

    async fn reload_for_ever(&mut self, shared: &Shared) {
        let mut watch = Watch::start(&self.file);
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        // A change that was seen, and since when the file is as it is.
        let mut settling: Option<(Fingerprint, Instant)> = None;
        loop {
            let settled_at = settling.as_ref().map(|(_, since)| *since + watch.settled_after());
            let woken = tokio::select! {
                Some(asked) = self.asked.recv() => Woken::Asked(asked),
                () = watch.changed() => Woken::Changed,
                _ = look.tick() => Woken::Tick,
                () = sleep_until(settled_at) => Woken::Changed,
            };
            let ticked = matches!(woken, Woken::Tick);
            if let Woken::Asked(asked) = woken {
                let result = self.reload(shared, asked.cause).await;
                watch.follow(&self.file);
                // Whoever asked may have gone.
                let _ = asked.answer.send(result);
            }
            settling = self.settling(settling).await;
            let is_settled = settling.as_ref().is_some_and(|(_, since)| since.elapsed() >= watch.settled_after());
            let is_retried = ticked && settling.is_none() && self.refused.is_some();
            if is_settled || is_retried {
                // Its outcome is in the log and the metrics.
                let _ = self.reload(shared, if is_settled { Cause::Changed } else { Cause::Retry }).await;
                settling = None;
                watch.follow(&self.file);
            }
        }
    }

    /// What the file is like now, and since when; none where it is as it was when it was read.
    async fn settling(&self, before: Option<(Fingerprint, Instant)>) -> Option<(Fingerprint, Instant)> {
        let now = self.file.look().await?;
        if now == *self.file.read_at() {
            return None;
        }
        before.filter(|(before, _)| *before == now).or_else(|| Some((now, Instant::now())))
    }

    async fn reload(&mut self, shared: &Shared, cause: Cause) -> Result<Reloaded, ReloadError> {
        let result = self.read(shared).await;
        let error = result.as_ref().err();
        // What nobody asked for and changed nothing is told once.
        let is_known = cause == Cause::Retry && error == self.refused.as_ref();
        self.refused = error.cloned();
        match &result {
            Ok(reloaded) => {
                shared.metrics.reloads.succeeded(shared.engine.now());
                tracing::info!(
                    target: "audit", cause = cause.name(), file = %self.file.path().display(),
                    kept = reloaded.kept.len(), added = ?reloaded.added, removed = ?reloaded.removed,
                    "limits reloaded"
                );
                if !reloaded.needs_restart.is_empty() {
                    tracing::warn!(keys = ?reloaded.needs_restart, "changed in the limits file, but need a restart to count");
                }
            }
            Err(_) if is_known => {}
            Err(error) => {
                shared.metrics.reloads.failed();
                tracing::error!(
                    target: "audit", cause = cause.name(), file = %self.file.path().display(),
                    "the limits file is refused, the limits before it stay in force:\n{error}"
                );
            }
        }
        result
    }

    async fn read(&mut self, shared: &Shared) -> Result<Reloaded, ReloadError> {
        let loaded = self.file.load().await?;
        shared.door.check(loaded.policy.server.admin_token.as_ref()).map_err(Arc::new)?;
        for warning in &loaded.warnings {
            tracing::warn!("{}", warning.line_of(&self.file.path().display().to_string()));
        }
        Ok(shared.engine.reload(loaded.policy))
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
