// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text of strangers made safe to show: no character of it moves a cursor, colours a line, rings,
//! or turns round the order in which the rest is read.
//!
//! Applied where text leaves the program: to a terminal (`say`), to a page
//! (`tailbound-report`'s `escape`), to JSON and run files; and to the reasons of reading errors.
//! Source: ECMA-48 (C0, C1, escape sequences); Unicode Annex 9 (direction), Technical Report 36.

use std::borrow::Cow;
use std::fmt::Write as _;

/// What stands for a character that is not shown.
pub const REPLACEMENT: char = '\u{fffd}';

/// Longest reason of an error that quotes a file.
const REASON_CHARS_MAX: usize = 600;

/// Is this a control character (other than tab and newline), a control of direction, or a line
/// separator that only some programs know?
#[must_use]
pub fn is_harmful(c: char) -> bool {
    match c {
        '\t' | '\n' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        c => c.is_control(),
    }
}

/// Text of several lines, as it may be printed.
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if is_harmful(c) { REPLACEMENT } else { c }).collect())
}

/// As [`text`], on one line: tabs and newlines become spaces.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| is_harmful(c) || c == '\n' || c == '\t') {
        return Cow::Borrowed(text);
    }
    let shown = |c| match c {
        '\t' | '\n' => ' ',
        c if is_harmful(c) => REPLACEMENT,
        c => c,
    };
    Cow::Owned(text.chars().map(shown).collect())
}

/// The reason of an error that may quote a file: one line, not longer than people read.
#[must_use]
pub fn reason(text: &str) -> String {
    excerpt(text, REASON_CHARS_MAX)
}

/// One line of at most `most` characters.
#[must_use]
pub fn excerpt(text: &str, most: usize) -> String {
    let shown = line(text);
    match shown.char_indices().nth(most) {
        Some((end, _)) => format!("{} …", shown.get(..end).unwrap_or_default()),
        None => shown.into_owned(),
    }
}

/// JSON text with what is harmful in its strings escaped: the same value to every reader.
#[must_use]
pub fn json(text: String) -> String {
    // What JSON escapes by itself are the characters below space.
    if text.bytes().all(|b| b < 0x7f) || !text.contains(is_harmful) {
        return text;
    }
    let mut out = String::with_capacity(text.len().saturating_add(16));
    for c in text.chars() {
        if is_harmful(c) {
            // Writing to a String cannot fail; none of them is beyond 16 bits.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Without the ` (os error N)` that stands behind the words of an error of the system.
#[must_use]
pub fn without_error_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.bytes().all(|b| b.is_ascii_digit()) => {
                out.push_str(rest)
            }
            _ => {
                out.push_str(" (os error ");
                out.push_str(part);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_harmful_is_left_and_the_rest_is_untouched() {
        let all: String = ('\0'..'\u{3000}').collect();
        for shown in [text(&all).into_owned(), line(&all).into_owned()] {
            assert!(!shown.contains(is_harmful) && shown.chars().count() == all.chars().count());
            assert!(shown.contains("~") && shown.contains('é') && shown.contains('א'));
        }
        assert!(text("a\n\tb").contains("\n\t") && line("a\n\tb") == "a  b");
        let value = serde_json::json!({ "a": all });
        let written = json(value.to_string());
        assert!(!written.contains(is_harmful));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&written).ok(), Some(value));
        assert!(reason(&"x".repeat(10_000)).chars().count() < 700);
    }

    #[test]
    fn numbers_of_errors_are_left_out_and_nothing_else() {
        assert_eq!(without_error_numbers("a: gone (os error 2); try b"), "a: gone; try b");
        for same in ["a: gone", "a (os error x)", "a (os error 2"] {
            assert_eq!(without_error_numbers(same), same);
        }
    }
}
