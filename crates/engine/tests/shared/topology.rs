//! Where the server may be: behind sentinels, behind TLS, at a socket, in another database, with an ACL.

use tidegate::{Engine, Fault, config};
use tidegate_testkit::servers::{ClientCertificates, Flavor, Sentinel, Server};

use super::{HIERARCHY, admits, until};

/// An engine with these words under `store.redis`.
fn engine_at(redis: &str) -> Engine {
    let text = format!("store: {{backend: redis, redis: {{timeout_ms: 200, {redis}}}}}\nlimits:\n{HIERARCHY}");
    Engine::new(config::parse(&text, &config::Source::named("limits.yaml")).unwrap().policy)
}

async fn admits_three(engine: &Engine) {
    engine.connect().await.unwrap();
    for nth in 1..=5 {
        assert_eq!(admits(engine, "acme", "a1").await, nth <= 3, "{nth}: {:?}", engine.shared_store());
    }
    let health = engine.shared_store().unwrap();
    assert!(health.degraded.iter().all(|(_, count)| *count == 0), "{health:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_another_database() {
    let server = Server::start(Flavor::Redis70);
    admits_three(&engine_at(&format!("url: \"{}/3\"", server.url().trim_end_matches('/')))).await;
    until("three counters, and who is there", async || server.info("db3").starts_with("keys=4,")).await;
    assert_eq!(server.cli(&["DBSIZE"]).trim(), "0", "nothing in the first");
}

#[tokio::test(flavor = "multi_thread")]
async fn by_resp3() {
    let server = Server::start(Flavor::Redis70);
    admits_three(&engine_at(&format!("url: \"{}?protocol=resp3\"", server.url()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_a_socket() {
    let server = Server::builder(Flavor::Valkey81).unix_socket().start();
    admits_three(&engine_at(&format!("url: \"{}\"", server.unix_url()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_user_that_may_just_what_is_needed() {
    let rules = "~ratelimit:* resetchannels +@read +@write +@scripting +@connection";
    let enough = format!("{rules} +time");
    let server = Server::builder(Flavor::Redis70)
        .acl_user("tidegate", "secret", &enough)
        .acl_user("timeless", "secret", rules)
        .acl_user("elsewhere", "secret", &enough.replace("~ratelimit:*", "~other:*"))
        .start();
    admits_three(&engine_at(&format!("url: \"{}\"", server.url_as("tidegate")))).await;
    for user in ["timeless", "elsewhere"] {
        let engine = engine_at(&format!("url: \"{}\"", server.url_as(user)));
        assert!(admits(&engine, "acme", "a1").await);
        until("known to be forbidden", async || engine.shared_store().unwrap().fault == Some(Fault::Forbidden)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_tls_with_a_ca_of_its_own() {
    let server = Server::builder(Flavor::Redis70).tls(ClientCertificates::NotAsked).start();
    let certificates = server.tls().unwrap();
    let ca = certificates.ca();
    admits_three(&engine_at(&format!("url: \"{}\", tls: {{ca: \"file:{}\"}}", server.url(), ca.display()))).await;
    let distrustful = engine_at(&format!("url: \"{}\"", server.url()));
    assert!(distrustful.connect().await.is_err(), "whom nobody vouches for is not believed");
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_tls_that_asks_who_we_are() {
    let server = Server::builder(Flavor::Redis70).tls(ClientCertificates::Required).start();
    let files = server.tls().unwrap();
    let (ca, cert, key) = (files.ca(), files.client_certificate(), files.client_key());
    let ca = format!("ca: \"file:{}\"", ca.display());
    let client = format!("cert: \"file:{}\", key: \"file:{}\"", cert.display(), key.display());
    admits_three(&engine_at(&format!("url: \"{}\", tls: {{{ca}, {client}}}", server.url()))).await;
    let nobody = engine_at(&format!("url: \"{}\", tls: {{{ca}}}", server.url()));
    assert!(nobody.connect().await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_sentinels_and_after_a_failover() {
    let sentinels = Sentinel::start(Flavor::Redis70);
    let urls: Vec<String> = sentinels.sentinel_urls().iter().map(|url| format!("\"{url}\"")).collect();
    let name = sentinels.master_name();
    let engine = engine_at(&format!("url: \"redis://{name}\", sentinels: [{}]", urls.join(", ")));
    admits_three(&engine).await;
    let old = sentinels.kill_primary();
    assert!(admits(&engine, "other", "a1").await, "nobody is refused meanwhile");
    sentinels.wait_for_failover(old);
    let took = until("at the new primary", async || {
        engine.decide(&tidegate::Request::new(&[("org", "b"), ("agent", "b")])).await.degraded().is_none()
    })
    .await;
    assert!(took < std::time::Duration::from_secs(2), "{took:?}");
}
