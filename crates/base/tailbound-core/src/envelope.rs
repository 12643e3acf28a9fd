// SPDX-License-Identifier: MIT OR Apache-2.0
//! How files travel over a serial line: a line that names them, their bytes, and a last
//! line, so that what was cut off is known to be.
//!
//! Layout: `tailbound-file NAME BYTES\n`, the bytes, `\n`, any number of
//! times; then `tailbound-end STATUS\n`. What is not one of these lines is passed over:
//! a driver may have said something before. Contents are not copied; of anybody's bytes at most
//! `FILES_MAX` files are taken.

use std::io::{self, Write};

const FILE: &str = "tailbound-file ";
const END: &str = "tailbound-end ";
/// Most files of an envelope; later ones are passed over.
const FILES_MAX: usize = 64;
/// Longest line that may name a file or an end.
const LINE_BYTES_MAX: usize = 4096;

/// What came over the line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Names and contents, in order; the last may be cut off, which `end` tells.
    pub files: Vec<(String, &'a [u8])>,
    /// What the last line said; `None`: it never came.
    pub end: Option<String>,
}

impl<'a> Envelope<'a> {
    /// The content of file `name`.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&'a [u8]> {
        self.files.iter().find(|(n, _)| n == name).map(|(_, bytes)| *bytes)
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
pub fn read(mut bytes: &[u8]) -> Envelope<'_> {
    let mut envelope = Envelope::default();
    while let Some(end) = bytes.iter().position(|&b| b == b'\n') {
        let (line, rest) = bytes.split_at(end);
        bytes = rest.get(1..).unwrap_or_default();
        let line = String::from_utf8_lossy(line.get(..LINE_BYTES_MAX).unwrap_or(line));
        if let Some(status) = line.strip_prefix(END) {
            envelope.end = Some(status.to_owned());
            break;
        }
        let named = line.strip_prefix(FILE).and_then(|l| l.rsplit_once(' '));
        if let Some((name, length)) = named.and_then(|(n, l)| Some((n, l.parse::<usize>().ok()?))) {
            let content = bytes.get(..length).unwrap_or(bytes);
            if envelope.files.len() < FILES_MAX {
                envelope.files.push((name.to_owned(), content));
            }
            bytes = bytes.get(content.len()..).unwrap_or_default();
        }
    }
    envelope
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_not_copied_and_its_files_are_bounded() {
        let mut line = b"tailbound-file x 0\n\n".repeat(10_000);
        write_end(&mut line, "status 0").unwrap();
        let read_back = read(&line);
        assert_eq!((read_back.files.len(), read_back.end.as_deref()), (64, Some("status 0")));
        assert!(read(&vec![b'x'; 1 << 20]).files.is_empty());
    }

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
