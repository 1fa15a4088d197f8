use super::*;

fn parts(build: impl FnOnce(http::request::Builder) -> http::request::Builder) -> Parts {
    build(http::Request::builder()).body(()).unwrap().into_parts().0
}

fn pairs(extractor: &impl Extractor, parts: &Parts) -> Vec<(String, String)> {
    let mut attributes = Attributes::new();
    extractor.extract(parts, &mut attributes);
    attributes.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn value(extractor: &impl Extractor, parts: &Parts) -> Option<String> {
    pairs(extractor, parts).pop().map(|(_, value)| value)
}

const ORG: HeaderName = HeaderName::from_static("x-org");

#[test]
fn a_header_becomes_an_attribute() {
    let extractor = header("org", ORG);
    let sent = parts(|request| request.header("X-Org", "acme").header("x-org", "other").header("x-user", "u"));
    assert_eq!(pairs(&extractor, &sent), [("org".to_owned(), "acme".to_owned())]);
    assert_eq!(value(&extractor, &parts(|request| request)), None);
    assert_eq!(value(&extractor, &parts(|request| request.header("x-org", ""))).as_deref(), Some(""));
}

#[test]
fn a_header_that_is_no_text_still_counts() {
    let sent = parts(|request| request.header("x-org", &b"a\xff"[..]));
    assert_eq!(value(&header("org", ORG), &sent).as_deref(), Some("a\u{fffd}"));
    let sent = parts(|request| request.header("x-org", "zürich".as_bytes()));
    assert_eq!(value(&header("org", ORG), &sent).as_deref(), Some("zürich"));
}

#[derive(Clone)]
struct Claims {
    org: Option<String>,
}

#[test]
fn an_extension_becomes_an_attribute() {
    let extractor = extension("org", |claims: &Claims| claims.org.as_deref().map(Cow::from));
    let with = |org: Option<&str>| parts(|request| request.extension(Claims { org: org.map(str::to_owned) }));
    assert_eq!(value(&extractor, &with(Some("acme"))).as_deref(), Some("acme"));
    assert_eq!(value(&extractor, &with(None)), None);
    assert_eq!(value(&extractor, &parts(|request| request)), None);
}

#[test]
fn a_peer_address_is_counted_by_the_network_that_one_host_owns() {
    let written = |bits: u8, address: &str| {
        let address: IpAddr = address.parse().unwrap();
        let extractor = peer_address("ip", |address: &IpAddr| Some(*address)).ipv6_prefix_bits(bits);
        value(&extractor, &parts(|request| request.extension(address))).unwrap()
    };
    assert_eq!(written(64, "192.0.2.7"), "192.0.2.7");
    assert_eq!(written(64, "::ffff:192.0.2.7"), "192.0.2.7");
    assert_eq!(written(64, "2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
    assert_eq!(written(48, "2001:db8:1:2:3:4:5:6"), "2001:db8:1::/48");
    assert_eq!(written(127, "::ff"), "::fe/127");
    assert_eq!(written(128, "2001:db8::1"), "2001:db8::1");
    assert_eq!(written(200, "2001:db8::1"), "2001:db8::1");
    assert_eq!(written(0, "2001:db8::1"), "::/0");
    let default = peer_address("ip", |address: &IpAddr| Some(*address));
    let host: IpAddr = "2001:db8:1:2:3:4:5:6".parse().unwrap();
    assert_eq!(value(&default, &parts(|request| request.extension(host))).as_deref(), Some("2001:db8:1:2::/64"));
    assert_eq!(value(&default, &parts(|request| request)), None);
}

#[test]
fn a_path_is_known_by_the_longest_prefix_of_whole_segments() {
    let extractor = path_prefix("route", ["/v1", "/v1/chat/", "/v1/chat/completions"]);
    let route = |path: &str| value(&extractor, &parts(|request| request.uri(path)));
    assert_eq!(route("/v1/chat/completions").as_deref(), Some("/v1/chat/completions"));
    assert_eq!(route("/v1/chat/completions/7?n=1").as_deref(), Some("/v1/chat/completions"));
    assert_eq!(route("/v1/chat").as_deref(), Some("/v1/chat/"));
    assert_eq!(route("/v1/chats").as_deref(), Some("/v1"));
    assert_eq!(route("/v1?x=/v1/chat").as_deref(), Some("/v1"));
    assert_eq!(route("/v10"), None);
    assert_eq!(route("/"), None);
    let everything = path_prefix("route", ["/"]);
    assert_eq!(value(&everything, &parts(|request| request.uri("/any/path"))).as_deref(), Some("/"));
}

#[test]
fn a_method_that_nobody_defined_is_no_new_value() {
    let of = |name: &str| value(&method("method"), &parts(|request| request.method(name))).unwrap();
    for name in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"] {
        assert_eq!(of(name), name);
    }
    assert_eq!(of("BREW1"), "OTHER");
    assert_eq!(of("get"), "OTHER");
}

#[test]
fn of_an_attribute_that_two_extractors_give_the_first_counts() {
    let extractor = header("org", ORG)
        .and(|parts: &Parts| Attributes::new().with("org", "from the path").with("path", parts.uri.path().to_owned()))
        .and(method("method"));
    let named = parts(|request| request.uri("/x").header("x-org", "acme"));
    let expected = [("org", "acme"), ("path", "/x"), ("method", "GET")];
    assert_eq!(pairs(&extractor, &named), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let nameless = parts(|request| request.uri("/x"));
    assert_eq!(pairs(&extractor, &nameless)[0].1, "from the path");
}

#[test]
fn attributes_are_bounded() {
    let many = |_: &Parts| {
        let mut attributes = Attributes::new();
        for number in 0..10_000 {
            attributes.push(format!("a{number}"), "v");
        }
        attributes
    };
    let found = pairs(&many, &parts(|request| request));
    assert_eq!(found.len(), crate::ATTRIBUTES_MAX);
    assert_eq!(found[0].0, "a0");
}
