// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texts of a line that are longer than anybody reads, cut before they are parsed.
//!
//! Units: bytes of the line. A line may have a text of 8 MiB, and whoever shows the run would show it several times. What is cut stays
//! JSON: a text ends between two characters. Not here: the digest, which is of the whole line.

/// What stands for what was left out.
const REST: &[u8] = " …".as_bytes();

/// Cuts each text of a line to `most` bytes and the character that is begun.
pub(super) fn shorten(line: &mut Vec<u8>, most: usize) {
    if line.len() <= most {
        return;
    }
    let mut kept = Vec::with_capacity(line.len().min(most.saturating_mul(2)));
    let mut rest = line.as_slice();
    while let Some(quote) = rest.iter().position(|b| *b == b'"') {
        let (before, text) = rest.split_at(quote.saturating_add(1));
        kept.extend_from_slice(before);
        let length = text_length(text);
        let (text, behind) = text.split_at(length);
        match cut(text, most) {
            Some(at) => {
                kept.extend_from_slice(text.get(..at).unwrap_or_default());
                kept.extend_from_slice(REST);
            }
            None => kept.extend_from_slice(text),
        }
        // The quote that ends it.
        let (end, behind) = behind.split_at(behind.len().min(1));
        kept.extend_from_slice(end);
        rest = behind;
    }
    kept.extend_from_slice(rest);
    *line = kept;
}

/// Up to the quote that ends the text.
fn text_length(text: &[u8]) -> usize {
    let mut escaped = false;
    let end = text.iter().position(|byte| {
        let is_end = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        is_end
    });
    end.unwrap_or(text.len())
}

/// Where a text is cut: at the first character behind `most`; `None`: it is short enough.
fn cut(text: &[u8], most: usize) -> Option<usize> {
    if text.len() <= most {
        return None;
    }
    let mut at: usize = 0;
    while at < text.len() {
        let rest = text.get(at..).unwrap_or_default();
        // The second half of a pair belongs to the first one.
        let is_second = match rest {
            [b'\\', b'u', b'd' | b'D', fourth, ..] => {
                matches!(fourth.to_ascii_lowercase(), b'c'..=b'f')
            }
            _ => false,
        };
        if at >= most && !is_second {
            return Some(at);
        }
        let length: usize = match rest {
            [b'\\', b'u', ..] => 6,
            [b'\\', ..] => 2,
            [0xc0..=0xdf, ..] => 2,
            [0xe0..=0xef, ..] => 3,
            [0xf0..=0xff, ..] => 4,
            _ => 1,
        };
        at = at.saturating_add(length);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortened(line: &str, most: usize) -> String {
        let mut bytes = line.as_bytes().to_vec();
        shorten(&mut bytes, most);
        String::from_utf8(bytes).unwrap_or_else(|e| panic!("{line}: {e}"))
    }

    #[test]
    fn what_is_cut_stays_what_it_was_up_to_there() {
        assert_eq!(shortened(r#"{"a":"12345","b":[1,2,3]}"#, 3), r#"{"a":"123 …","b":[1,2,3]}"#);
        assert_eq!(shortened(r#"{"a":"123"}"#, 3), r#"{"a":"123"}"#);
        // Numbers are no texts.
        let numbers = format!("{{\"a\":[{}1]}}", "1,".repeat(5000));
        assert_eq!(shortened(&numbers, 4), numbers);
    }

    #[test]
    fn no_character_is_cut_wherever_the_end_falls() {
        let text = r#"µ…€\"\\\n\u00b5\ud83d\ude00😀x"#;
        let whole: String = serde_json::from_str(&format!("\"{text}\"")).unwrap_or_default();
        assert!(!whole.is_empty());
        for most in 0..text.len() {
            let line = shortened(&format!("{{\"k\":\"{text}\",\"n\":7}}"), most);
            let read: serde_json::Value =
                serde_json::from_str(&line).unwrap_or_else(|e| panic!("{most}: {line}: {e}"));
            let name = read.as_object().and_then(|o| o.keys().next().cloned());
            let got = name.and_then(|name| read[name.as_str()].as_str().map(str::to_owned));
            let got = got.unwrap_or_default();
            let got = got.strip_suffix(" …").unwrap_or(&got);
            assert!(whole.starts_with(got), "{most}: {line}");
        }
    }

    #[test]
    fn what_is_no_json_is_left_to_the_parser() {
        for line in [r#"{"a":"no end"#, r#"{"a":"\"#, r#"""#, r#"{"a":"\u12"#] {
            for most in 0..6 {
                assert!(serde_json::from_str::<serde_json::Value>(&shortened(line, most)).is_err());
            }
        }
    }
}
