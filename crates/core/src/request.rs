//! What a door asks.

use crate::units::Cost;

/// One request: who and what, as attributes, and what it costs.
///
/// Attributes are pairs of name and value: `org=acme`, `agent=a1`, `tool=search`. Each name stands
/// once; of a name that stands twice the first value counts (doors refuse such input).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    attributes: &'a [(&'a str, &'a str)],
    cost: Cost,
}

impl<'a> Request<'a> {
    /// A request of cost 1.
    pub const fn new(attributes: &'a [(&'a str, &'a str)]) -> Self {
        Self { attributes, cost: Cost::ONE }
    }

    /// The same request at another cost; 0 peeks.
    #[must_use]
    pub const fn with_cost(self, cost: Cost) -> Self {
        Self { cost, ..self }
    }

    /// The attributes.
    pub const fn attributes(&self) -> &'a [(&'a str, &'a str)] {
        self.attributes
    }

    /// The value of the attribute `name`.
    pub fn attribute(&self, name: &str) -> Option<&'a str> {
        self.attributes.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    /// What it costs, before a limit's own weights.
    pub const fn cost(&self) -> Cost {
        self.cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_found_by_its_whole_name() {
        let request = Request::new(&[("org", "acme"), ("organisation", "other"), ("tool", "")]);
        assert_eq!(request.attribute("org"), Some("acme"));
        assert_eq!(request.attribute("tool"), Some(""), "an empty value is a value");
        assert_eq!(request.attribute("or"), None);
        assert_eq!(request.attribute("ORG"), None);
    }

    #[test]
    fn a_request_costs_one_unless_it_says_otherwise() {
        let request = Request::new(&[]);
        assert_eq!(request.cost(), Cost::ONE);
        assert_eq!(request.with_cost(Cost::ZERO).cost(), Cost::ZERO);
    }
}
