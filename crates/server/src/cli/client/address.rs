//! Where an admin listener is.

use std::fmt;
use std::str::FromStr;

use http::uri::Uri;

/// Where no port is given.
const PORT: u16 = 9090;

/// The host and port of an admin listener: `http://127.0.0.1:9090`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdminAddress {
    /// As it stands in a URL: an IPv6 address in brackets.
    host: String,
    port: u16,
}

impl AdminAddress {
    /// What to connect to.
    pub(crate) fn socket(&self) -> (&str, u16) {
        let bare = self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        (bare.unwrap_or(&self.host), self.port)
    }
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl FromStr for AdminAddress {
    type Err = String;

    /// Reads `http://HOST:PORT`, `HOST:PORT` or `HOST`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write http://HOST:PORT, for example http://127.0.0.1:9090".to_owned();
        if text.starts_with("https://") {
            return Err("the admin listener speaks plain HTTP; reach one on another machine through a tunnel, \
                        for example `ssh -L 9090:127.0.0.1:9090 HOST`"
                .to_owned());
        }
        let bare = text.strip_prefix("http://").unwrap_or(text);
        let uri: Uri = format!("http://{bare}").parse().map_err(|_| wrong())?;
        let authority = uri.authority().ok_or_else(wrong)?;
        let only_authority = uri.path() == "/" && uri.query().is_none() && !authority.as_str().contains('@');
        let host = authority.host();
        if host.is_empty() || !only_authority {
            return Err(wrong());
        }
        let port = match authority.as_str().strip_prefix(host) {
            Some("") => PORT,
            Some(rest) => rest.strip_prefix(':').and_then(|port| port.parse().ok()).ok_or_else(wrong)?,
            None => return Err(wrong()),
        };
        Ok(Self { host: host.to_owned(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let read = |text: &str| text.parse::<AdminAddress>().map(|address| address.to_string());
        for (text, address) in [
            ("http://127.0.0.1:9191", "127.0.0.1:9191"),
            ("http://127.0.0.1:9191/", "127.0.0.1:9191"),
            ("localhost:1", "localhost:1"),
            ("gate", "gate:9090"),
            ("http://[::1]:9090", "[::1]:9090"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(address), "{text}");
        }
        for wrong in ["", "http://", "ftp://x", "http://a/b", "a@b:1", "a:x", "a:99999", "http://x/?q"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read("https://x").unwrap_err().contains("tunnel"));
    }

    #[test]
    fn an_ipv6_address_is_connected_to_without_its_brackets() {
        assert_eq!("[::1]:7".parse::<AdminAddress>().unwrap().socket(), ("::1", 7));
    }
}
