// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes text from outside harmless where it is going: XML and HTML, a script element, a terminal.
//!
//! Context: COLD. Not here: layout of any kind.
//! Source: XML 1.0 section 2.2 (which characters a document may hold); ECMA-48 (escape sequences).

use std::fmt::Write as _;

/// Escapes for XML text and for attributes in double or single quotes. Characters that no
/// XML document may hold become U+FFFD, so that the reader sees that something was there.
#[must_use]
pub fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// JSON text for a `<script>` element: nothing in it can end the element or begin markup.
#[must_use]
pub fn script_json(value: &serde_json::Value) -> String {
    let plain = value.to_string();
    let mut out = String::with_capacity(plain.len());
    for c in plain.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}' => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// One line for a terminal: control characters (escape sequences, line ends, direction
/// overrides) become U+FFFD, so that a file's text cannot move the cursor or recolour it.
#[must_use]
pub fn terminal(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' | '\n' => ' ',
            c if c.is_control() => '\u{fffd}',
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                '\u{fffd}'
            }
            c => c,
        })
        .collect()
}

/// Words of a command line in the form a POSIX shell reads back as the same words.
#[must_use]
pub fn shell(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@%".contains(c);
    let quoted: Vec<String> = words
        .iter()
        .map(|w| {
            if !w.is_empty() && w.chars().all(plain) {
                w.clone()
            } else {
                format!("'{}'", w.replace('\'', "'\\''"))
            }
        })
        .collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_escape_sequences_do_not_get_through() {
        assert_eq!(xml("<b a='1'>&\u{1b}"), "&lt;b a=&#39;1&#39;&gt;&amp;\u{fffd}");
        let v = serde_json::json!({"a": "</script><!--&"});
        let text = script_json(&v);
        assert!(!text.contains('<') && !text.contains('&'), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).ok(), Some(v));
        assert_eq!(terminal("a\u{1b}[2Jb\nc"), "a\u{fffd}[2Jb c");
        let words = ["a b".to_owned(), "c".to_owned(), String::new(), "d'e".to_owned()];
        assert_eq!(shell(&words), r"'a b' c '' 'd'\''e'");
    }
}
