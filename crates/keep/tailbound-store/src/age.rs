// SPDX-License-Identifier: MIT OR Apache-2.0
//! How old a run is, as people say it: `90d`, `2y`.

use std::str::FromStr;

const S_PER_DAY: i64 = 86_400;
/// Leap days do not count: who keeps runs for years does not count days.
const DAYS_PER_YEAR: i64 = 365;

/// A number of days or years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age {
    /// In seconds.
    pub s: i64,
}

impl Age {
    /// So many days.
    #[must_use]
    pub fn days(days: i64) -> Self {
        Self { s: days.saturating_mul(S_PER_DAY) }
    }
}

/// A text that is no age.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no age: days or years, for example 90d or 2y")]
pub struct AgeError(String);

impl FromStr for Age {
    type Err = AgeError;

    fn from_str(text: &str) -> Result<Self, AgeError> {
        let wrong = || AgeError(text.to_owned());
        let (number, days) = match (text.strip_suffix('d'), text.strip_suffix('y')) {
            (Some(number), _) => (number, 1),
            (_, Some(number)) => (number, DAYS_PER_YEAR),
            _ => return Err(wrong()),
        };
        let number: i64 = number.parse().map_err(|_| wrong())?;
        let s = number.checked_mul(days).and_then(|d| d.checked_mul(S_PER_DAY));
        s.filter(|s| *s >= 0).map(|s| Self { s }).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_days_and_years() {
        let age = |text: &str| text.parse::<Age>().ok().map(|a| a.s);
        assert_eq!(
            (age("90d"), age("2y"), age("0d")),
            (Some(90 * 86_400), Some(730 * 86_400), Some(0))
        );
        assert_eq!(
            (age("90"), age("-1d"), age("d"), age("99999999999999999y")),
            (None, None, None, None)
        );
    }
}
