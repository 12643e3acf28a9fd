// SPDX-License-Identifier: MIT OR Apache-2.0
//! Foreign text, line by line: bounded, without terminal control sequences, and numbers
//! out of it with a message that names the line.
//!
//! Units: as the caller says (`unit_ns` is the length of the source's unit).
//! Limits: a line of more than 16 MiB is refused; nothing is copied unless it has to be
//! cleaned. Source: ECMA-48 (control sequences begin with ESC `[` and end in `@` to `~`, strings begin with ESC `]`).

use tailbound_core::number::{Real as _, Whole as _};

use std::borrow::Cow;

use crate::error::{Fault, excerpt};

/// Longest line that is looked at.
pub(crate) const LINE_MAX: usize = 16 << 20;
/// What is said of a longer one.
pub(crate) const TOO_LONG: &str = "longer than 16 MiB: this is not the text of a tool";
/// Most threads times contexts of one file: more is not a measurement but an accident.
pub(crate) const THREADS_MAX: usize = 1024;

/// The lines of a file with their numbers, cleaned.
pub(crate) struct Lines<'a> {
    rest: &'a [u8],
    line: u64,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes), line: 0 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Result<(u64, Cow<'a, str>), Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        self.line += 1;
        let end = self.rest.iter().position(|b| *b == b'\n');
        let (line, rest) = match end {
            Some(i) => (self.rest.get(..i)?, self.rest.get(i + 1..)?),
            None => (self.rest, &[][..]),
        };
        self.rest = rest;
        if line.len() > LINE_MAX {
            self.rest = &[];
            return Some(Err(Fault::line(self.line, TOO_LONG)));
        }
        Some(Ok((self.line, clean(line))))
    }
}

/// A line without control sequences and the carriage return; bytes that are not UTF-8 become `U+FFFD`.
pub(crate) fn clean(line: &[u8]) -> Cow<'_, str> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if !line.contains(&0x1b) {
        return String::from_utf8_lossy(line);
    }
    let mut out = Vec::with_capacity(line.len());
    let mut bytes = line.iter().copied();
    while let Some(b) = bytes.next() {
        if b != 0x1b {
            out.push(b);
            continue;
        }
        match bytes.next() {
            Some(b'[') => {
                bytes.by_ref().find(|b| (0x40..=0x7e).contains(b));
            }
            // The title of a window, which ends in BEL or ESC `\`.
            Some(b']') if bytes.by_ref().find(|b| matches!(b, 0x07 | 0x1b)) == Some(0x1b) => {
                bytes.next();
            }
            _ => {}
        }
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

/// A whole number; `what` names it in the message.
pub(crate) fn count(field: &str, line: u64, what: &str) -> Result<u64, Fault> {
    field.trim().parse().map_err(|_| {
        let digits = !field.trim().is_empty() && field.trim().bytes().all(|b| b.is_ascii_digit());
        let why = match (digits, has_comma(field)) {
            (true, _) => "is beyond 2^64",
            (false, true) => COMMA,
            (false, false) => "is not a whole number",
        };
        Fault::line(line, format!("{what} `{}` {why}", excerpt(field)))
    })
}

/// A decimal number in units of `unit_ns`, as ns.
pub(crate) fn ns(field: &str, unit_ns: u64, line: u64, what: &str) -> Result<i64, Fault> {
    scaled(field, unit_ns).ok_or_else(|| {
        let why = if has_comma(field) { COMMA } else { "is not a time within 292 years" };
        Fault::line(line, format!("{what} `{}` {why}", excerpt(field)))
    })
}

/// What is said of a number with a comma.
pub(crate) const COMMA: &str = "has a comma, and whether that stands for decimals or for thousands is not known: the tool writes none; \
     write decimal points and no separators of thousands, and import again";

/// Digits with a comma between them?
pub(crate) fn has_comma(field: &str) -> bool {
    let field = field.trim().trim_start_matches(['+', '-']);
    field.split_once(',').is_some_and(|(whole, rest)| {
        let digits = |s: &str| {
            !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit() || b == b',' || b == b'.')
        };
        digits(whole) && digits(rest)
    })
}

/// A decimal number in units of `unit_ns`, as ns; `None` when it is no number or out of range.
pub(crate) fn scaled(field: &str, unit_ns: u64) -> Option<i64> {
    let field = field.trim();
    // Whole numbers stay exact; a float would round them beyond 2^53.
    if let Ok(whole) = field.parse::<i64>() {
        return whole.checked_mul(i64::try_from(unit_ns).ok()?);
    }
    if !field.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) {
        return None;
    }
    let value: f64 = field.parse().ok()?;
    float_ns(value * unit_ns.real())
}

/// A float of ns as whole ns, if it fits.
pub(crate) fn float_ns(ns: f64) -> Option<i64> {
    let ns = ns.round();
    (ns.is_finite() && ns.abs() < 9.2e18).then_some(ns.whole_i64())
}

/// The greatest number that divides both.
pub(crate) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cleaned_and_numbered() {
        let text = b"a\r\n\x1b[2;37;40mb\x1b[0;0;0m\n\xff\nlast";
        let got: Vec<_> =
            Lines::new(text).filter_map(Result::ok).map(|(n, l)| (n, l.into_owned())).collect();
        let want = [(1, "a"), (2, "b"), (3, "\u{fffd}"), (4, "last")];
        assert_eq!(got, want.map(|(n, l)| (n, l.to_owned())));
        for title in [&b"\x1b]0;root@h: ~\x07T: 0"[..], b"\x1b]0;root@h: ~\x1b\\T: 0"] {
            assert_eq!(clean(title), "T: 0", "the title of a window");
        }
        let long = vec![b'x'; LINE_MAX + 1];
        assert!(Lines::new(&long).any(|l| l.is_err()));
    }

    #[test]
    fn numbers_are_exact_or_refused() {
        assert_eq!(scaled("18.975", 1000), Some(18_975));
        assert_eq!(scaled("9007199254740993", 1), Some(9_007_199_254_740_993));
        for bad in ["", "nan", "inf", "1e300", "99999999999999999999", "0x10", "-"] {
            assert_eq!(scaled(bad, 1000), None, "{bad}");
        }
        assert!(
            count("18446744073709551616", 3, "count").is_err_and(|f| f.reason.contains("2^64"))
        );
    }
}
