//! packaging/compose.yaml

use serde_json::Value;

use crate::{read, repository};

fn compose() -> Value {
    serde_saphyr::from_str(&read("packaging/compose.yaml")).unwrap()
}

#[test]
fn it_publishes_the_port_that_the_image_listens_on() {
    let compose = compose();
    let service = &compose["services"]["tidegate"];
    let published: Vec<&str> = service["ports"].as_array().unwrap().iter().map(|port| port.as_str().unwrap()).collect();
    assert_eq!(published, ["127.0.0.1:8080:8080"], "on this machine only");
    assert!(read("packaging/Dockerfile").lines().any(|line| line == "EXPOSE 8080"));
}

#[test]
fn its_files_are_there() {
    let compose = compose();
    let service = &compose["services"]["tidegate"];
    let build = &service["build"];
    let context = repository("packaging").join(build["context"].as_str().unwrap());
    assert!(context.join(build["dockerfile"].as_str().unwrap()).is_file());
    for volume in service["volumes"].as_array().unwrap() {
        let mount: Vec<&str> = volume.as_str().unwrap().split(':').collect();
        assert_eq!((mount.len(), mount[2]), (3, "ro"), "{mount:?}");
        assert!(repository("packaging").join(mount[0]).is_dir(), "{mount:?} is a folder");
    }
}

#[test]
fn redis_starts_only_when_asked_for() {
    let compose = compose();
    assert_eq!(compose["services"]["redis"]["profiles"], serde_json::json!(["redis"]));
    assert_eq!(compose["services"]["tidegate"].get("depends_on"), None);
}

#[test]
fn the_server_is_given_nothing_that_it_does_not_need() {
    let compose = compose();
    let service = &compose["services"]["tidegate"];
    assert_eq!(service["read_only"], true);
    assert_eq!(service["cap_drop"], serde_json::json!(["ALL"]));
}
