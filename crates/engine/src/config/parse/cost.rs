//! Weights: what a request's cost is multiplied with before it reaches a limit.

use std::sync::Arc;

use super::limit::attribute;
use crate::config::fault::{Finding, Findings, clipped, quoted};
use crate::config::place::Place;
use crate::config::raw::{COST, Group, entries};
use crate::config::scalar::{self, NUMBER_MAX};
use crate::config::tree::{Entry, Kind, Node};
use crate::policy::Weights;

/// How many attributes `by` may name.
const ATTRIBUTES_MAX: usize = 16;
/// How many values of an attribute may have a weight.
const VALUES_MAX: usize = 10_000;

/// Where weights stand.
#[derive(Debug)]
pub(crate) struct WeightPlaces {
    /// The base weight.
    pub(crate) base: Place,
    /// For each attribute of `by`, in its order, the weights of its values.
    pub(crate) by: Vec<Vec<Place>>,
}

/// The weights of a limit that says nothing about cost.
pub(crate) fn one(place: Place) -> (Weights, WeightPlaces) {
    (Weights::default(), WeightPlaces { base: place, by: Vec::new() })
}

/// Reads a `cost`: a number, or `{base: 1, by: {tool: {search: 5}}}`.
pub(crate) fn weights(node: &Node<'_>, findings: &mut Findings) -> Option<(Weights, WeightPlaces)> {
    if let Kind::Scalar(_) = node.kind {
        let base = scalar::whole(node, "cost", 0, NUMBER_MAX, findings)?;
        return Some((Weights { base, by: Vec::new() }, WeightPlaces { base: node.place, by: Vec::new() }));
    }
    let group = Group::read(node, &COST, "'cost'", findings)?;
    let base_node = group.value("base");
    let base = base_node.map_or(Some(1), |base| scalar::whole(base, "base", 0, NUMBER_MAX, findings));
    let by = group.value("by").map_or(Some((Vec::new(), Vec::new())), |by| self::by(by, findings));
    let (by, places) = by?;
    let places = WeightPlaces { base: base_node.map_or(node.place, |base| base.place), by: places };
    Some((Weights { base: base?, by }, places))
}

type ByValue = Vec<(Arc<str>, Vec<(String, u64)>)>;

fn by(node: &Node<'_>, findings: &mut Findings) -> Option<(ByValue, Vec<Vec<Place>>)> {
    let attributes = entries(node, "'by'", "write by: {tool: {search: 5}}", findings)?;
    if attributes.len() > ATTRIBUTES_MAX {
        let message = format!("'by' names {} attributes, {ATTRIBUTES_MAX} are the most", attributes.len());
        findings.push(Finding::new(node.place, message));
        return None;
    }
    let read: Vec<_> = attributes.iter().map(|entry| by_attribute(entry, findings)).collect();
    let whole: Option<Vec<_>> = read.into_iter().collect();
    Some(whole?.into_iter().unzip())
}

type OneAttribute = ((Arc<str>, Vec<(String, u64)>), Vec<Place>);

fn by_attribute(entry: &Entry<'_>, findings: &mut Findings) -> Option<OneAttribute> {
    let name = attribute(&entry.key, &quoted(&entry.key), entry.place, findings);
    let whose = format!("'by' for {}", quoted(&entry.key));
    let values = entries(&entry.value, &whose, "write values with their weights: {search: 5}", findings)?;
    if values.len() > VALUES_MAX {
        let message = format!("{whose} names {} values, {VALUES_MAX} are the most", values.len());
        findings.push(Finding::new(entry.place, message));
        return None;
    }
    let read: Vec<_> = values
        .iter()
        .map(|value| {
            let weight = scalar::whole(&value.value, &clipped(&value.key), 0, NUMBER_MAX, findings)?;
            Some(((value.key.clone().into_owned(), weight), value.value.place))
        })
        .collect();
    let whole: Option<Vec<_>> = read.into_iter().collect();
    let (weights, places) = whole?.into_iter().unzip();
    Some(((name?, weights), places))
}
