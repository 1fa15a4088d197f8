//! From a file to text: its size, its encoding.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::fault::{Fault, Faults, Finding};
use super::place::Place;
use super::secret::Source;

/// The largest limits file, in bytes: 4 MiB.
pub const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The bytes of a file, at most one more than [`FILE_BYTES_MAX`].
pub(crate) fn read(path: &Path, source: &Source) -> Result<Vec<u8>, Faults> {
    let read = || {
        // A pipe or a device would be waited for, perhaps for ever.
        if !std::fs::metadata(path)?.is_file() {
            return Err(std::io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error: std::io::Error| {
        let hint =
            (error.kind() == std::io::ErrorKind::NotFound).then(|| "`tidegate init` writes one to start from".into());
        Faults::whole_file(source.file(), format!("the file cannot be read: {error}"), hint)
    })
}

/// The bytes as text.
pub(crate) fn decoded<'b>(bytes: &'b [u8], source: &Source) -> Result<&'b str, Faults> {
    // Size first: what is too large is not looked at.
    if bytes.len() > FILE_BYTES_MAX {
        return Err(too_large(source));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        let hint = Some("save it as UTF-8".into());
        return Err(Faults::whole_file(source.file(), "the file is UTF-16 text", hint));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let (good, rest) = bytes.split_at(error.valid_up_to());
        let good = String::from_utf8_lossy(good);
        let line_start = good.rfind('\n').map_or(0, |at| at + 1);
        let column = good.get(line_start..).unwrap_or("").chars().count() + 1;
        let line = good.matches('\n').count() + 1;
        let byte = rest.first().copied().unwrap_or(0);
        let fault = Finding::new(
            Place { line, column, ..Place::WHOLE_FILE },
            format!("the byte 0x{byte:02x} is not UTF-8 text"),
        )
        .hint("save the file as UTF-8");
        one(source, fault)
    })
}

/// The text without a byte order mark, if it is not too large.
pub(crate) fn checked<'t>(text: &'t str, source: &Source) -> Result<&'t str, Faults> {
    if text.len() > FILE_BYTES_MAX {
        return Err(too_large(source));
    }
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

fn too_large(source: &Source) -> Faults {
    let hint = Some("split it, or write 'overrides' and lists more tersely".into());
    Faults::whole_file(source.file(), "the file is larger than 4 MiB", hint)
}

fn one(source: &Source, fault: Fault) -> Faults {
    Faults { file: source.file().to_owned(), faults: vec![fault], omitted: 0 }
}
