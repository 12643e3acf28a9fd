// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first bytes of a file: is it text as run files are, and of a version that is read?
//!
//! Asked before the first line is parsed, because the header of another version
//! need not be one of ours.
//! Source: RFC 8259, section 8.1 (no byte-order mark, but a reader may ignore one).

use serde::Deserialize;

use super::ReadError;
use super::fault::LineFault;
use crate::finding::{Finding, Impact};
use crate::printable;
use crate::record::SCHEMA;

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const NAME: &str = "tailbound-run/";
const HEADER: &[u8] = b"{\"type\":\"header\"";

/// Whether a file that begins with `head` is one of ours, as we write it or as a program since
/// made it: with a byte-order mark, or in UTF-16 (which the reader refuses by name).
#[must_use]
pub fn is_run_file(head: &[u8]) -> bool {
    let text: Vec<u8> = match utf16(head) {
        Some(_) => head.iter().copied().filter(|b| ![0, 0xfe, 0xff].contains(b)).collect(),
        None => head.strip_prefix(UTF8_MARK).unwrap_or(head).iter().copied().take(64).collect(),
    };
    text.starts_with(HEADER)
}

/// Looks at the first line; a byte-order mark is taken off it.
///
/// # Errors
/// Text in another encoding, or a run file of another version: what it is and what to do.
pub(super) fn first(bytes: &mut Vec<u8>) -> Result<Option<Finding>, ReadError> {
    if let Some(encoding) = utf16(bytes) {
        return Err(ReadError::Line { line: 1, reason: LineFault::Encoding(encoding) });
    }
    let marked = bytes.starts_with(UTF8_MARK);
    if marked {
        bytes.drain(..UTF8_MARK.len());
    }
    version(bytes)?;
    Ok(marked.then(|| {
        Finding::listed(
            "byte-order-mark",
            Impact::Notice,
            "the run file begins with a byte-order mark, which tailbound never writes",
        )
    }))
}

/// Which UTF-16 a text is in, by its mark or by every other byte of `{"`.
#[must_use]
pub fn utf16(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xfe, ..] | [b'{' | b'"', 0, ..] => Some("UTF-16LE"),
        [0xfe, 0xff, ..] | [0, b'{' | b'"', ..] => Some("UTF-16BE"),
        _ => None,
    }
}

/// Refuses the header of another version, whatever else stands in it.
fn version(line: &[u8]) -> Result<(), ReadError> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "type")]
        kind: String,
        schema: String,
        #[serde(default)]
        tool: Option<String>,
    }
    let Ok(head) = serde_json::from_slice::<Head>(line) else { return Ok(()) };
    if head.kind != "header" || head.schema == SCHEMA {
        return Ok(());
    }
    let number = |schema: &str| schema.strip_prefix(NAME)?.parse::<u64>().ok();
    let short = |text: &str| printable::excerpt(text, 80);
    let by = head.tool.map_or_else(String::new, |t| format!("; it was written by {}", short(&t)));
    let advice = match number(&head.schema).zip(number(SCHEMA)) {
        Some((theirs, ours)) if theirs > ours => {
            format!("is newer than this version reads: use a newer tailbound{by}")
        }
        Some(_) => format!(
            "is older than this version reads: use the tailbound that wrote it, or one that still reads it{by}"
        ),
        None => format!("is no version of a run file{by}"),
    };
    Err(ReadError::Schema { schema: short(&head.schema), advice })
}

#[cfg(test)]
mod tests {
    use super::super::read_run;
    use super::*;

    fn header(schema: &str) -> String {
        format!(
            r#"{{"type":"header","schema":"{schema}","tool":"t 9","id":"i","started":"s","command":[],"plan":{{"probe":"cyclic","interval_ns":1000000,"activations":9,"warm_up_ns":0,"cpus":"0","policy":"other","clock":"monotonic","means":"nanosleep","loads":[],"requirement":{{}}}},"machine":{{}}}}"#
        ) + "\n"
    }

    fn refusal(bytes: &[u8]) -> String {
        read_run(bytes).map_or_else(|e| e.to_string(), |_| "it was read".to_owned())
    }

    #[test]
    fn another_version_is_told_from_which_side_it_is() {
        for (schema, words) in [
            ("tailbound-run/2", "use a newer tailbound; it was written by t 9"),
            ("tailbound-run/18446744073709551615", "use a newer tailbound"),
            ("tailbound-run/0", "use the tailbound that wrote it"),
            ("tailbound-campaign/1", "no version of a run file"),
            ("tailbound-run/next", "no version of a run file"),
        ] {
            let refused = refusal(header(schema).as_bytes());
            assert!(refused.contains(words) && refused.contains(schema), "{schema}: {refused}");
        }
        // A header of which nothing else is known.
        let strange = r#"{"schema":"tailbound-run/2","type":"header","plan":7}"#;
        assert!(refusal(strange.as_bytes()).contains("use a newer tailbound"));
    }

    #[test]
    fn a_byte_order_mark_is_passed_over_with_a_note() {
        let run = read_run([UTF8_MARK, header(SCHEMA).as_bytes()].concat().as_slice());
        let run = run.unwrap_or_else(|e| panic!("{e}"));
        assert!(run.findings.iter().any(|f| f.id == "byte-order-mark"), "{:?}", run.findings);
        assert!(read_run(header(SCHEMA).as_bytes()).is_ok_and(|r| r.findings.is_empty()));
    }

    #[test]
    fn other_encodings_are_named() {
        let text = header(SCHEMA);
        let units = || text.encode_utf16();
        let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        for (bytes, name) in [
            (little.clone(), "UTF-16LE"),
            ([&[0xff, 0xfe][..], &little].concat(), "UTF-16LE"),
            (big.clone(), "UTF-16BE"),
            ([&[0xfe, 0xff][..], &big].concat(), "UTF-16BE"),
        ] {
            let refused = refusal(&bytes);
            assert!(refused.contains(name) && refused.contains("iconv"), "{refused}");
            assert!(is_run_file(&bytes));
        }
    }
}
