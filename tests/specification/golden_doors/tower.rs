//! The tower layer, before a service that answers 200: attributes come in headers, the answer is the
//! status, the limit headers, and a refusal's document.

use std::convert::Infallible;

use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use serde::Deserialize;
use tidegate::{Cost, Engine};
use tidegate_testkit::{Ask, Door, Field, Said, SaidHeaders, golden};
use tidegate_tower::{Attributes, RateLimitLayer};
use tower::{Layer, Service, service_fn};

const FIELDS: &[Field] =
    &[Field::RefusedBy, Field::Level, Field::RetryAfter, Field::Never, Field::XHeaders, Field::IetfHeaders];

/// Before the attributes' names in the request's headers.
const PREFIX: &str = "x-attribute-";
const COST: &str = "x-cost";

#[tokio::test]
async fn the_tower_layer_answers_every_row() {
    let rows = golden::load().unwrap();
    let report = golden::run(&rows, FIELDS, async |engine| TowerDoor(engine)).await;
    let report = report.unwrap_or_else(|failures| panic!("{failures}"));
    assert_eq!(report.rows, rows.len());
    println!("{report:?}");
}

struct TowerDoor(Engine);

/// What of a refusal's document the rows know.
#[derive(Deserialize)]
struct Problem {
    #[serde(rename = "violated-policies")]
    violated_policies: Vec<String>,
    level: Option<String>,
    retry_after_ms: Option<u64>,
    never: bool,
}

impl Door for TowerDoor {
    type Error = serde_json::Error;

    async fn ask(&mut self, ask: &Ask) -> Result<Said, serde_json::Error> {
        let mut request = Request::builder().header(COST, ask.cost);
        for (name, value) in &ask.attributes {
            request = request.header(format!("{PREFIX}{name}"), value);
        }
        let layer = RateLimitLayer::new(self.0.clone(), attributes).cost(cost);
        let inner = service_fn(async |_: Request<String>| Ok::<_, Infallible>(Response::new(String::new())));
        let Ok(response) = layer.layer(inner).call(request.body(String::new()).unwrap()).await;
        let mut said = Said {
            allowed: response.status() == StatusCode::OK,
            headers: SaidHeaders::of(response.headers()),
            ..Said::default()
        };
        if !said.allowed {
            assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(response.headers()["content-type"], "application/problem+json");
            let Ok(body) = response.into_body().collect().await;
            let problem: Problem = serde_json::from_slice(&body.to_bytes())?;
            said.refused_by = problem.violated_policies.first().cloned();
            said.level = problem.level;
            said.retry_after_ms = problem.retry_after_ms;
            said.never = problem.never;
        }
        Ok(said)
    }
}

fn attributes(parts: &Parts) -> Attributes<'static> {
    let mut attributes = Attributes::new();
    for (name, value) in &parts.headers {
        if let Some(name) = name.as_str().strip_prefix(PREFIX) {
            attributes.push(name.to_owned(), value.to_str().unwrap().to_owned());
        }
    }
    attributes
}

fn cost(parts: &Parts) -> Cost {
    Cost::new(parts.headers[COST].to_str().unwrap().parse().unwrap())
}
