//! The query of a URL, read as strictly as a body: every parameter known, and given once.

use super::problem::{Problem, quoted};
use crate::bounds::{ATTRIBUTES_MAX, NAME_BYTES_MAX, VALUE_BYTES_MAX};

/// Parameters that were not taken yet.
#[derive(Debug)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query; none is an empty one.
    pub(crate) fn parse(query: Option<&str>) -> Result<Self, Problem> {
        let mut parameters: Vec<(String, String)> = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if parameters.iter().any(|(other, _)| *other == name) {
                return Err(Problem::bad_request(format!("the parameter {} stands twice", quoted(&name))));
            }
            if parameters.len() == ATTRIBUTES_MAX {
                return Err(Problem::bad_request(format!("there are more than {ATTRIBUTES_MAX} parameters")));
            }
            parameters.push((name, value));
        }
        Ok(Self(parameters))
    }

    /// Takes a parameter out.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(own, _)| own == name)?;
        Some(self.0.swap_remove(at).1)
    }

    /// Takes every `attr.<name>` out.
    pub(crate) fn attributes(&mut self) -> Result<Vec<(String, String)>, Problem> {
        let mut attributes = Vec::new();
        for (parameter, value) in std::mem::take(&mut self.0) {
            match parameter.strip_prefix("attr.") {
                None => self.0.push((parameter, value)),
                Some(name) if name.is_empty() || name.len() > NAME_BYTES_MAX || value.len() > VALUE_BYTES_MAX => {
                    let detail = format!("names have 1 to {NAME_BYTES_MAX} bytes, values at most {VALUE_BYTES_MAX}");
                    return Err(Problem::bad_request(format!(
                        "the parameter {} is too long: {detail}",
                        quoted(&parameter)
                    )));
                }
                Some(name) => attributes.push((name.to_owned(), value)),
            }
        }
        Ok(attributes)
    }

    /// Refuses what was not taken.
    pub(crate) fn finish(self, known: &str) -> Result<(), Problem> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => {
                Err(Problem::bad_request(format!("the parameter {} is not known; known are {known}", quoted(name))))
            }
        }
    }
}

/// `%XX` and `+` as forms have it.
fn decode(text: &str) -> Result<String, Problem> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let hex = |digit: Option<u8>| digit.and_then(|digit| char::from(digit).to_digit(16));
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => match (hex(rest.next()), hex(rest.next())) {
                (Some(high), Some(low)) => bytes.extend(u8::try_from(high * 16 + low)),
                _ => return Err(Problem::bad_request("the query has a '%' without two hexadecimal digits")),
            },
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| Problem::bad_request("the query is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters() {
        let mut query = Query::parse(Some("limit=a%2Bb&attr.org=a+b%3A&&cursor=&attr.x=")).unwrap();
        assert_eq!(query.take("limit").as_deref(), Some("a+b"));
        assert_eq!(query.take("cursor").as_deref(), Some(""));
        assert_eq!(query.take("order"), None);
        assert_eq!(query.attributes().unwrap(), [("x".into(), String::new()), ("org".into(), "a b:".into())]);
        assert!(query.finish("").is_ok());
        assert!(Query::parse(None).unwrap().finish("").is_ok());
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for query in ["a=1&a=2", "a=%", "a=%zz", "a=%ff", "attr.=x"] {
            let read = Query::parse(Some(query)).and_then(|mut query| query.attributes());
            assert!(read.is_err(), "{query}");
        }
        let told = format!("{:?}", Query::parse(Some("limits=x")).unwrap().finish("limit").unwrap_err());
        assert!(told.contains("the parameter 'limits' is not known; known are limit"), "{told}");
    }
}
