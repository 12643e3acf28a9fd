// SPDX-License-Identifier: MIT OR Apache-2.0
//! From ticks of a capture to ns, exactly: a tick may be a fraction of a ns or a third of one.
//!
//! Units: ns, ticks, Hz. A latency is rounded up and a time down, by less than 1 ns.

use std::str::FromStr;

const NS_PER_S: u64 = 1_000_000_000;

/// Length of a tick, as a fraction of ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeBase {
    numerator: u64,
    denominator: u64,
}

impl TimeBase {
    /// A picosecond.
    pub(crate) const PICOSECOND: Self = Self { numerator: 1, denominator: 1000 };

    /// `femtoseconds` a tick.
    pub(crate) fn of_femtoseconds(femtoseconds: u64) -> Option<Self> {
        (femtoseconds > 0).then_some(Self { numerator: femtoseconds, denominator: 1_000_000 })
    }

    /// Of a clock with `hz` ticks a second.
    #[must_use]
    pub fn of_hz(hz: u64) -> Option<Self> {
        (hz > 0).then_some(Self { numerator: NS_PER_S, denominator: hz })
    }

    /// A nanosecond.
    pub const NANOSECOND: Self = Self { numerator: 1, denominator: 1 };

    /// The ticks between two instants, in ns, rounded up: never less than it was.
    #[must_use]
    pub fn latency_ns(self, ticks: i64) -> i64 {
        let (numerator, denominator) = (i128::from(self.numerator), i128::from(self.denominator));
        let product = i128::from(ticks).saturating_mul(numerator);
        let up = product.saturating_add(denominator - 1).div_euclid(denominator);
        i64::try_from(up).unwrap_or(i64::MAX)
    }

    /// An instant in ns, rounded down.
    #[must_use]
    pub fn time_ns(self, ticks: i64) -> i64 {
        let product = i128::from(ticks).saturating_mul(i128::from(self.numerator));
        let down = product.div_euclid(i128::from(self.denominator));
        i64::try_from(down).unwrap_or(i64::MAX)
    }
}

/// Samples in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRate {
    hz: u64,
}

impl SampleRate {
    /// A tick of one sample.
    pub(crate) fn time_base(self) -> TimeBase {
        TimeBase { numerator: NS_PER_S, denominator: self.hz }
    }

    /// From one sample to the next, in ns, rounded up.
    #[must_use]
    pub fn period_ns(self) -> u64 {
        NS_PER_S.div_ceil(self.hz)
    }
}

/// A text that is no sample rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no sample rate such as 24MHz, 500kHz or 1000000")]
pub struct SampleRateError {
    text: String,
}

impl FromStr for SampleRate {
    type Err = SampleRateError;
    /// `1 MHz`, `24MHz`, `12.5 MHz`, `200k`, `1000000`.
    fn from_str(text: &str) -> Result<Self, SampleRateError> {
        let wrong = || SampleRateError { text: text.to_owned() };
        let plain = text.trim();
        let plain = plain.strip_suffix("Hz").unwrap_or(plain).trim_end();
        let (number, scale) = match plain.char_indices().next_back() {
            Some((at, 'k' | 'K')) => (plain.get(..at).unwrap_or_default(), 1_000u64),
            Some((at, 'M')) => (plain.get(..at).unwrap_or_default(), 1_000_000),
            Some((at, 'G')) => (plain.get(..at).unwrap_or_default(), 1_000_000_000),
            _ => (plain, 1),
        };
        let hz = decimal(number.trim_end(), scale).and_then(|hz| u64::try_from(hz).ok());
        // Beyond it no analyser samples, and a tick is less than a fs.
        hz.filter(|hz| (1..=1_000_000_000_000).contains(hz)).map(|hz| Self { hz }).ok_or_else(wrong)
    }
}

/// A decimal number times `scale`, a power of ten, where that is whole.
pub(crate) fn decimal(text: &str, scale: u64) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1i64, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !all(whole) || !all(fraction) {
        return None;
    }
    let scale = i64::try_from(scale).ok()?;
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut sum = whole.checked_mul(scale)?;
    let mut step = scale;
    for digit in fraction.bytes() {
        let value = i64::from(digit.wrapping_sub(b'0'));
        if step % 10 != 0 {
            // What is finer than a tick must be nothing.
            if value != 0 {
                return None;
            }
            continue;
        }
        step /= 10;
        sum = sum.checked_add(value.checked_mul(step)?)?;
    }
    sum.checked_mul(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        for (text, hz) in [
            ("1 MHz", 1_000_000),
            ("24MHz", 24_000_000),
            ("12.5 MHz", 12_500_000),
            ("200 kHz", 200_000),
            ("500k", 500_000),
            ("1000000", 1_000_000),
            ("1 GHz", 1_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(SampleRate { hz }), "{text}");
        }
        for text in ["", "0", "MHz", "-1 MHz", "1.5", "1e6", "9999999999999999999 GHz", "1 μHz"] {
            assert!(text.parse::<SampleRate>().is_err(), "{text}");
        }
    }

    #[test]
    fn thirds_of_a_ns_do_not_drift() {
        let base = SampleRate { hz: 24_000_000 }.time_base();
        assert_eq!(base.time_ns(24_000_000), 1_000_000_000);
        assert_eq!((base.time_ns(1), base.latency_ns(1)), (41, 42));
        assert_eq!(base.time_ns(-3), -125);
        assert_eq!(TimeBase::PICOSECOND.latency_ns(1001), 2);
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(decimal("0.000000002", 1_000_000_000_000), Some(2000));
        assert_eq!(decimal("-1.5", 1000), Some(-1500));
        assert_eq!(decimal("1.0000", 10), Some(10));
        assert_eq!(decimal("1.05", 10), None);
        assert_eq!(decimal(".", 10), None);
        assert_eq!(decimal("99999999999999999999", 10), None);
    }
}
