// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times as people write and read them: `100us`, `1.5ms`, `12h` in; `83.4 µs` out.
//!
//! Units: ns in memory.
//! A bare number is refused: of all mistakes with latencies, a lost factor of 1000 is
//! the most common.

use crate::limits::NS_MAX;
use crate::number::{Real as _, Whole as _};

/// Why a text is not a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseTimeError {
    /// No unit.
    #[error("`{0}` has no unit: write for example `{0}us` or `{0}ms` (ns, us, ms, s, m, h, d)")]
    NoUnit(String),
    /// No unit, of a time that is seconds or more.
    #[error("`{0}` has no unit: write for example `{0}s` or `{0}m` (ns, us, ms, s, m, h, d)")]
    NoUnitOfSpan(String),
    /// Unknown unit.
    #[error("`{0}` is not a unit of time (ns, us, ms, s, m, h, d)")]
    UnknownUnit(String),
    /// Not a number.
    #[error("`{0}` is not a time: write a number and a unit, for example `100us`")]
    NotANumber(String),
    /// More than 36 years, or less than a nanosecond.
    #[error("`{0}` is out of range (1 ns to 36 years)")]
    OutOfRange(String),
}

const UNITS: [(&str, i64); 12] = [
    ("ns", 1),
    ("us", 1000),
    ("µs", 1000),
    ("μs", 1000),
    ("ms", 1_000_000),
    ("sec", 1_000_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("w", 604_800_000_000_000),
];
/// Times from here on, and before its negative, are out of range: a run file would not be read again.
const LIMIT_NS: i64 = NS_MAX;

/// Parses a time such as `100us`, `1.5ms`, `60s`, `12h` into ns; `0` with any unit is 0.
///
/// # Errors
/// [`ParseTimeError`], worded for the person who typed it.
pub fn parse_ns(text: &str) -> Result<i64, ParseTimeError> {
    let text = text.trim();
    let split =
        text.find(|c: char| c.is_alphabetic() || c == 'µ' || c == 'μ').unwrap_or(text.len());
    // `1e6us` is a number with an exponent, not a unit `e6us`.
    let split = match text.get(split..) {
        Some(rest) if rest.starts_with(['e', 'E']) && rest.len() > 1 => text
            .get(split.saturating_add(1)..)
            .and_then(|r| r.find(|c: char| c.is_alphabetic()))
            .map_or(text.len(), |i| split.saturating_add(1).saturating_add(i)),
        _ => split,
    };
    let (number, unit) = text.split_at(split);
    let value: f64 =
        number.trim().parse().map_err(|_| ParseTimeError::NotANumber(text.to_owned()))?;
    if unit.is_empty() {
        return Err(ParseTimeError::NoUnit(text.to_owned()));
    }
    let (_, factor) = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(|| ParseTimeError::UnknownUnit(unit.to_owned()))?;
    let out_of_range = || ParseTimeError::OutOfRange(text.to_owned());
    // A whole number is kept to the nanosecond; a float holds only 104 days of them.
    if let Ok(whole) = number.trim().parse::<i64>() {
        let ns = whole.checked_mul(*factor).ok_or_else(out_of_range)?;
        return if ns.unsigned_abs() < LIMIT_NS.unsigned_abs() {
            Ok(ns)
        } else {
            Err(out_of_range())
        };
    }
    let ns = (value * factor.real()).round();
    if !ns.is_finite() || ns.abs() >= LIMIT_NS.real() || (ns == 0.0 && value != 0.0) {
        return Err(out_of_range());
    }
    Ok(ns.whole_i64())
}

/// Formats ns for a person: three significant digits and the unit that fits, `83.4 µs`.
#[must_use]
pub fn format_ns(ns: f64) -> String {
    if !ns.is_finite() {
        return "unknown".to_owned();
    }
    let a = ns.abs();
    let (value, unit) = match a {
        _ if a < 999.5 => (ns, "ns"),
        _ if a < 999.5e3 => (ns / 1e3, "µs"),
        _ if a < 999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let v = value.abs();
    let digits = if unit == "ns" && ns.fract() == 0.0 || v >= 99.95 {
        0
    } else if v >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}")
}

/// Formats whole ns as [`format_ns`] does.
#[must_use]
pub fn format_ns_i64(ns: i64) -> String {
    format_ns(ns.real())
}

/// Formats a length of time for a person: `350 ms`, `60 s`, `2 min 30 s`, `12 h`.
#[must_use]
pub fn format_span(ns: i64) -> String {
    let s = ns / 1_000_000_000;
    if s < 120 {
        return if ns % 1_000_000_000 == 0 { format!("{s} s") } else { format_ns_i64(ns) };
    }
    let parts = [(s / 86_400, "d"), (s / 3600 % 24, "h"), (s / 60 % 60, "min"), (s % 60, "s")];
    let words: Vec<String> = parts
        .iter()
        .skip_while(|p| p.0 == 0)
        .take(2)
        .filter(|p| p.0 > 0)
        .map(|(v, u)| format!("{v} {u}"))
        .collect();
    words.join(" ")
}

/// Writes ns in the form [`parse_ns`] reads, exactly: `100us`, `1500ns`.
#[must_use]
pub fn exact(ns: i64) -> String {
    let unit = [
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1000),
    ]
    .into_iter()
    .find_map(|(name, f)| {
        let whole = ns.checked_div(f).filter(|n| *n != 0)?;
        (whole.checked_mul(f) == Some(ns)).then_some((name, whole))
    });
    match unit {
        Some((name, n)) => format!("{n}{name}"),
        None => format!("{ns}ns"),
    }
}

/// Writes ns exactly, in the form people write it: `1 ms`, `100 µs`.
#[must_use]
pub fn spaced(ns: i64) -> String {
    let text = exact(ns);
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let unit = match unit {
        "us" => "µs",
        "m" => "min",
        other => other,
    };
    format!("{number} {unit}")
}

/// Groups digits by thousands: `1 234 567` with thin no-break spaces replaced by commas, `1,234,567`.
#[must_use]
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len().saturating_mul(2));
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && digits.len().saturating_sub(i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A number with at most three decimals and no trailing zeros.
#[must_use]
pub fn trimmed(v: f64, decimals: usize) -> String {
    let text = format!("{v:.decimals$}");
    let text = match text.split_once('.') {
        Some((whole, part)) if part.trim_end_matches('0').is_empty() => whole.to_owned(),
        Some(_) => text.trim_end_matches('0').to_owned(),
        None => text,
    };
    if text == "-0" { "0".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, ns) in [
            ("100us", 100_000),
            ("1.5ms", 1_500_000),
            ("100 µs", 100_000),
            ("12h", 43_200_000_000_000),
            ("0s", 0),
            ("1e3us", 1_000_000),
            ("-5us", -5_000),
            ("31535999999999999ns", 31_535_999_999_999_999),
        ] {
            assert_eq!(parse_ns(text), Ok(ns), "{text}");
            assert_eq!(parse_ns(&exact(ns)), Ok(ns), "{text}");
        }
    }

    #[test]
    fn refuses_what_could_be_a_mistake() {
        assert!(matches!(parse_ns("100"), Err(ParseTimeError::NoUnit(_))));
        assert!(matches!(parse_ns("100xs"), Err(ParseTimeError::UnknownUnit(_))));
        assert!(matches!(parse_ns("us"), Err(ParseTimeError::NotANumber(_))));
        for long in ["1e30s", "20000d", "-20000d", "1e5d", "365000d"] {
            assert!(matches!(parse_ns(long), Err(ParseTimeError::OutOfRange(_))), "{long}");
        }
        assert_eq!(parse_ns("10000d"), Ok(864_000_000_000_000_000));
        assert!(matches!(parse_ns("0.0001ns"), Err(ParseTimeError::OutOfRange(_))));
        assert!(parse_ns("").is_err() && parse_ns("nans").is_err());
    }

    #[test]
    fn writes_for_people() {
        assert_eq!(format_ns(83_400.0), "83.4 µs");
        assert_eq!(format_ns(999_600.0), "1.00 ms");
        assert_eq!(format_ns(7.0), "7 ns");
        assert_eq!(format_span(150_000_000_000), "2 min 30 s");
        assert_eq!(format_span(43_200_000_000_000), "12 h");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
