//! What commands are sent on: the connection to one server, or those to a cluster's.

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{MultipleNodeRoutingInfo, ResponsePolicy, RoutingInfo, SingleNodeRoutingInfo};
use redis::{Cmd, FromRedisValue, Pipeline, RedisError, RedisFuture, Value};

/// A connection to the server, or to all servers of a cluster.
#[derive(Clone)]
pub(super) enum Wire {
    /// To one server.
    Alone(MultiplexedConnection),
    /// To a cluster. Its client follows slots that move.
    Cluster(ClusterConnection),
}

/// One server of those that take writes; its address in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Node(Option<String>);

impl Node {
    /// Of a cluster, at `host:port`.
    pub(super) fn at(address: &str) -> Self {
        Self(Some(address.to_owned()))
    }

    /// `host:port`, in a cluster.
    pub(super) fn address(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl Wire {
    /// Sends a command to every server that takes writes. A replica that is away is none of them.
    ///
    /// # Errors
    /// The first that any of them answers.
    pub(super) async fn send_to_all(&mut self, command: &Cmd) -> Result<Value, RedisError> {
        match self {
            Self::Alone(connection) => super::script::send(connection, command).await,
            Self::Cluster(connection) => {
                let to = (MultipleNodeRoutingInfo::AllMasters, Some(ResponsePolicy::AllSucceeded));
                refused(connection.route_command(command.clone(), RoutingInfo::MultiNode(to)).await?)
            }
        }
    }

    /// Sends a command to one of [`nodes`](Self::nodes).
    pub(super) async fn send_to(&mut self, node: &Node, command: &Cmd) -> Result<Value, RedisError> {
        let place = node.address().and_then(|address| address.rsplit_once(':'));
        match (self, place) {
            (Self::Cluster(connection), Some((host, port))) => {
                let port = port.parse().unwrap_or_default();
                let to = SingleNodeRoutingInfo::ByAddress { host: host.to_owned(), port };
                refused(connection.route_command(command.clone(), RoutingInfo::SingleNode(to)).await?)
            }
            (wire, _) => super::script::send(wire, command).await,
        }
    }

    /// The servers that take writes, in an order that stays.
    pub(super) async fn nodes(&mut self) -> Result<Vec<Node>, RedisError> {
        let Self::Cluster(connection) = self else { return Ok(vec![Node::default()]) };
        let all = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
        let Value::Map(answers) = connection.route_command(redis::cmd("PING"), all).await? else {
            return Ok(Vec::new());
        };
        let address = |(address, _)| String::from_redis_value(address).ok();
        let mut nodes: Vec<_> = answers.into_iter().filter_map(address).map(|address| Node(Some(address))).collect();
        nodes.sort_unstable();
        Ok(nodes)
    }
}

/// The server's refusal is an error.
fn refused(value: Value) -> Result<Value, RedisError> {
    match value {
        Value::ServerError(error) => Err(error.into()),
        value => Ok(value),
    }
}

impl ConnectionLike for Wire {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Alone(connection) => connection.req_packed_command(command),
            Self::Cluster(connection) => connection.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Alone(connection) => connection.req_packed_commands(pipeline, offset, count),
            Self::Cluster(connection) => connection.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Alone(connection) => connection.get_db(),
            Self::Cluster(connection) => connection.get_db(),
        }
    }
}
