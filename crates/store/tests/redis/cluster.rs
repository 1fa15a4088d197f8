//! A cluster: the contract where all keys are of one slot, what holds where each org has its own, and what a
//! refused request gives back.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tidegate_conformance::{shared_contract_tests, shared_listing_tests, tests_of};
use tidegate_store::redis::Address;
use tidegate_store::{RedisSettings, RedisStore, Slot};
use tidegate_testkit::servers::{Cluster, Flavor};
use tokio::sync::{Mutex, MutexGuard};

use crate::place::{Place, block_on, connect};

mod refund;

/// One for all tests: each has a prefix of its own.
static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| Cluster::start(Flavor::Redis70));
/// One for listings: a server may list a key twice while others' keys come and go.
static LISTED: LazyLock<Cluster> = LazyLock::new(|| Cluster::start(Flavor::Valkey91));
static LISTING: Mutex<()> = Mutex::const_new(());

/// A store of its own on the cluster.
fn store_on(cluster: &Cluster, slot: Slot) -> RedisStore {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let prefix = format!("test{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let address = Address { cluster: cluster.urls(), ..Address::default() };
    let mut settings = RedisSettings::at(address).unwrap().with_prefix(&prefix).unwrap();
    // Slow machines get all the time they want.
    settings.timeout = Duration::from_secs(10);
    settings.slot = slot;
    connect(settings)
}

/// A store whose cluster is its own for so long.
fn listed(slot: Slot) -> Place<MutexGuard<'static, ()>> {
    let server = LISTING.blocking_lock();
    Place { store: store_on(&LISTED, slot), server }
}

fn by_org() -> Slot {
    Slot::Attribute("org".into())
}

mod single_slot {
    use super::*;

    shared_contract_tests!(|| store_on(&CLUSTER, Slot::Single), block_on);
    shared_listing_tests!(|| listed(Slot::Single), block_on);
}

/// The limits of the contract have no org: each counter is in a slot of its own.
mod a_slot_each {
    use super::*;

    // All but one: what a refused request has given back is back, but the time it saw stays.
    tests_of!(
        || store_on(&CLUSTER, by_org()),
        block_on,
        a_batch_is_charged_whole_or_not_at_all,
        a_capacity_is_admitted_exactly,
        a_permissive_charge_takes_what_is_admitted,
        a_permissive_charge_vetoes_nothing,
        a_refusal_leaves_every_counter,
        charges_of_one_counter_add_up_in_order,
        costs_beyond_every_capacity_are_refused_for_good,
        peeks_move_nothing,
        peeks_veto,
        keys_do_not_touch,
        limits_do_not_touch,
        reset_forgets_one_counter,
        a_rule_of_another_layout_is_an_error,
        an_unknown_limit_is_an_error,
        install_keeps_what_it_names,
        a_clock_set_back_gives_nothing,
        what_has_expired_is_as_never_seen,
    );
    shared_listing_tests!(|| listed(by_org()), block_on);
}
