//! `--attr NAME=VALUE`.

use std::fmt;

use super::style::shown;

/// The longest name of an attribute, in bytes: what the server takes.
const NAME_BYTES_MAX: usize = 128;

/// An attribute of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attribute {
    /// Its name: 1 to 128 bytes.
    pub(crate) name: String,
    /// Its value, which may be empty.
    pub(crate) value: String,
}

impl Attribute {
    /// Reads `NAME=VALUE`; the value is all behind the first `=`.
    ///
    /// # Errors
    /// What would be right, as a sentence.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if (1..=NAME_BYTES_MAX).contains(&name.len()) => {
                Ok(Self { name: name.to_owned(), value: value.to_owned() })
            }
            _ => Err("write NAME=VALUE, for example --attr org=acme".to_owned()),
        }
    }
}

impl fmt::Display for Attribute {
    /// `org=acme`, harmless on a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", shown(&self.name), shown(&self.value))
    }
}

/// A wrong command line if an attribute is given twice: which of the two is meant?
pub(crate) fn check_each_once(attributes: &[Attribute]) -> Result<(), clap::Error> {
    let twice = attributes
        .iter()
        .enumerate()
        .find(|(at, attribute)| attributes.iter().take(*at).any(|earlier| earlier.name == attribute.name));
    match twice {
        None => Ok(()),
        Some((_, attribute)) => Err(clap::Error::raw(
            clap::error::ErrorKind::ArgumentConflict,
            format!("the attribute '{}' is given twice; give each once\n", shown(&attribute.name)),
        )),
    }
}

/// All of them on one line.
pub(crate) fn line(attributes: &[Attribute]) -> String {
    attributes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_all_behind_the_first_equals_sign() {
        let read = |text: &str| Attribute::parse(text).map(|read| (read.name, read.value));
        assert_eq!(read("org=acme"), Ok(("org".into(), "acme".into())));
        assert_eq!(read("org="), Ok(("org".into(), String::new())));
        assert_eq!(read("q=a=b c"), Ok(("q".into(), "a=b c".into())));
        for wrong in ["", "org", "=acme", &format!("{}=x", "n".repeat(129))] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_attribute_once() {
        let of = |texts: &[&str]| texts.iter().map(|text| Attribute::parse(text).unwrap()).collect::<Vec<_>>();
        assert!(check_each_once(&of(&["a=1", "b=1"])).is_ok());
        let told = check_each_once(&of(&["a=1", "b=1", "a=2"])).unwrap_err().to_string();
        assert!(told.contains("the attribute 'a' is given twice"), "{told}");
    }
}
