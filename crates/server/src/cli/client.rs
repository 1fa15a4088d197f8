//! A small HTTP client for a server's admin listener: one request a connection.

mod address;

use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use clap::Args;
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tidegate::policy::Secret;
use tokio::net::TcpStream;

use super::attributes::Attribute;
use super::style::shown;
pub(crate) use address::AdminAddress;

/// The longest that a whole request may take.
const WAIT: Duration = Duration::from_secs(10);
/// The largest answer that is read, in bytes: a page of 1,000 counters with long names.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Which server, and how it knows us.
#[derive(Debug, Args)]
pub(crate) struct AdminArgs {
    /// The server's admin listener
    #[arg(
        long,
        value_name = "URL",
        display_order = 90,
        env = "TIDEGATE_ADMIN",
        default_value = "http://127.0.0.1:9090"
    )]
    admin: AdminAddress,
    /// The token of admin.token in its limits file; better in the variable, where others do not see it
    #[arg(long, value_name = "TOKEN", display_order = 91, env = "TIDEGATE_ADMIN_TOKEN", hide_env_values = true, value_parser = secret)]
    token: Option<Secret>,
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of a value parser")]
fn secret(text: &str) -> Result<Secret, String> {
    Ok(Secret::new(text))
}

impl AdminArgs {
    /// The client for this server.
    ///
    /// # Errors
    /// A token that cannot stand in a header.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        let token = self.token.as_ref().filter(|token| !token.reveal().is_empty());
        let authorization = token.map(|token| HeaderValue::try_from(format!("Bearer {}", token.reveal())));
        let mut authorization =
            authorization.transpose().context("the token has characters that no header can hold")?;
        authorization.iter_mut().for_each(|value| value.set_sensitive(true));
        Ok(Client { address: self.admin.clone(), authorization })
    }
}

/// Asks a server's admin listener.
#[derive(Debug)]
pub(crate) struct Client {
    address: AdminAddress,
    authorization: Option<HeaderValue>,
}

/// Why there is no answer to show.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// No connection.
    #[error(
        "no server can be reached at {address} ({source}); start one with `tidegate serve FILE`, \
         or say with --admin where its admin listener is"
    )]
    Unreachable { address: AdminAddress, source: std::io::Error },
    /// No answer in time.
    #[error("the server at {0} did not answer within {WAIT:?}; is it the admin listener, and is it busy?")]
    Late(AdminAddress),
    /// Something that is no answer.
    #[error("what answers at {0} is not a tidegate server; say with --admin where its admin listener is")]
    Other(AdminAddress),
    /// A page for operators where there are none.
    #[error(
        "the server at {0} does not serve this: it is the check listener, or of another version; \
         the admin listener is another address, by default 127.0.0.1:9090"
    )]
    NotAdmin(AdminAddress),
    /// It asks for a token.
    #[error("the server at {address} refused ({detail}); give the token with --token, or in TIDEGATE_ADMIN_TOKEN")]
    Token { address: AdminAddress, detail: String },
    /// Its word on what is wrong.
    #[error("{detail}")]
    Refused { detail: String },
}

impl Client {
    /// Where the server is.
    pub(crate) fn address(&self) -> &AdminAddress {
        &self.address
    }

    /// Sends one request and reads its answer; null where the answer has no body.
    ///
    /// # Errors
    /// [`ClientError`]; all but 2xx is one.
    pub(crate) async fn call(&self, method: Method, target: &str, body: Option<&Value>) -> Result<Value, ClientError> {
        let (status, bytes) = self.send(method, target, body).await?;
        match status.is_success() {
            true if bytes.is_empty() => Ok(Value::Null),
            true => serde_json::from_slice(&bytes).map_err(|_| ClientError::Other(self.address.clone())),
            false => Err(self.refusal(status, &bytes)),
        }
    }

    /// Asks whether a path answers well, whatever it answers.
    ///
    /// # Errors
    /// [`ClientError`]; all but 2xx is one.
    pub(crate) async fn probe(&self, target: &str) -> Result<(), ClientError> {
        let (status, bytes) = self.send(Method::GET, target, None).await?;
        if status.is_success() { Ok(()) } else { Err(self.refusal(status, &bytes)) }
    }

    async fn send(
        &self,
        method: Method,
        target: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        match tokio::time::timeout(WAIT, self.exchange(method, target, body)).await {
            Ok(answer) => answer,
            Err(_) => Err(ClientError::Late(self.address.clone())),
        }
    }

    async fn exchange(
        &self,
        method: Method,
        target: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let other = || ClientError::Other(self.address.clone());
        let stream = TcpStream::connect(self.address.socket())
            .await
            .map_err(|source| ClientError::Unreachable { address: self.address.clone(), source })?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.map_err(|_| other())?;
        let request = self.request(method, target, body).map_err(|_| other())?;
        let answered = async move {
            let response = sender.send_request(request).await?;
            let status = response.status();
            let bytes = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await?.to_bytes();
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>((status, bytes))
        };
        // The connection has to be driven while the answer is read, and ends when the sender is gone.
        let (answered, _) = tokio::join!(answered, connection);
        answered.map_err(|_| other())
    }

    fn request(
        &self,
        method: Method,
        target: &str,
        body: Option<&Value>,
    ) -> Result<http::Request<Full<Bytes>>, http::Error> {
        let mut request = http::Request::builder().method(method).uri(target);
        request = request.header(header::HOST, self.address.to_string()).header(header::CONNECTION, "close");
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        match body {
            None => request.body(Full::default()),
            Some(body) => {
                request.header(header::CONTENT_TYPE, "application/json").body(Full::new(Bytes::from(body.to_string())))
            }
        }
    }

    /// What an answer that is no success says, as an error.
    fn refusal(&self, status: StatusCode, bytes: &[u8]) -> ClientError {
        let address = self.address.clone();
        let problem: Option<Value> = serde_json::from_slice(bytes).ok();
        let Some(detail) = problem.as_ref().and_then(|problem| problem.get("detail")?.as_str()).map(shown) else {
            return ClientError::Other(address);
        };
        match status {
            StatusCode::UNAUTHORIZED => ClientError::Token { address, detail },
            StatusCode::NOT_FOUND if detail.contains("is not served here") => ClientError::NotAdmin(address),
            _ => ClientError::Refused { detail },
        }
    }
}

/// Adds `attr.NAME=VALUE` to a query for each attribute.
pub(crate) fn push_attributes(query: &mut Vec<(String, String)>, attributes: &[Attribute]) {
    query.extend(attributes.iter().map(|attribute| (format!("attr.{}", attribute.name), attribute.value.clone())));
}

/// A path with its query, all that needs it percent-encoded.
pub(crate) fn target(path: &[&str], query: &[(String, String)]) -> String {
    let mut target = String::new();
    for segment in path {
        target.push('/');
        encode(segment, &mut target);
    }
    for (at, (name, value)) in query.iter().enumerate() {
        target.push(if at == 0 { '?' } else { '&' });
        encode(name, &mut target);
        target.push('=');
        encode(value, &mut target);
    }
    target
}

fn encode(text: &str, into: &mut String) {
    const HEX: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or('0');
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => into.push(char::from(byte)),
            other => into.extend(['%', digit(other >> 4), digit(other & 15)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_plain_is_percent_encoded() {
        let query = [("attr.org".to_owned(), "a&b=c d/é%".to_owned()), ("order".to_owned(), "key".to_owned())];
        assert_eq!(
            target(&["v1", "usage", "a/b"], &query),
            "/v1/usage/a%2Fb?attr.org=a%26b%3Dc%20d%2F%C3%A9%25&order=key"
        );
        assert_eq!(target(&["healthz"], &[]), "/healthz");
    }
}
