//! Several servers: replicated, behind Sentinel, in a cluster.

use tidegate_testkit::servers::{Cluster, Connection, Flavor, Replicated, Reply, SLOTS, Sentinel};

use super::{PATIENCE, now};

#[test]
fn a_promoted_replica_has_the_data_and_the_old_primary_refuses_writes() {
    for flavor in Flavor::all() {
        let both = Replicated::start_with(flavor, |server| server.password("secret"));
        let (first, second) = (both.primary(), both.replica());
        first.cli(&["SET", "key", "value"]);
        assert!(second.call(&["SET", "key", "other"]).to_string().starts_with("READONLY"), "{flavor}");
        let mut open = Connection::tcp(first.port(), PATIENCE).unwrap();
        open.call(&["AUTH", "secret"]).unwrap();
        both.promote();
        assert_eq!(both.primary().port(), second.port(), "{flavor}");
        assert_eq!(both.replica().port(), first.port(), "{flavor}");
        assert_eq!(second.cli(&["GET", "key"]), "value", "{flavor}");
        second.cli(&["SET", "key", "other"]);
        assert!(open.call(&["SET", "key", "value"]).unwrap().to_string().starts_with("READONLY"), "{flavor}");
        both.promote();
        assert_eq!(both.primary().port(), first.port(), "{flavor}");
        assert_eq!(first.cli(&["GET", "key"]), "other", "{flavor}");
    }
}

#[test]
fn sentinels_make_another_server_the_primary() {
    for flavor in Flavor::all() {
        let began = now();
        let sentinel = Sentinel::start(flavor);
        let started = began.elapsed();
        assert_eq!(sentinel.sentinel_urls().len(), 3);
        assert_eq!(sentinel.master_name(), "tidegate");
        let first = sentinel.primary();
        assert_eq!(first.info("connected_slaves"), "2", "{flavor}");
        write_to_all(Connection::tcp(first.port(), PATIENCE).unwrap(), "2");

        let began = now();
        assert_eq!(sentinel.kill_primary().port(), first.port());
        let second = sentinel.wait_for_failover(first);
        let failed_over = began.elapsed();
        assert_ne!(second.port(), first.port());
        assert_eq!(second.cli(&["GET", "key"]), "value", "{flavor}");
        second.cli(&["SET", "key", "other"]);
        println!("{flavor}: six started in {started:?}, another primary after {failed_over:?}");
    }
}

#[test]
fn a_cluster_serves_every_slot() {
    for flavor in Flavor::all() {
        let began = now();
        let cluster = Cluster::start(flavor);
        println!("{flavor}: cluster in {:?}", began.elapsed());
        assert_eq!(cluster.urls().len(), 3);
        let mut connections: Vec<_> =
            cluster.nodes().iter().map(|node| Connection::tcp(node.port(), PATIENCE).unwrap()).collect();
        let mut served = vec![0; usize::from(SLOTS)];
        // By then each slot has had its key: 2^20 keys, and the chance that a slot has none is e^-64.
        for number in 0..1 << 20 {
            let key = format!("key{number}");
            let slot = usize::from(cluster_slot(key.as_bytes()));
            if served[slot] > 0 {
                continue;
            }
            // One node takes it, and the two others say who.
            for connection in &mut connections {
                let reply = connection.call(&["SET", &key, "value"]).unwrap();
                let is_taken = reply == Reply::Simple("OK".to_owned());
                let says_who = reply.to_string().starts_with(&format!("MOVED {slot} 127.0.0.1:"));
                assert!(is_taken != says_who, "{flavor}: {key}: {reply}");
                served[slot] += usize::from(is_taken);
            }
        }
        assert_eq!(served.iter().filter(|&&keys| keys == 1).count(), usize::from(SLOTS), "{flavor}");
        let keys = cluster.nodes().iter().map(|node| node.cli(&["DBSIZE"]).parse::<u16>().unwrap());
        assert_eq!(keys.sum::<u16>(), SLOTS, "{flavor}");
        assert_eq!(cluster.slot_of("key1"), cluster_slot(b"key1"));
    }
}

#[test]
fn a_replica_takes_over_from_a_cluster_s_master() {
    for flavor in Flavor::all() {
        let began = now();
        let cluster = Cluster::start_with_replicas(flavor);
        let started = began.elapsed();
        assert_eq!(cluster.urls().len(), 6);
        let slot = cluster.slot_of("key");
        let first = cluster.master_of(slot);
        write_to_all(Connection::tcp(first.port(), PATIENCE).unwrap(), "1");

        let began = now();
        assert_eq!(cluster.kill_master(slot).port(), first.port());
        let second = cluster.wait_for_failover(slot, first);
        let failed_over = began.elapsed();
        assert_eq!(second.cli(&["GET", "key"]), "value", "{flavor}");
        second.cli(&["SET", "key", "other"]);
        println!("{flavor}: six nodes in {started:?}, a replica has taken over after {failed_over:?}");
    }
}

#[test]
fn a_slot_moves_with_its_keys() {
    for flavor in Flavor::all() {
        let cluster = Cluster::start_with(flavor, false, |node| node.password("secret"));
        let slot = cluster.slot_of("{tag}");
        let from = cluster.master_of(slot);
        let to = cluster.nodes().iter().find(|node| node.port() != from.port()).unwrap();
        for number in 0..250 {
            from.cli(&["SET", &format!("{{tag}}{number}"), "value"]);
        }

        let migration = cluster.begin_migration(slot, to);
        assert_eq!((migration.from().port(), migration.to().port()), (from.port(), to.port()));
        migration.move_key("{tag}0");
        let ask = format!("ASK {slot} 127.0.0.1:{}", to.port());
        assert_eq!(from.call(&["GET", "{tag}0"]).to_string(), ask, "{flavor}");
        assert_eq!(from.cli(&["GET", "{tag}1"]), "value", "{flavor}");
        let both = from.call(&["MGET", "{tag}0", "{tag}1"]).to_string();
        assert!(both.starts_with("TRYAGAIN"), "{flavor}: {both}");
        migration.move_keys();
        migration.finish();

        assert_eq!(cluster.master_of(slot).port(), to.port(), "{flavor}");
        assert_eq!(to.cli(&["CLUSTER", "COUNTKEYSINSLOT", &slot.to_string()]), "250", "{flavor}");
        let moved = format!("MOVED {slot} 127.0.0.1:{}", to.port());
        for node in cluster.nodes().iter().filter(|node| node.port() != to.port()) {
            assert_eq!(node.call(&["GET", "{tag}0"]).to_string(), moved, "{flavor}");
        }
        cluster.migrate_slot(slot, from);
        assert_eq!(from.cli(&["GET", "{tag}249"]), "value", "{flavor}");
    }
}

/// Writes, and returns when the replicas have it. `WAIT` is for what its own connection has written.
fn write_to_all(mut primary: Connection, replicas: &str) {
    let written = primary.call(&["SET", "key", "value"]).and_then(|_| primary.call(&["WAIT", replicas, "5000"]));
    assert_eq!(written.map(|reply| reply.to_string()).ok().as_deref(), Some(replicas));
}

/// The slot of a key without a tag: CRC-16/XMODEM, as the cluster's specification has it.
fn cluster_slot(key: &[u8]) -> u16 {
    let crc = key.iter().fold(0_u16, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 })
    });
    crc % SLOTS
}
