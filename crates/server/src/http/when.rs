//! Whom an intervention concerns, as JSON: the `when` of the limits file.
//!
//! A text is what the attribute has to equal, a list what it may equal; `{"prefix": …}`,
//! `{"glob": …}` and `{"absent": true}` are the other tests.

use serde_json::{Map, Value, json};
use tidegate::policy::{Condition, Glob, Test};

use super::problem::Problem;
use crate::bounds::NAME_BYTES_MAX;
use crate::json::{At, Json};

/// The longest value that a condition may ask for, in bytes.
const VALUE_BYTES_MAX: usize = 1_024;
/// The longest pattern, in bytes: matching takes up to pattern × value steps.
const GLOB_BYTES_MAX: usize = 256;

/// Reads conditions; there is at least one.
pub(crate) fn read(value: Json<'_>, at: &At<'_>) -> Result<Vec<Condition>, Problem> {
    let mut conditions = Vec::new();
    for (name, value) in at.object(value)? {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(at.problem(format_args!(
                "names an attribute of {} bytes; names have 1 to {NAME_BYTES_MAX}",
                name.len()
            )));
        }
        let test = read_test(value, &at.key(&name))?;
        conditions.push(Condition { attribute: name.into(), test });
    }
    if conditions.is_empty() {
        return Err(at.problem("is empty; name at least one attribute, for example {\"agent\": \"a1\"}"));
    }
    Ok(conditions)
}

fn read_test(value: Json<'_>, at: &At<'_>) -> Result<Test, Problem> {
    match value {
        Json::List(items) if items.is_empty() => Err(at.problem("is an empty list, which no request meets")),
        Json::List(items) => {
            let text = |(index, item)| read_text(item, &at.item(index), VALUE_BYTES_MAX);
            items.into_iter().enumerate().map(text).collect::<Result<_, _>>().map(Test::In)
        }
        Json::Object(_) => {
            let tests = at.members(value, ["prefix", "glob", "absent"])?;
            match tests {
                [Some(prefix), None, None] => read_text(prefix, &at.key("prefix"), VALUE_BYTES_MAX).map(Test::Prefix),
                [None, Some(glob), None] => {
                    read_text(glob, &at.key("glob"), GLOB_BYTES_MAX).map(|pattern| Test::Glob(Glob::new(&pattern)))
                }
                [None, None, Some(Json::Bool(true))] => Ok(Test::Absent),
                [None, None, Some(_)] => Err(at.problem("can only be absent: true")),
                _ => Err(at.problem("needs exactly one of prefix, glob, absent")),
            }
        }
        other => read_text(other, at, VALUE_BYTES_MAX).map(Test::Equals),
    }
}

fn read_text(value: Json<'_>, at: &At<'_>, bytes_max: usize) -> Result<String, Problem> {
    let text = at.text(value)?;
    if text.len() > bytes_max {
        return Err(at.problem(format_args!("has {} bytes; at most {bytes_max} are taken", text.len())));
    }
    Ok(text.into_owned())
}

/// Writes conditions as they are read.
pub(crate) fn write(conditions: &[Condition]) -> Value {
    let entry = |condition: &Condition| (condition.attribute.to_string(), write_test(&condition.test));
    Value::Object(conditions.iter().map(entry).collect::<Map<_, _>>())
}

fn write_test(test: &Test) -> Value {
    match test {
        Test::Equals(value) => json!(value),
        Test::In(values) => json!(values),
        Test::Prefix(prefix) => json!({ "prefix": prefix }),
        Test::Glob(glob) => json!({ "glob": glob.pattern() }),
        Test::Absent => json!({ "absent": true }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_json(text: &str) -> Result<Vec<Condition>, Problem> {
        let root = At::Root;
        read(Json::parse(text).unwrap(), &root.key("when"))
    }

    #[test]
    fn what_is_read_is_written_alike() {
        let text = r#"{"a":"x","b":["y","z"],"c":{"prefix":"p"},"d":{"glob":"g*"},"e":{"absent":true}}"#;
        let conditions = read_json(text).unwrap();
        assert_eq!(conditions.len(), 5);
        assert_eq!(write(&conditions), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        let told = |text| format!("{:?}", read_json(text).unwrap_err());
        assert!(told("{}").contains("when is empty"));
        assert!(told(r#"{"a": 5}"#).contains("when.a has to be a string, not a number"));
        assert!(told(r#"{"a": []}"#).contains("when.a is an empty list"));
        assert!(told(r#"{"a": ["x", null]}"#).contains("when.a[1] has to be a string, not null"));
        assert!(told(r#"{"a": {}}"#).contains("exactly one of prefix, glob, absent"));
        assert!(told(r#"{"a": {"prefix": "x", "glob": "y"}}"#).contains("exactly one of"));
        assert!(told(r#"{"a": {"absent": false}}"#).contains("can only be absent: true"));
        assert!(told(r#"{"a": {"suffix": "x"}}"#).contains("unknown key 'suffix'"));
        assert!(told(&format!(r#"{{"a": {{"glob": "{}"}}}}"#, "*".repeat(257))).contains("has 257 bytes"));
    }
}
