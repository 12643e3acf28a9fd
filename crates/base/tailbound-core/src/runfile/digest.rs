// SPDX-License-Identifier: MIT OR Apache-2.0
//! The digest of a run file: SHA-256 of every byte before it, on the last line and on some before.
//!
//! A line with a digest ends in `,"sha256":"` + 64 hexadecimal digits + `"}` and
//! a newline: [`TAIL`] bytes. The digest covers all that stands before them, so the end line's own
//! figures too, and `head -c -78 FILE | sha256sum` gives it without this program.
//! `digest` lines on the way say how far a file that was cut off is as it was written.
//! It tells accidental and careless change. Whoever rewrites the file can compute it again.
//! Not here: signatures (`tailbound sign`).
//! Source: FIPS 180-4.

use sha2::{Digest as _, Sha256};

/// What stands before the digits.
const BEFORE: &[u8] = b",\"sha256\":\"";
/// What stands after them.
const AFTER: &[u8] = b"\"}\n";
/// Digits of a digest.
const DIGITS: usize = 64;
/// Bytes from the end of what a digest covers to the end of its line.
pub(crate) const TAIL: usize = BEFORE.len() + DIGITS + AFTER.len();

/// The hash of all bytes so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Running(Sha256);

impl Running {
    /// Takes in more of the file.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all so far, in digits.
    pub(crate) fn digits(&self) -> String {
        self.0.clone().finalize().iter().fold(String::with_capacity(DIGITS), |mut text, byte| {
            text.extend(
                [byte >> 4, byte & 15].map(|d| char::from_digit(d.into(), 16).unwrap_or('0')),
            );
            text
        })
    }

    /// `object` (text of a JSON object) as a line that ends in the digest of everything up to it.
    pub(crate) fn sealed(&self, object: &str) -> Vec<u8> {
        let open = object.strip_suffix('}').unwrap_or(object);
        let mut all = self.clone();
        all.add(open.as_bytes());
        let mut line = open.as_bytes().to_vec();
        line.extend_from_slice(BEFORE);
        line.extend_from_slice(all.digits().as_bytes());
        line.extend_from_slice(AFTER);
        line
    }

    /// Does `line`, the next one of the file, end in the right digest? `None`: in none.
    pub(crate) fn holds(&self, line: &[u8]) -> Option<bool> {
        let (open, tail) = line.split_at_checked(line.len().checked_sub(TAIL)?)?;
        let digits = tail.strip_prefix(BEFORE)?.strip_suffix(AFTER)?;
        let mut all = self.clone();
        all.add(open);
        Some(all.digits().as_bytes() == digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_line_holds_and_no_changed_byte_does() {
        let mut running = Running::default();
        running.add(b"{\"type\":\"header\"}\n");
        let line = running.sealed("{\"type\":\"end\",\"lines\":1}");
        assert_eq!(running.holds(&line), Some(true));
        assert_eq!(line.len(), "{\"type\":\"end\",\"lines\":1".len() + TAIL);
        for i in 0..line.len() {
            let mut other = line.clone();
            if let Some(b) = other.get_mut(i) {
                *b ^= 1;
            }
            assert_ne!(running.holds(&other), Some(true), "byte {i}");
        }
        running.add(b"x");
        assert_eq!(running.holds(&line), Some(false));
        assert_eq!(running.holds(b"{\"type\":\"end\"}\n"), None);
        // The one everybody knows.
        assert!(Running::default().digits().starts_with("e3b0c44298fc1c149afbf4c8996fb924"));
    }
}
