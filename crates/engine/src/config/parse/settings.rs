//! The settings beside the limits: addresses, headers, the store.

use std::net::{IpAddr, SocketAddr};

use crate::config::fault::{Finding, Findings};
use crate::config::place::Place;
use crate::config::raw::{ADMIN, Group, HEADERS, MEMORY, STORE};
use crate::config::scalar;
use crate::config::tree::Node;
use crate::policy::{AtCap, HeaderSettings, MemorySettings, ResetForm, Secret, ServerSettings, StoreSettings};

/// The most counters that `store.memory.max_keys` may allow; they would take 160 GB.
const KEYS_MAX: u64 = 10_000_000_000;
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

/// `store`.
pub(crate) fn store(file: &Group<'_, '_>, findings: &mut Findings) -> StoreSettings {
    let mut settings = MemorySettings::default();
    let Some(group) = file.value("store").and_then(|node| Group::read(node, &STORE, "'store'", findings)) else {
        return StoreSettings::Memory(settings);
    };
    if let Some(node) = group.value("backend") {
        scalar::choice(node, "store.backend", &[("memory", ())], &["redis"], findings);
    }
    let memory = group.value("memory").and_then(|node| Group::read(node, &MEMORY, "'store.memory'", findings));
    if let Some(memory) = memory {
        let caps = [("allow", AtCap::Allow), ("deny", AtCap::Deny)];
        if let Some(keys) =
            memory.value("max_keys").and_then(|node| scalar::whole(node, "max_keys", 1, KEYS_MAX, findings))
        {
            settings.keys_max = keys;
        }
        if let Some(cap) = memory.value("at_cap").and_then(|node| scalar::choice(node, "at_cap", &caps, &[], findings))
        {
            settings.at_cap = cap;
        }
        if let Some(names) = memory.value("names").and_then(|node| scalar::flag(node, "names", findings)) {
            settings.names = names;
        }
    }
    StoreSettings::Memory(settings)
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
