//! The settings beside the limits: addresses, headers, the store.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::limit::failure_policy;
use crate::config::fault::{Finding, Findings};
use crate::config::place::Place;
use crate::config::raw::{ADMIN, Group, HEADERS, MEMORY, REDIS, STORE, TLS};
use crate::config::scalar;
use crate::config::tree::Node;
use crate::policy::{
    AtCap, HeaderSettings, MemorySettings, OnFailure, ResetForm, Secret, ServerSettings, SharedSettings, StoreSettings,
};
use tidegate_store::redis::{Address, Tls};
use tidegate_store::{RedisSettings, RedisSettingsError, Slot};

/// The most counters that `store.memory.max_keys` may allow; they would take 160 GB.
const KEYS_MAX: u64 = 10_000_000_000;
/// The longest deadline for a call of a shared store.
const TIMEOUT_MS_MAX: u64 = 10_000;
/// The longest token, in bytes.
const TOKEN_BYTES_MAX: usize = 4_096;

/// `headers`.
pub(crate) fn headers(file: &Group<'_, '_>, findings: &mut Findings) -> HeaderSettings {
    let mut settings = HeaderSettings::default();
    let Some(group) = file.value("headers").and_then(|node| Group::read(node, &HEADERS, "'headers'", findings)) else {
        return settings;
    };
    let forms = [("unix", ResetForm::Unix), ("delta", ResetForm::Delta)];
    for (key, setting) in [
        ("x_ratelimit", &mut settings.x_ratelimit),
        ("ietf", &mut settings.ietf),
        ("retry_after", &mut settings.retry_after),
    ] {
        if let Some(value) = group.value(key).and_then(|node| scalar::flag(node, key, findings)) {
            *setting = value;
        }
    }
    if let Some(form) = group.value("reset").and_then(|node| scalar::choice(node, "reset", &forms, &[], findings)) {
        settings.reset = form;
    }
    settings
}

/// `store`, and what it says of limits that do not say what they do while it does not answer.
pub(crate) fn store(file: &Group<'_, '_>, findings: &mut Findings) -> (StoreSettings, Option<OnFailure>) {
    let Some(group) = file.value("store").and_then(|node| Group::read(node, &STORE, "'store'", findings)) else {
        return (StoreSettings::default(), None);
    };
    let backends = [("memory", Backend::Memory), ("redis", Backend::Redis)];
    let backend = group.value("backend").map(|node| scalar::choice(node, "store.backend", &backends, &[], findings));
    let memory = memory(&group, findings);
    let redis = redis(&group, findings);
    let on_failure = group.value("on_failure").and_then(|node| failure_policy(node, findings));
    let settings = match (backend.flatten(), redis) {
        (Some(Backend::Redis), Redis::Settings(redis)) => {
            StoreSettings::Shared(Box::new(SharedSettings { redis: *redis, local: memory }))
        }
        (Some(Backend::Redis), Redis::None) => {
            let message = "'store.backend: redis' needs 'store.redis.url'";
            let hint = "add redis: {url: \"redis://127.0.0.1:6379/0\"}, or url: ${REDIS_URL}";
            findings.push(Finding::new(group.value_place("backend"), message).hint(hint));
            StoreSettings::Memory(memory)
        }
        _ => StoreSettings::Memory(memory),
    };
    (settings, on_failure)
}

#[derive(Clone, Copy)]
enum Backend {
    Memory,
    Redis,
}

/// `store.memory`.
fn memory(store: &Group<'_, '_>, findings: &mut Findings) -> MemorySettings {
    let mut settings = MemorySettings::default();
    let group = store.value("memory").and_then(|node| Group::read(node, &MEMORY, "'store.memory'", findings));
    let Some(memory) = group else { return settings };
    let caps = [("allow", AtCap::Allow), ("deny", AtCap::Deny)];
    if let Some(keys) = memory.value("max_keys").and_then(|node| scalar::whole(node, "max_keys", 1, KEYS_MAX, findings))
    {
        settings.keys_max = keys;
    }
    if let Some(cap) = memory.value("at_cap").and_then(|node| scalar::choice(node, "at_cap", &caps, &[], findings)) {
        settings.at_cap = cap;
    }
    if let Some(names) = memory.value("names").and_then(|node| scalar::flag(node, "names", findings)) {
        settings.names = names;
    }
    settings
}

/// `store.redis`, as far as it could be read.
enum Redis {
    /// It is not there, or has no `url`.
    None,
    /// It has faults, which were told.
    Faulty,
    /// It is whole.
    Settings(Box<RedisSettings>),
}

fn redis(store: &Group<'_, '_>, findings: &mut Findings) -> Redis {
    let Some(node) = store.value("redis") else { return Redis::None };
    let Some(group) = Group::read(node, &REDIS, "'store.redis'", findings) else { return Redis::Faulty };
    let timeout = group.value("timeout_ms").map(|node| scalar::whole(node, "timeout_ms", 1, TIMEOUT_MS_MAX, findings));
    let slots = [("org", false), ("single", true)];
    let single = group.value("slot").map(|node| scalar::choice(node, "slot", &slots, &[], findings));
    let prefix = group.value("prefix").map(|node| (node.place, scalar::text(node, "prefix", findings)));
    let deny_memory =
        group.value("deny_memory").and_then(|node| scalar::flag(node, "deny_memory", findings)).unwrap_or(true);
    let sentinels = group.value("sentinels").map(|node| texts(node, "sentinels", findings));
    let cluster = group.value("cluster").map(|node| cluster(node, findings));
    let tls = group.value("tls").map(|node| tls(node, findings));
    if group.value("url").is_none() && cluster.is_none() {
        return Redis::None;
    }
    let url = group.value("url").map(|node| scalar::text(node, "url", findings));
    let (Some(url), Some(sentinels), Some(cluster), Some(tls)) = (
        url.unwrap_or(Some("")),
        sentinels.unwrap_or_else(|| Some(Vec::new())),
        cluster.unwrap_or_else(|| Some(Vec::new())),
        tls.unwrap_or_else(|| Some(Tls::default())),
    ) else {
        return Redis::Faulty;
    };
    let fault = |place, key: &str, error: RedisSettingsError| {
        Finding::new(place, format!("'store.redis.{key}': {error}")).hint("see store.redis in docs/limits-file.md")
    };
    let mut settings = match RedisSettings::at(Address { url: url.to_owned(), sentinels, cluster, tls }) {
        Ok(settings) => settings,
        Err(error) => {
            let key = match &error {
                RedisSettingsError::Sentinel(_) => "sentinels",
                RedisSettingsError::Node(_) | RedisSettingsError::Cluster(_) => "cluster",
                RedisSettingsError::NoTls | RedisSettingsError::Certificates(_) => "tls",
                RedisSettingsError::Url(_) | RedisSettingsError::Prefix => "url",
            };
            findings.push(fault(group.value_place(key), key, error));
            return Redis::Faulty;
        }
    };
    if let Some((place, prefix)) = prefix {
        let Some(prefix) = prefix else { return Redis::Faulty };
        settings = match settings.with_prefix(prefix) {
            Ok(settings) => settings,
            Err(error) => {
                findings.push(fault(place, "prefix", error));
                return Redis::Faulty;
            }
        };
    }
    if let Some(timeout_ms) = timeout.flatten() {
        settings.timeout = Duration::from_millis(timeout_ms);
    }
    if single.flatten() == Some(true) {
        settings.slot = Slot::Single;
    }
    settings.deny_memory = deny_memory;
    Redis::Settings(Box::new(settings))
}

/// `store.redis.tls`.
fn tls(node: &Node<'_>, findings: &mut Findings) -> Option<Tls> {
    let group = Group::read(node, &TLS, "'store.redis.tls'", findings)?;
    let mut pem = |key: &str| match group.value(key) {
        None => Some(None),
        Some(node) => {
            let text = scalar::text(node, key, findings)?;
            if text.contains("-----BEGIN ") {
                return Some(Some(text.to_owned()));
            }
            let message = format!("'{key}' has to be PEM, which begins with -----BEGIN");
            findings
                .push(Finding::new(node.place, message).hint(format!("write {key}: \"file:/etc/tidegate/{key}.pem\"")));
            None
        }
    };
    let (ca, cert, key) = (pem("ca")?, pem("cert")?, pem("key")?);
    match (cert, key) {
        (Some(cert), Some(key)) => Some(Tls { ca, client: Some((cert, key)) }),
        (None, None) => Some(Tls { ca, client: None }),
        _ => {
            let message = "'cert' and 'key' go together: the certificate that the client shows, and its key";
            findings.push(Finding::new(group.place, message).hint("add the other one, or remove both"));
            None
        }
    }
}

/// `store.redis.cluster`.
fn cluster(node: &Node<'_>, findings: &mut Findings) -> Option<Vec<String>> {
    let urls = texts(node, "cluster", findings)?;
    if urls.is_empty() {
        let message = "'cluster' names no server";
        findings.push(Finding::new(node.place, message).hint("name some: ['redis://10.0.0.1:6379', …]"));
        return None;
    }
    Some(urls)
}

/// A list of texts.
fn texts(node: &Node<'_>, key: &str, findings: &mut Findings) -> Option<Vec<String>> {
    let items = scalar::list(node, key, "write each as an item: ['redis://10.0.0.1:26379', …]", findings)?;
    items.iter().map(|item| scalar::text(item, key, findings).map(str::to_owned)).collect()
}

/// `listen` and `admin`, and where `admin.addr` stands.
pub(crate) fn server(file: &Group<'_, '_>, findings: &mut Findings) -> (ServerSettings, Place) {
    let mut settings = ServerSettings::default();
    let mut admin_place = file.place;
    if let Some(addr) = file.value("listen").and_then(|node| address(node, "listen", findings)) {
        settings.listen = addr;
    }
    if let Some(admin) = file.value("admin").and_then(|node| Group::read(node, &ADMIN, "'admin'", findings)) {
        admin_place = admin.value("addr").map_or(admin.place, |node| node.place);
        if let Some(addr) = admin.value("addr").and_then(|node| address(node, "addr", findings)) {
            settings.admin_addr = addr;
        }
        settings.admin_token = admin.value("token").and_then(|node| token(node, findings));
    }
    if collide(&settings.listen, &settings.admin_addr) {
        let message = "'admin.addr' and 'listen' are the same address, or one is all addresses with the same port";
        let place = if file.value("admin").is_some() { admin_place } else { file.value_place("listen") };
        findings.push(Finding::new(place, message).hint("give the admin listener a port of its own"));
    }
    (settings, admin_place)
}

/// Whether two listeners cannot both have their addresses.
fn collide(one: &str, other: &str) -> bool {
    let parts = |address: &str| {
        let (host, port) = address.rsplit_once(':')?;
        let host = if host.eq_ignore_ascii_case("localhost") { "127.0.0.1" } else { host.trim_matches(['[', ']']) };
        Some((host.to_ascii_lowercase(), port.parse::<u16>().ok()?))
    };
    // Which addresses a name has is not known here.
    let takes = |host: &str, other: &str| {
        host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified()) && other.parse::<IpAddr>().is_ok()
    };
    match (parts(one), parts(other)) {
        (Some((host, port)), Some((other_host, other_port))) => {
            port == other_port
                && port != 0
                && (host == other_host || takes(&host, &other_host) || takes(&other_host, &host))
        }
        _ => false,
    }
}

/// `host:port`, where the host is a name, an IPv4 address, or an IPv6 address in brackets.
fn address(node: &Node<'_>, key: &str, findings: &mut Findings) -> Option<String> {
    let hint = "write host:port, for example 127.0.0.1:8080";
    let wanted = "an address like 127.0.0.1:8080";
    let scalar = scalar::scalar(node, key, wanted, findings)?;
    let text = scalar.text();
    if text.parse::<SocketAddr>().is_ok() || is_host_and_port(text) {
        return Some(text.to_owned());
    }
    let hint = match text.strip_prefix(':') {
        Some(port) if port.parse::<u16>().is_ok() => "write 0.0.0.0 before the ':' to listen on all interfaces",
        _ => hint,
    };
    let message = format!("'{key}' has to be {wanted}, not {}", scalar::shown(scalar));
    findings.push(Finding::new(node.place, message).hint(hint));
    None
}

fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let port_fits = port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    // All digits and dots is an IPv4 address with a slip in it, not a name.
    let is_name = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        && host.bytes().any(|byte| byte.is_ascii_alphabetic());
    port_fits && is_name && (1..=253).contains(&host.len())
}

/// Whether an address names an IP address itself, and not a name that has one.
pub(crate) fn is_ip(address: &str) -> bool {
    address.parse::<SocketAddr>().is_ok()
}

/// Whether only this machine can reach an address. A name that is not `localhost` is not known to.
pub(crate) fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// The token; no message shows it.
fn token(node: &Node<'_>, findings: &mut Findings) -> Option<Secret> {
    let scalar = scalar::scalar(node, "token", "a secret like ${ADMIN_TOKEN} or file:/run/secrets/token", findings)?;
    let text = scalar.text();
    let problem = if text.is_empty() {
        Some("is empty")
    } else if text.len() > TOKEN_BYTES_MAX {
        Some("is longer than 4096 bytes")
    } else if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Some("holds characters that a header cannot carry")
    } else {
        None
    };
    match problem {
        None => Some(Secret::new(text)),
        Some(problem) => {
            findings.push(
                Finding::new(node.place, format!("'token' {problem}"))
                    .hint("use letters and digits, for example the output of `openssl rand -hex 32`"),
            );
            None
        }
    }
}
