//! `tidegate serve FILE`: the server.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tidegate::config::{Faults, Warning};
use tidegate_server::logs::{self, Format};
use tidegate_server::reload::{Cause, Reloads};
use tidegate_server::{Bounds, LimitsFile, Server, Settings};
use tokio::signal::unix::{SignalKind, signal};

use super::{Output, hints};

/// What `serve` is told.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The limits file.
    file: PathBuf,
    /// Where checks are answered, HOST:PORT; port 0 takes a free one. Instead of 'listen' in the file.
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Where operators are answered, HOST:PORT; port 0 takes a free one. Instead of 'admin.addr' in the file.
    #[arg(long, value_name = "ADDR")]
    admin: Option<String>,
    /// Print requests to try. It is done without asking where standard output is a terminal.
    #[arg(long)]
    hints: bool,
    /// How the log on standard error looks.
    #[arg(long, value_name = "FORMAT", value_enum)]
    log_format: Option<LogFormat>,
    /// What to log: error, warn, info, debug, trace, or a list such as info,audit=warn. Instead of RUST_LOG.
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// At the end, go on accepting for so many seconds while /readyz says 503.
    #[arg(long, value_name = "SECS", default_value_t = 0)]
    drain_delay: u16,
    /// At the end, give requests in flight so many seconds to finish.
    #[arg(long, value_name = "SECS", default_value_t = 20)]
    drain_wait: u16,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

/// Serves until SIGTERM or SIGINT, then drains. Every fault of the file is told, with exit code 1.
pub(crate) fn run(args: ServeArgs, output: Output) -> anyhow::Result<ExitCode> {
    logs::begin(args.format(output), args.log_level.as_deref())?;
    let (file, loaded) = match LimitsFile::open(&args.file) {
        Ok(opened) => opened,
        Err(faults) => return tell_faults(&faults, output),
    };
    tell_warnings(&args.file.display().to_string(), &loaded.warnings);
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args, file, loaded.policy, output))?;
    // What still runs aside (a walk over counters, say) is not waited for.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

impl ServeArgs {
    fn format(&self, output: Output) -> Format {
        match self.log_format {
            Some(LogFormat::Text) => Format::Text,
            Some(LogFormat::Json) => Format::Json,
            None if output.json => Format::Json,
            None => Format::Text,
        }
    }
}

async fn serve(args: ServeArgs, file: LimitsFile, policy: tidegate::Policy, output: Output) -> anyhow::Result<()> {
    let bounds = Bounds {
        drain_delay: Duration::from_secs(args.drain_delay.into()),
        drain_wait: Duration::from_secs(args.drain_wait.into()),
        ..Bounds::default()
    };
    let name = file.path().display().to_string();
    let settings = Settings { listen: args.listen, admin: args.admin, file: Some(file), bounds };
    let server = Server::bind(policy, settings).await?;
    // Listened for before anybody is told that the server is there.
    let stop = stop_signal().context("signals cannot be listened for")?;
    if let Some(reloads) = server.reloads() {
        tokio::spawn(reload_on_signal(reloads).context("SIGHUP cannot be listened for")?);
    }
    if let Err(error) = announce(&server, &name, args.hints, output) {
        // Serving does not depend on who reads this.
        tracing::warn!(%error, "standard output cannot be written to");
    }
    server.run(stop).await;
    tracing::info!("drained; the end");
    Ok(())
}

/// One line that says where, for people and for scripts; then what to try.
fn announce(server: &Server, file: &str, hints: bool, output: Output) -> io::Result<()> {
    let (check, admin) = (url(server.check_addr()), url(server.admin_addr()));
    let limits = server.engine().policy().rules.len();
    tracing::info!(check, admin, file, limits, version = env!("CARGO_PKG_VERSION"), "listening");
    let mut stdout = io::stdout();
    if output.json {
        let line = json!({"listening": {"check": check, "admin": admin}, "file": file, "limits": limits});
        writeln!(stdout, "{line}")?;
    } else {
        writeln!(stdout, "listening check={check} admin={admin}")?;
    }
    if !output.json && (hints || stdout.is_terminal()) {
        let engine = server.engine();
        let text = hints::text(&engine.policy(), server.check_addr(), server.admin_addr(), engine.now());
        stdout.write_all(text.as_bytes())?;
    }
    stdout.flush()
}

fn url(addr: SocketAddr) -> String {
    format!("http://{addr}")
}

/// Until SIGTERM or SIGINT. A second one ends the process at once.
fn stop_signal() -> io::Result<impl Future<Output = ()> + Send> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, "draining; the same signal again ends at once");
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            std::process::exit(130);
        });
    })
}

fn reload_on_signal(reloads: Reloads) -> io::Result<impl Future<Output = ()> + Send> {
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        while hangup.recv().await.is_some() {
            // Its outcome is in the log and the metrics.
            let _ = reloads.reload(Cause::Signal).await;
        }
    })
}

/// A connection takes a descriptor, and the usual limit of 1,024 is far below what is served.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "the limit on open descriptors cannot be raised");
    }
}

fn tell_faults(faults: &Faults, output: Output) -> anyhow::Result<ExitCode> {
    if output.json {
        writeln!(io::stdout(), "{}", serde_json::to_string(faults)?)?;
    } else {
        io::stderr().write_all(faults.with_snippets().as_bytes())?;
    }
    Ok(ExitCode::FAILURE)
}

fn tell_warnings(file: &str, warnings: &[Warning]) {
    for warning in warnings {
        tracing::warn!("{}", warning.line_of(file));
    }
}
