//! What `/v1/check` and `/v1/check/batch` are asked, read from JSON.

use std::borrow::Cow;

use smallvec::SmallVec;
use tidegate::{Cost, Request};

use super::problem::Problem;
use crate::bounds::{NAME_BYTES_MAX, VALUE_BYTES_MAX};
use crate::json::{At, Json};

/// A check: attributes and a cost.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    attributes: Attributes<'a>,
    cost: Cost,
}

/// Attributes, borrowed from the body where they have no escapes.
type Attributes<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// The attributes as the engine takes them.
pub(crate) type Pairs<'a> = SmallVec<[(&'a str, &'a str); 8]>;

impl<'a> Asked<'a> {
    /// Reads `{"attributes": {…}, "cost": 1}`.
    pub(crate) fn parse(body: &'a str) -> Result<Self, Problem> {
        Self::read(parse(body)?, &At::Root)
    }

    fn read(value: Json<'a>, at: &At<'_>) -> Result<Self, Problem> {
        let [attributes, cost] = at.members(value, ["attributes", "cost"])?;
        let at_attributes = at.key("attributes");
        let attributes = at_attributes.required(attributes)?;
        let cost = cost.map_or(Ok(1), |cost| at.key("cost").count(&cost))?;
        Ok(Self { attributes: read_attributes(attributes, &at_attributes)?, cost: Cost::new(cost) })
    }

    /// The attributes, to make a [`Request`] of.
    pub(crate) fn pairs(&self) -> Pairs<'_> {
        self.attributes.iter().map(|(name, value)| (name.as_ref(), value.as_ref())).collect()
    }

    /// The request with these attributes.
    pub(crate) fn request<'p>(&self, pairs: &'p [(&'p str, &'p str)]) -> Request<'p> {
        Request::new(pairs).with_cost(self.cost)
    }

    /// Whether it takes nothing.
    pub(crate) fn peeks(&self) -> bool {
        self.cost.is_zero()
    }
}

/// Several checks in one request.
#[derive(Debug)]
pub(crate) struct AskedBatch<'a> {
    /// The checks, in their order.
    pub(crate) checks: Vec<Asked<'a>>,
    /// Whether all pass or none.
    pub(crate) atomic: bool,
}

impl<'a> AskedBatch<'a> {
    /// Reads `{"checks": […], "atomic": false}`.
    pub(crate) fn parse(body: &'a str) -> Result<Self, Problem> {
        let at = At::Root;
        let [checks, atomic] = at.members(parse(body)?, ["checks", "atomic"])?;
        let at_checks = at.key("checks");
        let checks = at_checks.list(at_checks.required(checks)?)?;
        let read = |(index, check)| Asked::read(check, &at_checks.item(index));
        let checks = checks.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let atomic = atomic.map_or(Ok(false), |atomic| at.key("atomic").flag(&atomic))?;
        Ok(Self { checks, atomic })
    }
}

/// Reads the body of a request.
pub(crate) fn parse(body: &str) -> Result<Json<'_>, Problem> {
    Json::parse(body).map_err(|fault| Problem::bad_request(format!("the body is not what is taken here: {fault}")))
}

fn read_attributes<'a>(value: Json<'a>, at: &At<'_>) -> Result<Attributes<'a>, Problem> {
    let mut attributes = Vec::new();
    for (name, value) in at.object(value)? {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let wrong = format!("has a name of {} bytes; names have 1 to {NAME_BYTES_MAX}", name.len());
            return Err(at.problem(wrong));
        }
        let at_value = at.key(&name);
        let value = at_value.text(value)?;
        if value.len() > VALUE_BYTES_MAX {
            let wrong = format!("has {} bytes; values have at most {VALUE_BYTES_MAX}", value.len());
            return Err(at_value.problem(wrong));
        }
        attributes.push((name, value));
    }
    Ok(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(body: &str) -> String {
        format!("{:?}", Asked::parse(body).unwrap_err())
    }

    #[test]
    fn a_check() {
        let asked = Asked::parse(r#"{"attributes": {"org": "acme", "agent": "a\u0031"}, "cost": 5}"#).unwrap();
        let pairs = asked.pairs();
        assert_eq!(pairs.as_slice(), [("org", "acme"), ("agent", "a1")]);
        assert_eq!(asked.request(&pairs).cost(), Cost::new(5));
        let asked = Asked::parse(r#"{"attributes": {}}"#).unwrap();
        assert_eq!((asked.pairs().len(), asked.cost), (0, Cost::ONE));
        assert!(Asked::parse(r#"{"attributes": {}, "cost": 0}"#).unwrap().peeks());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        assert!(told("[]").contains("the body has to be an object, not a list"));
        assert!(told("{}").contains("attributes is missing"));
        assert!(told(r#"{"attributes": null}"#).contains("attributes has to be an object, not null"));
        assert!(told(r#"{"attributes": {}, "cots": 1}"#).contains("unknown key 'cots'; known are attributes, cost"));
        assert!(told(r#"{"attributes": {"a": 5}}"#).contains("attributes.a has to be a string, not a number"));
        assert!(told(r#"{"attributes": {"": "x"}}"#).contains("a name of 0 bytes"));
        assert!(told(&format!(r#"{{"attributes": {{"{}": "x"}}}}"#, "n".repeat(129))).contains("a name of 129 bytes"));
        let long = format!(r#"{{"attributes": {{"a": "{}"}}}}"#, "v".repeat(8_193));
        assert!(told(&long).contains("attributes.a has 8193 bytes"));
        let batch = r#"{"checks": [{"attributes": {}}, {"attributes": {"org": true}}]}"#;
        let told = format!("{:?}", AskedBatch::parse(batch).unwrap_err());
        assert!(told.contains("checks[1].attributes.org has to be a string, not a boolean"), "{told}");
    }

    #[test]
    fn the_longest_that_passes() {
        let body = format!(r#"{{"attributes": {{"{}": "{}"}}}}"#, "n".repeat(128), "v".repeat(8_192));
        assert!(Asked::parse(&body).is_ok());
    }
}
