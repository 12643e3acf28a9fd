// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fields of a row of CSV: separated by commas, perhaps in quotes (RFC 4180), without the blanks around them.

/// The fields of `row`.
pub(crate) fn fields(row: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(row);
    std::iter::from_fn(move || {
        let text = rest?;
        let quoted = text.trim_start().strip_prefix('"');
        if let Some((field, behind)) = quoted.and_then(|inner| inner.split_once('"')) {
            rest = behind.split_once(',').map(|(_, next)| next);
            return Some(field);
        }
        let (field, next) = match text.split_once(',') {
            Some((field, next)) => (field, Some(next)),
            None => (text, None),
        };
        rest = next;
        Some(field.trim())
    })
}

/// Do all fields begin as numbers do?
pub(crate) fn is_numbers(row: &str) -> bool {
    let number = |field: &str| {
        field.bytes().next().is_some_and(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.'))
    };
    fields(row).all(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_may_be_quoted_and_spaced() {
        let of = |row| fields(row).collect::<Vec<_>>();
        assert_eq!(of("a, b ,\"c, d\" ,e"), ["a", "b", "c, d", "e"]);
        assert_eq!(of("1,"), ["1", ""]);
        assert_eq!(of(""), [""]);
        assert_eq!(of("\"torn, x"), ["\"torn", "x"]);
        assert!(is_numbers("0.5, -1,0") && !is_numbers("0,a") && !is_numbers("0,"));
    }
}
