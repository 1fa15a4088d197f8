//! Who may use the admin listener.
//!
//! - With a token: whoever sends `Authorization: Bearer <token>`.
//! - Without one: whoever reaches a loopback address. A web page in a browser on the same machine
//!   reaches it too, so requests that a page could have caused are refused: those with an `Origin`,
//!   and those whose `Host` is a name that somebody else's DNS could point here.
//! - Without a token and beyond loopback: nobody; the server does not start.
//!
//! `/healthz` and `/readyz` are open.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use subtle::ConstantTimeEq;
use tidegate::policy::Secret;

use tracing::Instrument as _;

use crate::http::{Problem, Shared, quoted};

/// What the admin listener asks of a request.
#[derive(Debug)]
pub(crate) struct Door {
    /// Where the admin listener is bound.
    pub(crate) addr: SocketAddr,
}

/// Who is at the other end of an admin connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// The admin listener would be open to everybody.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the admin listener at {addr} can be reached from other machines, and no token guards it; \
     set admin.token in the limits file (for example \"${{TIDEGATE_ADMIN_TOKEN}}\" or \"file:/run/secrets/admin-token\"), \
     or bind it to 127.0.0.1 with --admin or admin.addr"
)]
pub struct OpenToAll {
    /// Where it would listen.
    pub addr: SocketAddr,
}

impl Door {
    /// Whether an admin listener at this address may run with this token, or with none.
    pub(crate) fn check(&self, token: Option<&Secret>) -> Result<(), OpenToAll> {
        if token.is_none() && !self.addr.ip().to_canonical().is_loopback() {
            return Err(OpenToAll { addr: self.addr });
        }
        Ok(())
    }
}

/// Lets a request through to the admin routes, or answers 401 or 403. What is logged on the way says
/// who asked.
pub(crate) async fn admit(
    State(shared): State<Arc<Shared>>,
    Extension(Peer(peer)): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let span = tracing::info_span!(target: "audit", "admin", %peer);
    // The token of the policy in force: a reload that changes it counts from the next request on.
    let policy = shared.engine.policy();
    let admitted = match &policy.server.admin_token {
        Some(token) => check_token(request.headers(), token),
        None => check_local(request.headers()),
    };
    match admitted {
        Ok(()) => next.run(request).instrument(span).await,
        Err(problem) => {
            let (_in_span, path) = (span.enter(), quoted(request.uri().path()));
            tracing::warn!(target: "audit", method = %request.method(), path, "an admin request was refused");
            problem.into_response()
        }
    }
}

fn check_token(headers: &HeaderMap, token: &Secret) -> Result<(), Problem> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let bearer = match (given.next(), given.next()) {
        (Some(value), None) => value.as_bytes().split_at_checked(7),
        _ => None,
    };
    let matches = bearer.is_some_and(|(scheme, given)| {
        // In constant time, so that answers do not tell how much of a guess was right.
        scheme.eq_ignore_ascii_case(b"bearer ") && bool::from(given.ct_eq(token.reveal().as_bytes()))
    });
    if matches {
        return Ok(());
    }
    let detail = "send the header 'Authorization: Bearer <token>' with the token of admin.token in the limits file";
    Err(Problem::new(StatusCode::UNAUTHORIZED, detail))
}

fn check_local(headers: &HeaderMap) -> Result<(), Problem> {
    let refuse = |detail: &str| Err(Problem::new(StatusCode::FORBIDDEN, detail));
    if headers.contains_key(header::ORIGIN) {
        return refuse("requests from web pages need a token; set admin.token in the limits file");
    }
    let host = headers.get(header::HOST).map(|host| host.to_str().unwrap_or("?"));
    if host.is_some_and(|host| !is_own_name(host)) {
        return refuse("without admin.token, the Host has to be localhost or an IP address");
    }
    Ok(())
}

/// Whether nobody's DNS can make this host name mean this machine.
fn is_own_name(host: &str) -> bool {
    if host.parse::<SocketAddr>().is_ok() {
        return true;
    }
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn tokens() {
        let token = Secret::new("s3cret");
        let passes = |value: &str| check_token(&headers(&[(header::AUTHORIZATION, value)]), &token).is_ok();
        assert!(passes("Bearer s3cret"));
        assert!(passes("bearer s3cret"));
        for wrong in ["s3cret", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret", "Bearer  s3cret"]
        {
            assert!(!passes(wrong), "{wrong}");
        }
        assert!(check_token(&HeaderMap::new(), &token).is_err());
        let mut twice = headers(&[(header::AUTHORIZATION, "Bearer s3cret")]);
        twice.append(header::AUTHORIZATION, "Bearer s3cret".parse().unwrap());
        assert!(check_token(&twice, &token).is_err());
    }

    #[test]
    fn hosts() {
        for own in ["localhost", "LOCALHOST:9090", "127.0.0.1", "127.0.0.1:9090", "[::1]:9090", "[::1]", "10.0.0.1:1"] {
            assert!(check_local(&headers(&[(header::HOST, own)])).is_ok(), "{own}");
        }
        for other in ["example.com", "localhost.example.com:9090", "127.0.0.1.example.com", "", "x:y"] {
            assert!(check_local(&headers(&[(header::HOST, other)])).is_err(), "{other}");
        }
        let page = headers(&[(header::HOST, "localhost"), (header::ORIGIN, "http://localhost")]);
        assert!(check_local(&page).is_err());
    }

    #[test]
    fn beyond_loopback_a_token_is_needed() {
        let check = |addr: &str, token| Door { addr: addr.parse().unwrap() }.check(token);
        let token = Secret::new("t");
        for loopback in ["127.0.0.1:9090", "127.9.9.9:1", "[::1]:9090", "[::ffff:127.0.0.1]:9090"] {
            assert_eq!(check(loopback, None), Ok(()), "{loopback}");
        }
        for open in ["0.0.0.0:9090", "[::]:9090", "192.0.2.1:9090"] {
            assert!(check(open, None).is_err(), "{open}");
            assert_eq!(check(open, Some(&token)), Ok(()), "{open}");
        }
    }
}
