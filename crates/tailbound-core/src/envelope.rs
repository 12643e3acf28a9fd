// SPDX-License-Identifier: MIT OR Apache-2.0
//! How files travel over a serial line: a line that names them, their bytes, and a last
//! line, so that what was cut off is known to be.
//!
//! Context: COLD. Layout: `tailbound-file NAME BYTES\n`, the bytes, `\n`, any number of
//! times; then `tailbound-end STATUS\n`. What is not one of these lines is passed over:
//! a driver may have said something before.

use std::io::{self, Write};

const FILE: &str = "tailbound-file ";
const END: &str = "tailbound-end ";

/// What came over the line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// Names and contents, in order; the last may be cut off, which `end` tells.
    pub files: Vec<(String, Vec<u8>)>,
    /// What the last line said; `None`: it never came.
    pub end: Option<String>,
}

impl Envelope {
    /// The content of file `name`.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.iter().find(|(n, _)| n == name).map(|(_, bytes)| bytes.as_slice())
    }
}

/// Writes one file.
///
/// # Errors
/// Those of the line.
pub fn write_file(out: &mut impl Write, name: &str, bytes: &[u8]) -> io::Result<()> {
    writeln!(out, "{FILE}{name} {}", bytes.len())?;
    out.write_all(bytes)?;
    out.write_all(b"\n")
}

/// Writes the last line.
///
/// # Errors
/// Those of the line.
pub fn write_end(out: &mut impl Write, status: &str) -> io::Result<()> {
    writeln!(out, "{END}{}", status.replace('\n', " "))?;
    out.flush()
}

/// Reads what came.
#[must_use]
pub fn read(mut bytes: &[u8]) -> Envelope {
    let mut envelope = Envelope::default();
    while let Some(end) = bytes.iter().position(|&b| b == b'\n') {
        let (line, rest) = bytes.split_at(end);
        bytes = rest.get(1..).unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        if let Some(status) = line.strip_prefix(END) {
            envelope.end = Some(status.to_owned());
            break;
        }
        let named = line.strip_prefix(FILE).and_then(|l| l.rsplit_once(' '));
        if let Some((name, length)) = named.and_then(|(n, l)| Some((n, l.parse::<usize>().ok()?))) {
            let content = bytes.get(..length).unwrap_or(bytes);
            envelope.files.push((name.to_owned(), content.to_owned()));
            bytes = bytes.get(content.len()..).unwrap_or_default();
        }
    }
    envelope
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_through_and_a_cut_is_known() {
        let mut line = b"some driver spoke\n".to_vec();
        write_file(&mut line, "run file.jsonl", b"a\ntailbound-end x\n").unwrap();
        write_file(&mut line, "empty", b"").unwrap();
        let cut = line.len();
        write_end(&mut line, "status 0").unwrap();
        let whole = read(&line);
        assert_eq!(whole.file("run file.jsonl"), Some(&b"a\ntailbound-end x\n"[..]));
        assert_eq!(whole.file("empty"), Some(&b""[..]));
        assert_eq!(whole.end.as_deref(), Some("status 0"));
        for cut in 0..cut {
            let part = read(line.get(..cut).unwrap());
            assert_eq!(part.end, None, "cut at {cut}");
        }
    }
}
