//! The shared store, on real servers.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops, and says where")]

mod cluster;
mod differential;
mod keys;
mod place;

mod contract {
    use tidegate_conformance::{shared_contract_tests, shared_listing_tests};

    use crate::place::{Place, block_on};

    shared_contract_tests!(Place::store, block_on);
    shared_listing_tests!(Place::store, block_on);
}
