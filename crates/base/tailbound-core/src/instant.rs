// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instants of CLOCK_REALTIME in words, as `date +%s.%N` prints them.
//!
//! Units: ns; s in the words.

const NS_PER_S: i64 = 1_000_000_000;
const DIGITS: usize = 9;

/// `1795608000.250000000`
#[must_use]
pub fn seconds(ns: i64) -> String {
    format!("{}.{:09}", ns.div_euclid(NS_PER_S), ns.rem_euclid(NS_PER_S))
}

/// A text that is no instant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no instant: write seconds since 1970, as `date +%s.%N` prints them")]
pub struct NoInstant(pub String);

/// The instant in ns.
///
/// # Errors
/// [`NoInstant`], worded for the person who typed it.
pub fn parse(text: &str) -> Result<i64, NoInstant> {
    let wrong = || NoInstant(text.to_owned());
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if !digits(whole) || !digits(part) || part.len() > DIGITS {
        return Err(wrong());
    }
    let part: i64 = format!("{part:0<DIGITS$}").parse().map_err(|_| wrong())?;
    let whole: i64 = whole.parse().map_err(|_| wrong())?;
    whole.checked_mul(NS_PER_S).and_then(|ns| ns.checked_add(part)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_instants_are_the_same() {
        for (text, ns) in
            [("0", 0), ("1.5", 1_500_000_000), ("1795608000.000000001", 1_795_608_000_000_000_001)]
        {
            assert_eq!(parse(text), Ok(ns), "{text}");
            assert_eq!(parse(&seconds(ns)), Ok(ns), "{text}");
        }
        for text in ["", ".5", "1.", "-1", "1e9", "1.0000000001", "99999999999", "noon"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
