// SPDX-License-Identifier: MIT OR Apache-2.0
//! A text as a field of comma-separated values.
//!
//! Source: RFC 4180. What a spreadsheet would take for a formula is made text: names come from strangers.

/// `text` as one field, in quotes where it needs them; control characters become spaces.
#[must_use]
pub fn field(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let formula = text.starts_with(['=', '+', '-', '@']);
    let text = if formula { format!("'{text}") } else { text };
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn a_field_is_one_field_and_no_formula() {
        let all = [
            ("a", "a"),
            ("a,\"b\"", "\"a,\"\"b\"\"\""),
            ("two\r\nlines", "two  lines"),
            ("=1+1", "'=1+1"),
            ("@x,y", "\"'@x,y\""),
            ("", ""),
        ];
        for (text, is) in all {
            assert_eq!(field(text), is);
        }
    }
}
