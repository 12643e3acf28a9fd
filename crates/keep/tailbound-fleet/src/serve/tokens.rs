// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tokens: made from random bits, shown once, known by their hash, and listed without themselves.
//!
//! Source: RFC 6750.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use tailbound_core::printable;
use tailbound_report::table::Table;
use tailbound_store::Token;

/// How a token begins: whoever finds one in a file knows what it is.
const BEGIN: &str = "tailbound-";

/// Longest name of a machine or a token.
const NAME_CHARS_MAX: usize = 120;
/// What a name has, in words.
pub const NAME_RULE: &str = "1 to 120 characters, a letter or a digit among them, no control characters and no space at its ends";

/// Can it be the name of a machine or of a token? Names stand in lines of the audit log and on pages, and two of them have to look
/// different.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let is_hidden = |c: char| c.is_control() || printable::is_harmful(c);
    name.chars().any(char::is_alphanumeric)
        && name.chars().count() <= NAME_CHARS_MAX
        && name.trim() == name
        && !name.contains(is_hidden)
        && !name.contains(['\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}', '\u{feff}'])
}

/// `bytes` random bytes in hexadecimal.
///
/// # Errors
/// The kernel has none.
pub(super) fn random(bytes: usize) -> Result<String, std::io::Error> {
    let mut all = vec![0u8; bytes];
    getrandom::fill(&mut all).map_err(std::io::Error::other)?;
    Ok(hexadecimal(&all))
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing into a String never fails.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A new token: its identity, and itself, which is shown once.
///
/// # Errors
/// The kernel has no random bytes.
pub fn made() -> Result<(String, String), std::io::Error> {
    Ok((random(4)?, format!("{BEGIN}{}", random(32)?)))
}

/// What is kept of a token.
#[must_use]
pub fn hashed(token: &str) -> String {
    hexadecimal(&Sha256::digest(token.as_bytes()))
}

/// The tokens that there are, as a table of this width.
#[must_use]
pub fn text(tokens: Vec<Token>, width: usize) -> String {
    let heads = ["id", "name", "role", "system", "created", "revoked"];
    let mut table = Table::new(&heads).with_words(&[1, 2, 3, 4, 5]);
    for t in tokens {
        let (system, revoked) = (t.system.unwrap_or_default(), t.revoked.unwrap_or_default());
        table.row(vec![t.id, t.name, t.role.as_str().to_owned(), system, t.created, revoked]);
    }
    table.text(width).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_seen_and_is_one_line() {
        for name in ["press 7", "7", "Прес", "a/b", "..7"] {
            assert!(is_name(name), "{name:?}");
        }
        let long = "x".repeat(NAME_CHARS_MAX + 1);
        for name in [
            "",
            " ",
            "a ",
            " a",
            "a\nb",
            "a\tb",
            "a\u{85}",
            "\u{202e}a",
            "a\u{2028}b",
            "\u{200b}",
            "a\u{200b}",
            "\u{feff}a",
            "..",
            "<>",
            &long,
        ] {
            assert!(!is_name(name), "{name:?}");
        }
    }

    #[test]
    fn tokens_are_long_and_differ() {
        let (a, b) = (made(), made());
        let of = |t: std::io::Result<(String, String)>| t.map(|t| t.1).unwrap_or_default();
        let (a, b) = (of(a), of(b));
        assert_eq!(a.len(), BEGIN.len() + 64);
        assert_ne!(a, b);
        assert_eq!(
            hashed("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
