//! The limits file is read anew however it is replaced, and never while it is not good.
//!
//! The file system's word arrives when it does: these tests wait for what should happen, and fail
//! when it has not happened in time.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tidegate::Engine;
use tidegate_server::reload::{Cause, ReloadError, Reloads};
use tidegate_server::{LimitsFile, Server, Settings};

use crate::support::{PATIENCE, get, post, send};

struct Serving {
    folder: TempDir,
    engine: Engine,
    reloads: Reloads,
    admin: std::net::SocketAddr,
    check: std::net::SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A server on the file that `place` puts into a folder of its own.
async fn serve(place: impl FnOnce(&Path) -> PathBuf) -> Serving {
    let folder = tempfile::tempdir().unwrap();
    let (file, loaded) = LimitsFile::open(place(folder.path())).unwrap();
    let free = || Some("127.0.0.1:0".to_owned());
    let settings = Settings { listen: free(), admin: free(), file: Some(file), ..Settings::new() };
    let server = Server::bind(loaded.policy, settings).await.unwrap();
    let (engine, reloads) = (server.engine().clone(), server.reloads().unwrap());
    let (admin, check) = (server.admin_addr(), server.check_addr());
    let task = tokio::spawn(server.run(std::future::pending()));
    let serving = Serving { folder, engine, reloads, admin, check, task };
    // Answered by the same task that watches, so the watch stands once this has returned.
    serving.reloads.reload(Cause::Admin).await.unwrap();
    serving
}

fn limits(quota: u64) -> String {
    format!(
        "limits:\n  - {{ name: everyone, per: [], rate: {quota}/h }}\n  - {{ name: org, per: [org], rate: 100/h }}\n"
    )
}

fn plain(folder: &Path) -> PathBuf {
    let path = folder.join("limits.yaml");
    fs::write(&path, limits(10)).unwrap();
    path
}

impl Serving {
    fn quota(&self) -> u64 {
        self.engine.policy().rules[0].limit.capacity()
    }

    async fn metric(&self, name: &str) -> u64 {
        let metrics = send(self.admin, &get("/metrics")).await;
        let line = metrics.text().lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Until the limit in force is this.
    async fn until_quota(&self, quota: u64) {
        let changed = async {
            while self.quota() != quota {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, changed).await.unwrap_or_else(|_| panic!("still {}", self.quota()));
    }

    async fn until_refused(&self, failures: u64) {
        let refused = async {
            while self.metric("tidegate_reloads_total{result=\"failure\"}").await < failures {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, refused).await.expect("the file is refused");
    }
}

#[tokio::test]
async fn a_file_that_is_renamed_over() {
    let serving = serve(plain).await;
    for quota in [20, 30] {
        let new = serving.folder.path().join("new");
        fs::write(&new, limits(quota)).unwrap();
        fs::rename(&new, serving.folder.path().join("limits.yaml")).unwrap();
        serving.until_quota(quota).await;
    }
}

#[tokio::test]
async fn a_file_that_is_written_in_place() {
    let serving = serve(plain).await;
    for quota in [20, 30] {
        fs::write(serving.folder.path().join("limits.yaml"), limits(quota)).unwrap();
        serving.until_quota(quota).await;
    }
}

#[tokio::test]
async fn a_folder_whose_link_is_swapped() {
    // As Kubernetes mounts a ConfigMap: limits.yaml → ..data/limits.yaml, ..data → ..version.
    let version = |folder: &Path, name: &str, quota: u64| {
        fs::create_dir(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("limits.yaml"), limits(quota)).unwrap();
        symlink(name, folder.join("..data_tmp")).unwrap();
        fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
    };
    let serving = serve(|folder| {
        version(folder, "..1", 10);
        symlink("..data/limits.yaml", folder.join("limits.yaml")).unwrap();
        folder.join("limits.yaml")
    })
    .await;
    let folder = serving.folder.path().to_owned();
    for (name, before, quota) in [("..2", "..1", 20), ("..3", "..2", 30)] {
        version(&folder, name, quota);
        fs::remove_dir_all(folder.join(before)).unwrap();
        serving.until_quota(quota).await;
    }
}

#[tokio::test]
async fn a_link_that_leads_through_another_folder() {
    // No watched folder changes when `current` is swapped: this is found by looking.
    let serving = serve(|folder| {
        for (name, quota) in [("a", 10), ("b", 20)] {
            fs::create_dir_all(folder.join("releases").join(name)).unwrap();
            fs::write(folder.join("releases").join(name).join("x.yaml"), limits(quota)).unwrap();
        }
        fs::create_dir(folder.join("etc")).unwrap();
        symlink("a", folder.join("releases/current")).unwrap();
        symlink("../releases/current/x.yaml", folder.join("etc/limits.yaml")).unwrap();
        folder.join("etc/limits.yaml")
    })
    .await;
    let releases = serving.folder.path().join("releases");
    symlink("b", releases.join("new")).unwrap();
    fs::rename(releases.join("new"), releases.join("current")).unwrap();
    serving.until_quota(20).await;
    fs::write(releases.join("b/x.yaml"), limits(30)).unwrap();
    serving.until_quota(30).await;
}

#[tokio::test]
async fn a_bad_file_changes_nothing_and_shows() {
    let serving = serve(plain).await;
    let path = serving.folder.path().join("limits.yaml");
    fs::write(&path, "limits: [{name: a, per: [org], rate: 5/fortnight}, {name: b, pre: [], rate: 1/min}]").unwrap();
    serving.until_refused(1).await;
    assert_eq!(serving.quota(), 10);
    assert_eq!(serving.metric("tidegate_limits_file_refused").await, 1);
    let answer = send(serving.admin, &post("/-/reload", "")).await;
    assert_eq!(answer.status, 422);
    let detail = answer.problem();
    assert!(detail.contains("fortnight") && detail.contains("'pre'"), "all faults are told: {detail}");
    let told = serving.reloads.reload(Cause::Signal).await.unwrap_err();
    assert!(matches!(&told, ReloadError::Faults(faults) if faults.faults.len() == 3), "{told}");

    fs::remove_file(&path).unwrap();
    let gone = serving.reloads.reload(Cause::Signal).await.unwrap_err();
    assert!(gone.to_string().contains("limits.yaml"), "{gone}");
    assert_eq!(serving.quota(), 10, "nor does a file that is gone");

    fs::write(&path, limits(40)).unwrap();
    serving.until_quota(40).await;
    assert_eq!(serving.metric("tidegate_limits_file_refused").await, 0);
}

#[tokio::test]
async fn a_file_that_is_still_being_written_is_waited_for() {
    let serving = serve(plain).await;
    // What is written first is a valid file by itself, without the second limit.
    let text = limits(20);
    let (begin, end) = text.split_at(text.find("  - { name: org").unwrap());
    let mut file = fs::File::create(serving.folder.path().join("limits.yaml")).unwrap();
    file.write_all(begin.as_bytes()).unwrap();
    // Longer than a file has to stay as it is when nobody has it open.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!((serving.quota(), serving.engine.policy().rules.len()), (10, 2), "half a file was taken");
    file.write_all(end.as_bytes()).unwrap();
    drop(file);
    serving.until_quota(20).await;
    assert_eq!(serving.engine.policy().rules.len(), 2);
    assert_eq!(serving.metric("tidegate_reloads_total{result=\"failure\"}").await, 0);
}

#[tokio::test]
async fn counters_survive_a_reload() {
    let serving = serve(plain).await;
    let check = || async { send(serving.check, &post("/v1/check", r#"{"attributes": {"org": "acme"}}"#)).await.json() };
    assert_eq!(check().await["limits"][0]["remaining"], 99);
    let text = "limits:
  - { name: everyone, per: [], rate: 10/h }
  - { name: org, per: [org], rate: 200/h }
  - { name: agent, per: [agent], rate: 5/h }
";
    fs::write(serving.folder.path().join("limits.yaml"), text).unwrap();
    let answer = send(serving.admin, &post("/-/reload", "")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(
        answer.json(),
        json!({"kept": ["org", "everyone"], "added": ["agent"], "removed": [], "needs_restart": []})
    );
    assert_eq!(check().await["limits"][0]["remaining"], 198, "the quota is the new one, what was taken stays taken");
    fs::write(serving.folder.path().join("limits.yaml"), format!("{text}listen: 127.0.0.1:1\n")).unwrap();
    let answer = send(serving.admin, &post("/-/reload", "")).await.json();
    assert_eq!(answer["needs_restart"], json!(["listen"]));
}

#[tokio::test]
async fn a_reload_can_change_the_token_and_not_open_the_door() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limits.yaml");
    let guarded = |token: &str| format!("{}admin: {{ token: {token} }}\n", limits(10));
    fs::write(&path, guarded("one")).unwrap();
    let (file, loaded) = LimitsFile::open(&path).unwrap();
    let settings = Settings {
        listen: Some("127.0.0.1:0".into()),
        admin: Some("0.0.0.0:0".into()),
        file: Some(file),
        ..Settings::new()
    };
    let server = Server::bind(loaded.policy, settings).await.unwrap();
    let reloads = server.reloads().unwrap();
    let admin = std::net::SocketAddr::from(([127, 0, 0, 1], server.admin_addr().port()));
    let task = tokio::spawn(server.run(std::future::pending()));
    let with = async |token: &str| {
        let bytes = format!("GET /v1/limits HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n");
        send(admin, bytes.as_bytes()).await.status
    };
    assert_eq!((with("one").await, with("two").await), (200, 401));
    fs::write(&path, guarded("two")).unwrap();
    reloads.reload(Cause::Admin).await.unwrap();
    assert_eq!((with("one").await, with("two").await), (401, 200));
    fs::write(&path, limits(10)).unwrap();
    let refused = reloads.reload(Cause::Admin).await.unwrap_err();
    assert!(matches!(refused, ReloadError::OpenToAll(_)), "{refused}");
    assert_eq!(with("two").await, 200);
    task.abort();
}

#[tokio::test]
async fn a_link_that_is_swapped_within_its_folder() {
    let serving = serve(|folder| {
        fs::write(folder.join("1.yaml"), limits(10)).unwrap();
        symlink("1.yaml", folder.join("limits.yaml")).unwrap();
        folder.join("limits.yaml")
    })
    .await;
    let folder = serving.folder.path();
    fs::write(folder.join("2.yaml"), limits(20)).unwrap();
    symlink("2.yaml", folder.join("new")).unwrap();
    fs::rename(folder.join("new"), folder.join("limits.yaml")).unwrap();
    serving.until_quota(20).await;
    // Answered once the link has been followed.
    serving.reloads.reload(Cause::Admin).await.unwrap();
    // The file behind the link is watched by its new name: half of it is not taken.
    let text = limits(30);
    let (begin, end) = text.split_at(text.find("  - { name: org").unwrap());
    let mut file = fs::File::create(folder.join("2.yaml")).unwrap();
    file.write_all(begin.as_bytes()).unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!((serving.quota(), serving.engine.policy().rules.len()), (20, 2), "half a file was taken");
    file.write_all(end.as_bytes()).unwrap();
    drop(file);
    serving.until_quota(30).await;
}

#[tokio::test]
async fn a_secret_in_a_file_of_its_own_is_followed() {
    let serving = serve(|folder| {
        fs::write(folder.join("token"), "the-first-of-the-tokens\n").unwrap();
        fs::write(folder.join("limits.yaml"), format!("{}admin: {{ token: 'file:token' }}\n", limits(10))).unwrap();
        folder.join("limits.yaml")
    })
    .await;
    let token = serving.folder.path().join("token");
    let in_force = || serving.engine.policy().server.admin_token.clone().unwrap().reveal().to_owned();
    let until = async |wanted: &str| {
        let changed = async {
            while in_force() != wanted {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, changed).await.unwrap_or_else(|_| panic!("still {}", in_force()));
    };
    fs::write(&token, "the-second-of-the-tokens\n").unwrap();
    until("the-second-of-the-tokens").await;
    fs::remove_file(&token).unwrap();
    let gone = serving.reloads.reload(Cause::Signal).await.unwrap_err();
    assert!(gone.to_string().contains("'token' cannot be read"), "{gone}");
    assert_eq!(in_force(), "the-second-of-the-tokens");
    fs::write(&token, "the-third-of-the-tokens\n").unwrap();
    until("the-third-of-the-tokens").await;
}

#[tokio::test]
async fn a_change_of_rights_and_one_that_keeps_the_time_are_seen() {
    let serving = serve(plain).await;
    let path = serving.folder.path().join("limits.yaml");
    let successes = async || serving.metric("tidegate_reloads_total{result=\"success\"}").await;
    let before = successes().await;
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let seen = async {
        while successes().await == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.expect("rights that changed are a change");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let mut file = fs::File::options().write(true).open(&path).unwrap();
    // As long as before.
    file.write_all(limits(11).as_bytes()).unwrap();
    file.set_modified(modified).unwrap();
    drop(file);
    serving.until_quota(11).await;
}
