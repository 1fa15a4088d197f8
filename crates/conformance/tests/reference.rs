//! The suite runs against the reference too: what it asks can be done.

use tidegate_conformance::{ReferenceStore, block_on, contract_tests, tests_of};

contract_tests!(ReferenceStore::default, block_on);
tests_of!(
    ReferenceStore::default,
    block_on,
    listing_bears_inserts,
    listing_is_complete,
    listing_leaves_out_what_has_gone,
);
