//! The scripts that the server runs.

use std::sync::LazyLock;

use redis::aio::ConnectionLike;
use redis::{Cmd, RedisError, ServerErrorKind, Value};

use super::node::Wire;

/// Checks and charges.
pub(super) static CHARGE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/charge.lua")));
/// Forgets a counter.
pub(super) static RESET: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/reset.lua")));

/// Gives back what a request took.
pub(super) static REFUND: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/refund.lua")));
/// Counts the instances.
pub(super) static HEARTBEAT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/heartbeat.lua")));

/// A script and its name.
#[derive(Debug)]
pub(super) struct Script {
    text: &'static str,
    sha: String,
}

impl Script {
    fn new(text: &'static str) -> Self {
        Self { text, sha: redis::Script::new(text).get_hash().to_owned() }
    }

    /// Makes the server know it, or every server of a cluster that takes writes.
    pub(super) async fn load(&self, wire: &mut Wire) -> Result<(), RedisError> {
        wire.send_to_all(redis::cmd("SCRIPT").arg("LOAD").arg(self.text)).await.map(drop)
    }

    /// Runs it. A server that has forgotten the script is told it again in the same breath.
    pub(super) async fn run<K: AsRef<[u8]>>(
        &self,
        connection: &mut impl ConnectionLike,
        keys: &[K],
        arguments: &[&[u8]],
    ) -> Result<Value, RedisError> {
        let answer = send(connection, &command("EVALSHA", &self.sha, keys, arguments)).await;
        match answer {
            Err(error) if error.kind() == redis::ErrorKind::Server(ServerErrorKind::NoScript) => {
                send(connection, &command("EVAL", self.text, keys, arguments)).await
            }
            answer => answer,
        }
    }
}

/// Sends a command. The server's refusal is an error.
pub(super) async fn send(connection: &mut impl ConnectionLike, command: &Cmd) -> Result<Value, RedisError> {
    match connection.req_packed_command(command).await? {
        Value::ServerError(error) => Err(error.into()),
        value => Ok(value),
    }
}

fn command<K: AsRef<[u8]>>(name: &str, script: &str, keys: &[K], arguments: &[&[u8]]) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(script).arg(keys.len());
    for key in keys {
        command.arg(key.as_ref());
    }
    for argument in arguments {
        command.arg(*argument);
    }
    command
}
