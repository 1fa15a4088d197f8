//! A process that dies with the test.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::deadline::wait_for;

/// A program with its arguments, running or not. Dropped, it is killed and waited for.
#[derive(Debug)]
pub(super) struct Process {
    program: PathBuf,
    arguments: Vec<String>,
    /// Both of its outputs go here, one start after the other.
    log: PathBuf,
    child: Mutex<Option<Child>>,
}

impl Process {
    /// A process that has not been started yet.
    pub(super) const fn new(program: PathBuf, arguments: Vec<String>, log: PathBuf) -> Self {
        Self { program, arguments, log, child: Mutex::new(None) }
    }

    /// Starts it; one that runs is killed first.
    #[track_caller]
    pub(super) fn start(&self) {
        self.kill();
        let log = File::options().create(true).append(true).open(&self.log).expect("the log can be written");
        let errors = log.try_clone().expect("the log can be opened twice");
        let mut command = mortal(&self.program);
        command.args(&self.arguments).stdin(Stdio::null()).stdout(log).stderr(errors);
        let child = spawn(command).unwrap_or_else(|error| panic!("{} does not start: {error}", self.program.display()));
        *self.child() = Some(child);
    }

    /// Its number; none while it does not run.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child().as_ref().map(Child::id)
    }

    /// Whether it has ended by itself.
    pub(super) fn has_ended(&self) -> bool {
        self.child().as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }

    /// Kills it at once (SIGKILL) and waits until it is gone.
    pub(super) fn kill(&self) {
        if let Some(mut child) = self.child().take() {
            // Neither fails for a child that has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops it where it is (SIGSTOP); returns when it stands.
    #[track_caller]
    pub(super) fn pause(&self) {
        self.signal(Signal::STOP);
        wait_for(|| (self.state() == Some('T')).then_some(()), || "it does not stop at SIGSTOP".to_owned());
    }

    /// Lets it go on (SIGCONT).
    #[track_caller]
    pub(super) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// The processor time that its threads have taken.
    #[track_caller]
    pub(super) fn cpu_time(&self) -> Duration {
        let pid = self.pid().expect("it runs");
        let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("a process has threads");
        let nanoseconds = threads.flatten().filter_map(|thread| {
            // Nanoseconds on a processor, nanoseconds waiting for one, turns. To the nanosecond, where
            // `stat` beside it counts in hundredths of a second.
            let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            stat.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanoseconds.sum())
    }

    /// The last lines of its log.
    pub(super) fn log_tail(&self) -> String {
        const LINES: usize = 30;
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }

    /// The letter of `/proc/PID/stat`: `R`unning, `S`leeping, s`T`opped…
    fn state(&self) -> Option<char> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid()?)).ok()?;
        // It follows the program's name, which stands in parentheses and may hold anything.
        stat.rsplit_once(") ")?.1.chars().next()
    }

    #[track_caller]
    fn signal(&self, signal: Signal) {
        let pid = self.child().as_ref().map(Pid::from_child).expect("it runs");
        kill_process(pid, signal).expect("a child can be sent a signal");
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        // A test that failed elsewhere still wants its processes ended.
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A command whose process the kernel kills when this one dies, however it dies. Where `setpriv`
/// is missing, only [`Drop`] does so.
fn mortal(program: &Path) -> Command {
    static HAS_SETPRIV: OnceLock<bool> = OnceLock::new();
    let has_setpriv = HAS_SETPRIV.get_or_init(|| {
        let tried = Command::new("setpriv").args(["--pdeathsig", "KILL", "true"]).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    });
    if !has_setpriv {
        return Command::new(program);
    }
    // It becomes the program; the process's number stays.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Starts a command from a thread that lives as long as this process does.
///
/// The kernel's "parent" that must not die is the thread that started the child. A test's own
/// thread ends earlier than a server that several tests share, and a runtime's idle threads end
/// when they like.
fn spawn(command: Command) -> io::Result<Child> {
    type Order = (Command, Sender<io::Result<Child>>);
    static ORDERS: OnceLock<Sender<Order>> = OnceLock::new();
    let orders = ORDERS.get_or_init(|| {
        let (orders, received) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in received {
                // Whoever asked is waiting.
                let _ = answer.send(command.spawn());
            }
        });
        orders
    });
    let (answer, answered) = mpsc::channel();
    orders.send((command, answer)).map_err(io::Error::other)?;
    answered.recv().map_err(io::Error::other)?
}
