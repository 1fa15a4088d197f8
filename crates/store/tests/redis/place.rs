//! A server for one test, and a store on it.

use std::future::Future;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tidegate_core::Limit;
use tidegate_store::{
    At, Batch, Charge, CounterPage, Key, LimitId, PageQuery, RedisSettings, RedisStore, Store, StoreError, StoreStats,
};
use tidegate_testkit::servers::{Flavor, Server};
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// Runs a future to its end, on the runtime of the tests.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

/// Lets those find the runtime who poll a future themselves.
pub(crate) fn entered() -> tokio::runtime::EnterGuard<'static> {
    RUNTIME.enter()
}

/// A store, and its server, which ends with it, or what keeps others off a shared one.
#[derive(Debug)]
pub(crate) struct Place<S = Server> {
    /// The store.
    pub(crate) store: RedisStore,
    /// The server.
    pub(crate) server: S,
}

impl Place {
    /// A store on an empty server of its own. Slow machines get all the time they want.
    pub(crate) fn new(flavor: Flavor) -> Self {
        let server = Server::start(flavor);
        let mut settings = RedisSettings::new(&server.url()).unwrap();
        settings.timeout = Duration::from_secs(10);
        // Tests change what is stored behind its back.
        settings.deny_memory = false;
        let store = connect(settings);
        Self { store, server }
    }

    /// One for the contract.
    pub(crate) fn store() -> Self {
        Self::new(Flavor::Redis70)
    }
}

/// A store with these settings, connected.
pub(crate) fn connect(settings: RedisSettings) -> RedisStore {
    let store = RedisStore::new(settings);
    block_on(store.connected()).unwrap();
    store
}

impl<S: Send + Sync> Store for Place<S> {
    fn install(&self, limits: &[(LimitId, Arc<Limit>)]) {
        self.store.install(limits);
    }

    async fn charge(&self, batch: &[Charge<'_>], at: At) -> Result<Batch, StoreError> {
        self.store.charge(batch, at).await
    }

    async fn reset(&self, limit: LimitId, key: &Key<'_>, at: At) -> Result<bool, StoreError> {
        self.store.reset(limit, key, at).await
    }

    async fn page(&self, query: &PageQuery<'_>, at: At) -> Result<CounterPage, StoreError> {
        self.store.page(query, at).await
    }

    fn stats(&self) -> StoreStats {
        self.store.stats()
    }
}
