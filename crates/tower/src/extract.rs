//! Who a request comes from and what it wants, read from its head.
//!
//! An [`Extractor`] is one of those here, a closure from [`Parts`] to [`Attributes`], or several of
//! them joined with [`Extractor::and`].
//!
//! # What can be trusted
//! A limit is only as good as the attribute it counts by: who can choose the value chooses the
//! counter, and has a fresh one whenever they like.
//! - A [`header`] is whatever the sender wrote, unless something in front of this service removes it
//!   from what comes from outside and sets it anew. Never count by `X-Forwarded-For` or an identity
//!   header that a client can reach.
//! - An [`extension`] that an authentication layer has put there is the safe source for an identity.
//!   That layer has to run first.
//! - A [`peer_address`] is the other end of the connection: behind a proxy it is the proxy.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv6Addr};

use http::header::HeaderName;
use http::request::Parts;

use crate::attributes::Attributes;

/// Reads attributes from a request's head.
///
/// Every `Fn(&Parts) -> Attributes<'static>` is one. Write the type of a closure's argument
/// (`|parts: &Parts| …`): the compiler does not infer it here.
pub trait Extractor {
    /// Adds what `parts` says to `attributes`; adds nothing where it says nothing.
    fn extract<'a>(&'a self, parts: &'a Parts, attributes: &mut Attributes<'a>);

    /// This extractor, then `next`. Of an attribute that both give, this one's value counts.
    fn and<E: Extractor>(self, next: E) -> And<Self, E>
    where
        Self: Sized,
    {
        And { first: self, next }
    }
}

impl<F: Fn(&Parts) -> Attributes<'static>> Extractor for F {
    fn extract<'a>(&'a self, parts: &'a Parts, attributes: &mut Attributes<'a>) {
        attributes.append(self(parts));
    }
}

/// Two extractors, one after the other: see [`Extractor::and`].
#[derive(Clone, Debug)]
pub struct And<A, B> {
    first: A,
    next: B,
}

impl<A: Extractor, B: Extractor> Extractor for And<A, B> {
    fn extract<'a>(&'a self, parts: &'a Parts, attributes: &mut Attributes<'a>) {
        self.first.extract(parts, attributes);
        self.next.extract(parts, attributes);
    }
}

/// The value of the header `name`, as `attribute`; nothing where the header is absent.
///
/// Of several headers of that name the first counts. Bytes that are not UTF-8 become U+FFFD: such a
/// caller shares a counter with others like it, and never goes without one.
///
/// Only for headers that the sender cannot choose: see [the module's page](self).
pub fn header(attribute: impl Into<Cow<'static, str>>, name: HeaderName) -> Header {
    Header { attribute: attribute.into(), name }
}

/// See [`header`].
#[derive(Clone, Debug)]
pub struct Header {
    attribute: Cow<'static, str>,
    name: HeaderName,
}

impl Extractor for Header {
    fn extract<'a>(&'a self, parts: &'a Parts, attributes: &mut Attributes<'a>) {
        if let Some(value) = parts.headers.get(&self.name) {
            attributes.push(&*self.attribute, String::from_utf8_lossy(value.as_bytes()));
        }
    }
}

/// What `read` finds in the request's extension of type `T`, as `attribute`; nothing where there is
/// no such extension.
///
/// ```
/// # use tidegate_tower::extract;
/// #[derive(Clone)]
/// struct Claims { org: String }
///
/// let org = extract::extension("org", |claims: &Claims| Some(claims.org.as_str().into()));
/// # fn is_extractor(_: impl tidegate_tower::Extractor) {}
/// # is_extractor(org);
/// ```
pub fn extension<T, F>(attribute: impl Into<Cow<'static, str>>, read: F) -> Extension<T, F>
where
    T: Send + Sync + 'static,
    F: Fn(&T) -> Option<Cow<'_, str>>,
{
    Extension { attribute: attribute.into(), read, of: PhantomData }
}

/// See [`extension`].
#[derive(Clone, Debug)]
pub struct Extension<T, F> {
    attribute: Cow<'static, str>,
    read: F,
    of: PhantomData<fn(&T)>,
}

impl<T, F> Extractor for Extension<T, F>
where
    T: Send + Sync + 'static,
    F: Fn(&T) -> Option<Cow<'_, str>>,
{
    fn extract<'a>(&'a self, parts: &'a Parts, attributes: &mut Attributes<'a>) {
        if let Some(value) = parts.extensions.get::<T>().and_then(&self.read) {
            attributes.push(&*self.attribute, value);
        }
    }
}

/// The address at the other end of the connection, as `attribute`, where the server has put it into
/// the extensions as a `T`.
///
/// - axum: `|peer: &ConnectInfo<SocketAddr>| Some(peer.0.ip())`, with the router served by
///   `into_make_service_with_connect_info`
/// - tonic: `|peer: &TcpConnectInfo| peer.remote_addr().map(|address| address.ip())`
///
/// IPv4 is written as `192.0.2.7`, also where it came mapped into IPv6. An IPv6 host usually owns a
/// whole /64, so that is what is counted: `2001:db8:1:2::/64`; [`PeerAddress::ipv6_prefix_bits`]
/// changes it.
pub fn peer_address<T, F>(attribute: impl Into<Cow<'static, str>>, read: F) -> PeerAddress<T, F>
where
    T: Send + Sync + 'static,
    F: Fn(&T) -> Option<IpAddr>,
{
    PeerAddress { attribute: attribute.into(), read, ipv6_prefix_bits: 64, of: PhantomData }
}

/// See [`peer_address`].
#[derive(Clone, Debug)]
pub struct PeerAddress<T, F> {
    attribute: Cow<'static, str>,
    read: F,
    ipv6_prefix_bits: u8,
    of: PhantomData<fn(&T)>,
}

impl<T, F> PeerAddress<T, F> {
    /// How many leading bits of an IPv6 address tell callers apart, 0 to 128 (more count as 128).
    #[must_use]
    pub fn ipv6_prefix_bits(self, bits: u8) -> Self {
        Self { ipv6_prefix_bits: bits.min(128), ..self }
    }
}

impl<T, F> Extractor for PeerAddress<T, F>
where
    T: Send + Sync + 'static,
    F: Fn(&T) -> Option<IpAddr>,
{
    fn extract<'a>(&'a self, parts: &'a Parts, attributes: &mut Attributes<'a>) {
        if let Some(address) = parts.extensions.get::<T>().and_then(&self.read) {
            attributes.push(&*self.attribute, network(address, self.ipv6_prefix_bits));
        }
    }
}

fn network(address: IpAddr, ipv6_prefix_bits: u8) -> String {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) if ipv6_prefix_bits >= 128 => v6.to_string(),
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(ipv6_prefix_bits)).unwrap_or(0);
            format!("{}/{ipv6_prefix_bits}", Ipv6Addr::from_bits(v6.to_bits() & mask))
        }
    }
}

/// Which of `prefixes` the path begins with, as `attribute`; nothing where it begins with none.
///
/// Whole segments are compared: `/v1/chat` covers `/v1/chat` and `/v1/chat/completions`, not
/// `/v1/chats`. The longest of several counts. The attribute's value is the prefix as it was given
/// here, never the path, so a caller cannot invent values. For gRPC the path is
/// `/package.Service/Method`.
///
/// The path is compared as the layer sees it: nothing is decoded, and inside a nested axum router only
/// the rest of the path is there. Where the service behind the layer cleans up paths (`//`, `/./`,
/// `%61`) before it routes, do the same in front of the layer.
pub fn path_prefix<P: Into<String>>(
    attribute: impl Into<Cow<'static, str>>,
    prefixes: impl IntoIterator<Item = P>,
) -> PathPrefix {
    let mut prefixes: Vec<String> = prefixes.into_iter().map(Into::into).collect();
    prefixes.sort_by_key(|prefix| std::cmp::Reverse(prefix.trim_end_matches('/').len()));
    PathPrefix { attribute: attribute.into(), prefixes }
}

/// See [`path_prefix`].
#[derive(Clone, Debug)]
pub struct PathPrefix {
    attribute: Cow<'static, str>,
    prefixes: Vec<String>,
}

impl Extractor for PathPrefix {
    fn extract<'a>(&'a self, parts: &'a Parts, attributes: &mut Attributes<'a>) {
        let path = parts.uri.path();
        let covers = |prefix: &&String| {
            let rest = path.strip_prefix(prefix.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if let Some(prefix) = self.prefixes.iter().find(covers) {
            attributes.push(&*self.attribute, prefix.as_str());
        }
    }
}

/// The method, as `attribute`: one of the nine that HTTP and PATCH define, else `OTHER`, so that a
/// caller cannot invent values.
pub fn method(attribute: impl Into<Cow<'static, str>>) -> Method {
    Method { attribute: attribute.into() }
}

/// See [`method`].
#[derive(Clone, Debug)]
pub struct Method {
    attribute: Cow<'static, str>,
}

impl Extractor for Method {
    fn extract<'a>(&'a self, parts: &'a Parts, attributes: &mut Attributes<'a>) {
        let name = match parts.method {
            http::Method::GET => "GET",
            http::Method::HEAD => "HEAD",
            http::Method::POST => "POST",
            http::Method::PUT => "PUT",
            http::Method::PATCH => "PATCH",
            http::Method::DELETE => "DELETE",
            http::Method::OPTIONS => "OPTIONS",
            http::Method::CONNECT => "CONNECT",
            http::Method::TRACE => "TRACE",
            _ => "OTHER",
        };
        attributes.push(&*self.attribute, name);
    }
}

#[cfg(test)]
mod tests;
