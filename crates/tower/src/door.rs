//! What the services of one layer share: how to ask the engine, and how to answer for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http::request::Parts;
use smallvec::SmallVec;
use tidegate::policy::HeaderSettings;
use tidegate::{Cost, Decision, Engine, Request};

use crate::attributes::Attributes;
use crate::extract::Extractor;
use crate::{headers, refusal};

pub(crate) struct Door<E> {
    pub(crate) engine: Engine,
    pub(crate) extractor: Arc<E>,
    pub(crate) cost: Option<CostOf>,
    pub(crate) refusal: Option<RefusalOf>,
}

pub(crate) type CostOf = Arc<dyn Fn(&Parts) -> Cost + Send + Sync>;
pub(crate) type RefusalOf = Arc<dyn Fn(&Decision, &Parts) -> Response<Bytes> + Send + Sync>;

/// The engine's answer, or the way to it.
#[expect(clippy::large_enum_variant, reason = "a box would cost every request an allocation")]
pub(crate) enum Asked {
    Decided(Decision),
    Deciding(Deciding),
}

/// A decision that has to be waited for.
pub(crate) type Deciding = Pin<Box<dyn Future<Output = Decision> + Send>>;

impl<E: Extractor> Door<E> {
    /// Asks about the request of which `parts` is the head. A store in this process answers at once
    /// and without an allocation.
    pub(crate) fn ask(&self, parts: &Parts) -> Asked {
        let mut attributes = Attributes::new();
        self.extractor.extract(parts, &mut attributes);
        let pairs: SmallVec<[(&str, &str); 8]> = attributes.iter().collect();
        let cost = self.cost.as_ref().map_or(Cost::ONE, |cost| cost(parts));
        match self.engine.decide_now(&Request::new(&pairs).with_cost(cost)) {
            Ok(decision) => Asked::Decided(decision),
            Err(tidegate::NotLocal) => Asked::Deciding(self.ask_elsewhere(&pairs, cost)),
        }
    }

    /// Asks a store that is not in this process.
    pub(crate) fn ask_elsewhere(&self, pairs: &[(&str, &str)], cost: Cost) -> Deciding {
        let engine = self.engine.clone();
        let pairs: Vec<(String, String)> =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Box::pin(async move {
            let pairs: SmallVec<[(&str, &str); 8]> =
                pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            engine.decide(&Request::new(&pairs).with_cost(cost)).await
        })
    }
}

impl<E> Door<E> {
    /// Which headers answers carry now.
    pub(crate) fn header_settings(&self) -> HeaderSettings {
        self.engine.policy().headers
    }

    /// The answer to a request that may not pass.
    pub(crate) fn refuse(&self, decision: &Decision, parts: &Parts) -> Response<Bytes> {
        let mut response = match &self.refusal {
            Some(refusal) => refusal(decision, parts),
            None => refusal::response(decision, parts),
        };
        headers::write(decision, &self.header_settings(), response.headers_mut());
        response
    }
}

impl<E> Clone for Door<E> {
    fn clone(&self) -> Self {
        Self {
            engine: self.engine.clone(),
            extractor: Arc::clone(&self.extractor),
            cost: self.cost.clone(),
            refusal: self.refusal.clone(),
        }
    }
}
