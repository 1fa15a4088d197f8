//! The rows as they stand in their files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tidegate::Timestamp;

use crate::door::Ask;
use crate::limiter::START;

/// One golden row.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Unique among all rows.
    pub id: String,
    /// The rule that it shows, one of [`rules`].
    pub rule: String,
    /// What it shows, in a sentence.
    pub shows: String,
    /// When it begins, in milliseconds since the Unix epoch: midnight of 1 March 2026 if not given.
    #[serde(default = "start_ms")]
    pub start_ms: u64,
    /// The limits file, as text.
    pub limits_file: String,
    /// What is asked, in this order.
    pub steps: Vec<Step>,
}

/// A question and its answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// When, in milliseconds after the row's start. May lie before the step before it.
    pub at_ms: u64,
    /// The request's attributes.
    pub attributes: BTreeMap<String, String>,
    /// What it costs.
    #[serde(default = "one")]
    pub cost: u64,
    /// Asked so often in a row; the answer is the last one's, and all are allowed or none.
    #[serde(default = "one")]
    pub times: u64,
    /// The answer.
    pub expect: Expect,
}

/// An answer in full.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Whether the request passes.
    pub allowed: bool,
    /// Which limit refuses.
    #[serde(default)]
    pub refused_by: Option<String>,
    /// Its level.
    #[serde(default)]
    pub level: Option<String>,
    /// How long to wait.
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
    /// Whether waiting does not help.
    #[serde(default)]
    pub never: bool,
    /// The limit to show where there is room for one; none where no limit applies.
    #[serde(default)]
    pub tightest: Option<String>,
    /// Every limit that applies, in the order checked.
    pub limits: Vec<ExpectLimit>,
}

/// How one limit stands after the answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectLimit {
    /// Its name.
    pub name: String,
    /// Its level.
    pub level: String,
    /// The most that can be admitted at one instant.
    pub quota: u64,
    /// What can still be taken.
    pub remaining: u64,
    /// Until it is whole again.
    pub reset_ms: u64,
    /// Until `remaining` next grows; not compared where it is not given.
    #[serde(default)]
    pub next_ms: Option<u64>,
    /// Whether it refused, or would have.
    #[serde(default)]
    pub refused: bool,
    /// `enforce` or `permissive`.
    #[serde(default = "enforce")]
    pub mode: String,
}

/// Why the rows could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file or the folder cannot be read.
    #[error("{0}: {1}")]
    Read(PathBuf, std::io::Error),
    /// A file is not rows.
    #[error("{0}: {1}")]
    Parse(PathBuf, String),
    /// A row says something that cannot be.
    #[error("{0}: row '{1}': {2}")]
    Row(PathBuf, String, &'static str),
}

/// The rules that rows show. Every one has a row.
pub const fn rules() -> &'static [&'static str] {
    &[
        "level",
        "order",
        "refused_by",
        "wait",
        "never",
        "tightest",
        "denied",
        "permissive",
        "disabled",
        "default_algorithm",
        "algorithm",
        "missing",
        "limit_0",
        "by_tool",
        "cost",
        "override",
        "when",
        "key",
        "clock",
    ]
}

/// All rows, from the `.yaml` files of `tests/specification/golden/`, in the files' order.
///
/// # Errors
/// [`LoadError`] names the file, and the row where there is one.
pub fn load() -> Result<Vec<Row>, LoadError> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/specification/golden"));
    let unread = |path: &Path| {
        let path = path.to_owned();
        move |error| LoadError::Read(path, error)
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unread(folder))? {
        let path = entry.map_err(unread(folder))?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    let mut rows: Vec<Row> = Vec::new();
    let mut ids = BTreeSet::new();
    for path in files {
        let text = fs::read_to_string(&path).map_err(unread(&path))?;
        let found: Vec<Row> =
            serde_saphyr::from_str(&text).map_err(|error| LoadError::Parse(path.clone(), error.to_string()))?;
        for row in found {
            let sound =
                row.sound().and_then(|()| ids.insert(row.id.clone()).then_some(()).ok_or("the id is not unique"));
            sound.map_err(|fault| LoadError::Row(path.clone(), row.id.clone(), fault))?;
            rows.push(row);
        }
    }
    Ok(rows)
}

impl Row {
    /// When it begins.
    pub const fn starts_at(&self) -> Timestamp {
        Timestamp::from_millis(self.start_ms)
    }

    /// What no answer can be, whatever the engine does.
    fn sound(&self) -> Result<(), &'static str> {
        let check = |ok: bool, fault| if ok { Ok(()) } else { Err(fault) };
        check(rules().contains(&self.rule.as_str()), "its rule is not a known one")?;
        check(!self.steps.is_empty(), "it asks nothing")?;
        for step in &self.steps {
            let expect = &step.expect;
            let refusing = expect.limits.iter().find(|limit| limit.refused && limit.mode == "enforce");
            check(step.times > 0, "a step that is asked 0 times shows nothing")?;
            check(expect.allowed == refusing.is_none(), "allowed does not go with the limits")?;
            check(
                expect.refused_by.as_ref() == refusing.map(|limit| &limit.name),
                "refused_by is not the first that refuses",
            )?;
            check(expect.level.as_ref() == refusing.map(|limit| &limit.level), "level is not that of refused_by")?;
            let waits = usize::from(expect.retry_after_ms.is_some()) + usize::from(expect.never);
            check(waits == usize::from(!expect.allowed), "a refusal, and only a refusal, has a wait or is for ever")?;
            check(expect.tightest.is_some() != expect.limits.is_empty(), "tightest is one of the limits")?;
        }
        Ok(())
    }
}

impl Step {
    /// The question.
    pub fn ask(&self) -> Ask {
        Ask { attributes: self.attributes.clone(), cost: self.cost }
    }
}

const fn start_ms() -> u64 {
    START.as_micros() / 1_000
}

const fn one() -> u64 {
    1
}

fn enforce() -> String {
    "enforce".to_owned()
}
