// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes text from outside harmless where it is going: XML and HTML, a script element, a terminal.
//!
//! Not here: layout of any kind.
//! Source: XML 1.0 section 2.2 (which characters a document may hold); ECMA-48 (escape sequences).

use std::fmt::Write as _;

use tailbound_core::printable::{REPLACEMENT, is_harmful, line};

/// Escapes for XML text and for attributes in double or single quotes. Characters that no
/// XML document may hold, and those that turn the direction of what follows, become U+FFFD, so
/// that the reader sees that something was there.
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
            c if is_harmful(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(REPLACEMENT),
            c => out.push(c),
        }
    }
    out
}

/// Writing to a String cannot fail; the characters have 16 bits at most.
fn unicode(out: &mut String, c: char) {
    let _ = write!(out, "\\u{:04x}", u32::from(c));
}

/// JSON text for a `<script>` element: nothing in it can end the element or begin markup.
#[must_use]
pub fn script_json(value: &serde_json::Value) -> String {
    let plain = value.to_string();
    let mut out = String::with_capacity(plain.len());
    for c in plain.chars() {
        match c {
            '<' | '>' | '&' | '\u{fffe}' | '\u{ffff}' => unicode(&mut out, c),
            c if is_harmful(c) => unicode(&mut out, c),
            c => out.push(c),
        }
    }
    out
}

/// The path of a file beside the page, for an attribute that is a link: whatever it is made of, no
/// scheme (`javascript:`) and no other machine (`//host`).
#[must_use]
pub fn link(path: &str) -> String {
    let rest = path.trim_start_matches('/');
    let mut out = String::from(if rest == path { "" } else { "/" });
    for b in rest.bytes() {
        if b.is_ascii_alphanumeric() || b"-._~/".contains(&b) {
            out.push(char::from(b));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{b:02X}");
        }
    }
    out
}

/// One line for a terminal: control characters (escape sequences, line ends, direction
/// overrides) become U+FFFD, so that a file's text cannot move the cursor or recolour it.
#[must_use]
pub fn terminal(text: &str) -> String {
    line(text).into_owned()
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

/// The words that make this measurement again as they stand: without those that say where the
/// first one's files went, which are there now and are not overwritten.
#[must_use]
pub fn repeat(words: &[String]) -> String {
    /// Flags with a value.
    const VALUES: [&str; 4] = ["--out", "--report", "--svg", "--as-round"];
    // Another tool's line means something else by `-o`.
    let ours = words.first().is_some_and(|w| w.rsplit('/').next() == Some("tailbound"));
    if !ours {
        return shell(words);
    }
    let mut kept = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            kept.push(word.clone());
            break;
        }
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        let short = word.strip_prefix('-').and_then(|letters| {
            // `q` is the one flag without a value that can stand before it in one word.
            letters
                .strip_prefix("qo")
                .map(|v| ("-q", v))
                .or(letters.strip_prefix('o').map(|v| ("", v)))
        });
        if VALUES.contains(&name) {
            if name.len() == word.len() {
                rest.next();
            }
        } else if let Some((before, value)) = short {
            if value.is_empty() {
                rest.next();
            }
            if !before.is_empty() {
                kept.push(before.to_owned());
            }
        } else if word != "--force" {
            kept.push(word.clone());
        }
    }
    kept.extend(rest.cloned());
    shell(&kept)
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
        assert_eq!(link("javascript:alert(1)/a b.html"), "javascript%3Aalert%281%29/a%20b.html");
        assert_eq!((link("../x/é"), link("//host/x")), ("../x/%C3%A9".into(), "/host/x".into()));
        assert_eq!(xml("a\u{202e}b\u{9b}"), "a\u{fffd}b\u{fffd}");
        assert!(!script_json(&serde_json::json!("\u{202e}\u{9b}")).contains(is_harmful));
        assert_eq!(terminal("a\u{1b}[2Jb\nc"), "a\u{fffd}[2Jb c");
        let words = ["a b".to_owned(), "c".to_owned(), String::new(), "d'e".to_owned()];
        assert_eq!(shell(&words), r"'a b' c '' 'd'\''e'");
    }

    #[test]
    fn a_command_is_repeated_into_files_of_its_own() {
        let of = |line: &str| repeat(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for line in [
            "tailbound run -q -o a.jsonl -D 3s",
            "tailbound run -qo a.jsonl -D 3s --force",
            "tailbound run --out=a.jsonl -q -D 3s --report page.html",
            "tailbound run -q -D 3s -oa.jsonl --as-round {}",
        ] {
            assert_eq!(of(line), "tailbound run -q -D 3s", "{line}");
        }
        let line = "/usr/bin/tailbound run --rounds 3 -o x -- a: b:-o=y -o";
        assert_eq!(of(line), "/usr/bin/tailbound run --rounds 3 -- a: b:-o=y -o");
        assert_eq!(of("cyclictest -o 3"), "cyclictest -o 3", "another tool's line is its own");
    }
}
