//! A YAML document as a tree in which every key and value knows its place.
//!
//! The tree is lenient where a person can be told more by going on (a repeated key, a tag, an
//! unknown alias), and strict about what things mean: nothing is converted here, a reader asks a
//! scalar for what it needs and gets a reason if the text could mean something else. JSON is YAML,
//! so a JSON file works as well.
//!
//! Everything is bounded: nodes and nesting count an alias as often as it is used, so a small file
//! cannot stand for a huge one.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use granit_parser::{Event, Parser, ScalarStyle, Span};

use super::fault::{Finding, Findings, clipped, quoted};
use super::place::Place;
use super::secret::References;
use super::syntax;

/// How deep values may be nested. A limits file needs eight.
pub(crate) const DEPTH_MAX: usize = 64;
/// How many values a file may hold, each alias counted with all that it stands for.
pub(crate) const NODES_MAX: usize = 500_000;

/// A value and its place.
#[derive(Debug)]
pub(crate) struct Node<'t> {
    pub(crate) place: Place,
    pub(crate) kind: Kind<'t>,
    /// Values in here, this one included, aliases counted in full.
    size: usize,
    /// Levels in here, this one included.
    height: usize,
}

/// What a value is.
#[derive(Debug)]
pub(crate) enum Kind<'t> {
    /// One text, which may read as a number or a truth value.
    Scalar(Scalar<'t>),
    /// `[a, b]` or lines with `-`.
    List(Vec<Rc<Node<'t>>>),
    /// `{a: b}` or lines with `:`.
    Map(Vec<Entry<'t>>),
    /// A value that a fault was already told about.
    Broken,
}

/// A key with its value.
#[derive(Debug)]
pub(crate) struct Entry<'t> {
    pub(crate) key: Cow<'t, str>,
    pub(crate) place: Place,
    pub(crate) value: Rc<Node<'t>>,
}

/// The text of a scalar.
#[derive(Debug)]
pub(crate) struct Scalar<'t> {
    /// As it stands in the file, without quotes.
    pub(crate) written: Cow<'t, str>,
    /// With references replaced, if there were any. Never shown to anyone.
    expanded: Option<String>,
    /// Not in quotes, so it may read as a number.
    plain: bool,
    /// How many characters stand before the text (its quote), if the text is in the file as it is.
    lead: Option<usize>,
}

impl Scalar<'_> {
    /// The text that is meant.
    pub(crate) fn text(&self) -> &str {
        self.expanded.as_deref().unwrap_or(&self.written)
    }

    /// Whether the text came through a reference, so that nothing can be told from how it is
    /// written.
    pub(crate) fn is_reference(&self) -> bool {
        self.expanded.is_some()
    }

    /// Whether nothing is there: an empty value, `~` or `null`.
    pub(crate) fn is_null(&self) -> bool {
        self.plain && matches!(&*self.written, "" | "~" | "null" | "Null" | "NULL")
    }

    /// Whether it stands there without quotes.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }
}

impl Node<'_> {
    /// The place of the character `chars` behind the start of this scalar's text, if the text is
    /// in the file as it is, else the place of the whole value.
    pub(crate) fn place_inside(&self, chars: usize) -> Place {
        match &self.kind {
            Kind::Scalar(Scalar { written, lead: Some(lead), expanded: None, .. }) => {
                let bytes = written.char_indices().nth(chars).map_or(written.len(), |(at, _)| at);
                self.place.advanced(lead + chars, lead + bytes)
            }
            _ => self.place,
        }
    }

    /// What the value is, in words: "a list", "'60/min'".
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            Kind::Scalar(scalar) if scalar.is_null() => "nothing".into(),
            Kind::Scalar(scalar) => quoted(&scalar.written),
            Kind::List(_) => "a list".into(),
            Kind::Map(_) => "a group of keys".into(),
            Kind::Broken => "a value that cannot be read".into(),
        }
    }
}

/// Reads a text into a tree; `None` if it is not YAML, too large, or holds nothing.
pub(crate) fn read<'t>(
    text: &'t str,
    references: &mut References<'_>,
    findings: &mut Findings,
) -> Option<Rc<Node<'t>>> {
    let options = granit_parser::options! {
        emit_comments: false,
        emit_unresolved_aliases: true,
        flow_nesting_limit: DEPTH_MAX,
        block_nesting_limit: DEPTH_MAX,
    };
    let mut builder =
        Builder { text, references, findings, stack: Vec::new(), anchors: HashMap::new(), root: None, nodes: 0 };
    for event in Parser::new_from_str_with_options(text, options) {
        match event {
            Ok((event, span)) => {
                if let Err(fault) = builder.event(event, &span) {
                    findings.push(*fault);
                    return None;
                }
            }
            Err(error) => {
                findings.push(syntax::fault(text, &error));
                return None;
            }
        }
    }
    let root = builder.root;
    if root.is_none() && findings.is_empty() {
        findings.push(
            Finding::new(Place::WHOLE_FILE, "the file is empty").hint("`tidegate init` writes one to start from"),
        );
    }
    root
}

/// A list or map that is still being read.
struct Frame<'t> {
    place: Place,
    anchor: usize,
    open: Open<'t>,
    size: usize,
    height: usize,
}

enum Open<'t> {
    List(Vec<Rc<Node<'t>>>),
    Map { entries: Vec<Entry<'t>>, seen: HashMap<Cow<'t, str>, Place>, key: Key<'t> },
}

/// What a map waits for.
enum Key<'t> {
    /// For a key.
    Wanted,
    /// For the value of this key.
    Read(Cow<'t, str>, Place),
    /// For the value of a key that a fault was told about.
    Broken { secret: bool },
}

/// Turns the events of the parser into a tree. A fault that it returns ends the reading.
struct Builder<'t, 'b, 's> {
    text: &'t str,
    references: &'b mut References<'s>,
    findings: &'b mut Findings,
    stack: Vec<Frame<'t>>,
    /// Anchored values by the parser's number; `None` while the value is still being read.
    anchors: HashMap<usize, Option<Rc<Node<'t>>>>,
    root: Option<Rc<Node<'t>>>,
    nodes: usize,
}

type Fatal = Box<Finding>;

impl<'t> Builder<'t, '_, '_> {
    fn event(&mut self, event: Event<'t>, span: &Span) -> Result<(), Fatal> {
        let place = Place::of(span);
        if event.tag().is_some() {
            let at = span.tag_start.as_ref().map_or(place, Place::at);
            let tag = event.tag().map(granit_parser::Tag::original).unwrap_or_default();
            self.findings.push(
                Finding::new(at, format!("the tag {} is not allowed", quoted(&tag)))
                    .hint("remove it; put the value in quotes if it has to be text"),
            );
        }
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                let fault = Finding::new(place, "a second document begins here");
                Err(Box::new(fault.hint("a limits file is one document: remove the '---' line")))
            }
            Event::Scalar(written, style, anchor, _) => self.scalar(written, style, anchor, place),
            Event::SequenceStart(_, anchor, _) => self.open(place, anchor, Open::List(Vec::new())),
            Event::MappingStart(_, anchor, _) => {
                self.open(place, anchor, Open::Map { entries: Vec::new(), seen: HashMap::new(), key: Key::Wanted })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(place),
            Event::Alias(_) if self.wants_key() => {
                self.findings.push(Finding::new(place, "a key has to be a word, not an alias"));
                self.node(place, Kind::Broken, 1, 1)
            }
            Event::Alias(target) => self.alias(target, place),
            Event::UnresolvedAlias(name) => {
                let message = format!("there is no anchor '&{name}' before this '*{name}'", name = clipped(&name));
                self.findings.push(Finding::new(place, message).hint("put a value that begins with '*' in quotes"));
                self.node(place, Kind::Broken, 1, 1)
            }
            _ => Ok(()),
        }
    }

    fn wants_key(&self) -> bool {
        matches!(self.stack.last(), Some(Frame { open: Open::Map { key: Key::Wanted, .. }, .. }))
    }

    fn scalar(&mut self, written: Cow<'t, str>, style: ScalarStyle, anchor: usize, place: Place) -> Result<(), Fatal> {
        if let Some(Frame { open: Open::Map { seen, key: key @ Key::Wanted, .. }, .. }) = self.stack.last_mut() {
            // Keys are words: what a number would mean as a key does not matter.
            *key = if is_merge_key(&written, style) {
                self.findings.push(
                    Finding::new(place, "merge keys ('<<') are not supported")
                        .hint("write the keys out, or give the whole value an anchor and use it with '*'"),
                );
                Key::Broken { secret: false }
            } else if let Some(first) = seen.get(&written) {
                let message =
                    format!("the key {} is given twice, first at {}:{}", quoted(&written), first.line, first.column);
                self.findings.push(Finding::new(place, message).hint("remove one of them"));
                Key::Broken { secret: is_secret(&written) }
            } else {
                seen.insert(written.clone(), place);
                Key::Read(written, place)
            };
            return Ok(());
        }
        let plain = matches!(style, ScalarStyle::Plain);
        let lead = self.lead(&written, plain, place);
        let kind = match self.references.expand(&written) {
            Ok(expanded) => Kind::Scalar(Scalar { written, expanded, plain, lead }),
            Err(faults) => {
                let whole = Node {
                    place,
                    kind: Kind::Scalar(Scalar { written, expanded: None, plain, lead }),
                    size: 1,
                    height: 1,
                };
                for fault in faults {
                    let chars = whole.chars_before(fault.at);
                    let mut finding = Finding::new(whole.place_inside(chars), fault.message);
                    finding.hint = fault.hint;
                    self.findings.push(finding);
                }
                Kind::Broken
            }
        };
        self.anchored(anchor, place, kind)
    }

    /// How many characters stand before the text in the file, if it stands there unchanged.
    fn lead(&self, written: &str, plain: bool, place: Place) -> Option<usize> {
        let source = self.text.get(place.start..place.end)?;
        let lead = usize::from(!plain);
        let inner = source.get(lead..source.len().checked_sub(lead)?)?;
        (inner == written).then_some(lead)
    }

    fn anchored(&mut self, anchor: usize, place: Place, kind: Kind<'t>) -> Result<(), Fatal> {
        self.count(place, 1, 1)?;
        let node = Rc::new(Node { place, kind, size: 1, height: 1 });
        if anchor != 0 {
            self.anchors.insert(anchor, Some(Rc::clone(&node)));
        }
        self.place_node(node);
        Ok(())
    }

    fn open(&mut self, place: Place, anchor: usize, open: Open<'t>) -> Result<(), Fatal> {
        self.count(place, 1, 1)?;
        if self.wants_key() {
            self.findings.push(
                Finding::new(place, "a key has to be a word, not a list or a group of keys")
                    .hint("put text with [ or { in quotes"),
            );
        }
        if anchor != 0 {
            self.anchors.insert(anchor, None);
        }
        self.stack.push(Frame { place, anchor, open, size: 1, height: 1 });
        Ok(())
    }

    fn close(&mut self, end: Place) -> Result<(), Fatal> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let kind = match frame.open {
            Open::List(items) => Kind::List(items),
            Open::Map { entries, .. } => Kind::Map(entries),
        };
        let place = Place { end: end.end.max(frame.place.end), ..frame.place };
        let node = Rc::new(Node { place, kind, size: frame.size, height: frame.height });
        if frame.anchor != 0 {
            self.anchors.insert(frame.anchor, Some(Rc::clone(&node)));
        }
        self.place_node(node);
        Ok(())
    }

    fn alias(&mut self, target: usize, place: Place) -> Result<(), Fatal> {
        match self.anchors.get(&target) {
            Some(Some(node)) => {
                let node = Rc::clone(node);
                self.count(place, node.size, node.height)?;
                self.place_node(node);
                Ok(())
            }
            _ => {
                self.findings.push(Finding::new(place, "this alias stands inside the value that it stands for"));
                self.node(place, Kind::Broken, 1, 1)
            }
        }
    }

    fn node(&mut self, place: Place, kind: Kind<'t>, size: usize, height: usize) -> Result<(), Fatal> {
        self.count(place, size, height)?;
        self.place_node(Rc::new(Node { place, kind, size, height }));
        Ok(())
    }

    /// Refuses what would make the file too large or too deep.
    fn count(&mut self, place: Place, size: usize, height: usize) -> Result<(), Fatal> {
        self.nodes = self.nodes.saturating_add(size);
        if self.nodes > NODES_MAX {
            let fault = Finding::new(place, format!("the file holds more than {NODES_MAX} values"));
            return Err(Box::new(fault.hint("an alias counts with all that it stands for, each time it is used")));
        }
        if self.stack.len() + height > DEPTH_MAX {
            let message = format!("values are nested more than {DEPTH_MAX} deep");
            return Err(Box::new(Finding::new(place, message).hint("a limits file needs eight levels at most")));
        }
        Ok(())
    }

    /// Puts a finished value where it belongs.
    fn place_node(&mut self, node: Rc<Node<'t>>) {
        let Some(frame) = self.stack.last_mut() else {
            self.root.get_or_insert(node);
            return;
        };
        frame.size = frame.size.saturating_add(node.size);
        frame.height = frame.height.max(node.height + 1);
        match &mut frame.open {
            Open::List(items) => items.push(node),
            Open::Map { entries, key, .. } => match std::mem::replace(key, Key::Wanted) {
                Key::Read(key, place) => {
                    if is_secret(&key) && !is_bare_reference(self.text, node.place) {
                        self.findings.mask(node.place);
                    }
                    entries.push(Entry { key, place, value: node });
                }
                // What stood where the key should be was no word: a fault tells of it.
                Key::Wanted => *key = Key::Broken { secret: false },
                Key::Broken { secret: true } => self.findings.mask(node.place),
                Key::Broken { secret: false } => {}
            },
        }
    }
}

impl Node<'_> {
    fn chars_before(&self, byte: usize) -> usize {
        match &self.kind {
            Kind::Scalar(scalar) => scalar.written.get(..byte).map_or(0, |before| before.chars().count()),
            _ => 0,
        }
    }
}

/// Whether the value of a key is never shown, wherever it stands.
fn is_secret(key: &str) -> bool {
    ["token", "secret", "password", "api_key"].contains(&key)
}

/// Whether nothing but a reference stands there, which gives no secret away.
fn is_bare_reference(text: &str, place: Place) -> bool {
    let written = text.get(place.start..place.end).unwrap_or("").trim_matches(['"', '\'']);
    let name = written.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    written.starts_with("file:") || name.is_some_and(is_name)
}

fn is_merge_key(written: &str, style: ScalarStyle) -> bool {
    written == "<<" && matches!(style, ScalarStyle::Plain)
}

#[cfg(test)]
mod tests;
