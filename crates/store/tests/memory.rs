//! The contract, kept by the store in memory.

mod prepared;

use tidegate_conformance::{block_on, contract_tests};
use tidegate_store::{MemorySettings, MemoryStore};

contract_tests!(|| MemoryStore::new(MemorySettings::default()), block_on);

mod named {
    use super::{MemorySettings, MemoryStore, block_on};
    use tidegate_conformance::{contract_tests, listing_tests};

    fn named() -> MemoryStore {
        MemoryStore::new(MemorySettings { names: true, ..MemorySettings::default() })
    }

    contract_tests!(named, block_on);
    listing_tests!(named, block_on);
}

mod usual {
    use super::prepared::Prepared;
    use super::{MemorySettings, MemoryStore, block_on};
    use tidegate_conformance::contract_tests;

    contract_tests!(|| Prepared::new(MemoryStore::new(MemorySettings::default())), block_on);
}
