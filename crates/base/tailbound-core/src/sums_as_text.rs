// SPDX-License-Identifier: MIT OR Apache-2.0
//! 128-bit sums as JSON strings: no reader loses their digits.
//!
//! Units: ns^k. Used by `#[serde(with)]` of a distribution.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tailbound_rt::sums::Sums;

use crate::limits;

#[derive(Serialize, Deserialize)]
struct Text {
    n: u64,
    clamped: u64,
    s1: String,
    s2: String,
    s3: String,
    s4_low: String,
    s4_high: u64,
}

pub(crate) fn serialize<S: Serializer>(sums: &Option<Sums>, to: S) -> Result<S::Ok, S::Error> {
    sums.map(|s| Text {
        n: s.n,
        clamped: s.clamped,
        s1: s.s1.to_string(),
        s2: s.s2.to_string(),
        s3: s.s3.to_string(),
        s4_low: s.s4_low.to_string(),
        s4_high: s.s4_high,
    })
    .serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Sums>, D::Error> {
    fn number<T: std::str::FromStr, E: serde::de::Error>(text: &str) -> Result<T, E> {
        text.parse().map_err(|_| E::custom(format!("`{text}` is not a whole number")))
    }
    let Some(t) = Option::<Text>::deserialize(from)? else {
        return Ok(None);
    };
    let sums = Sums {
        n: t.n,
        clamped: t.clamped,
        s1: number(&t.s1)?,
        s2: number(&t.s2)?,
        s3: number(&t.s3)?,
        s4_low: number(&t.s4_low)?,
        s4_high: t.s4_high,
    };
    is_bounded(&sums).map_err(D::Error::custom)?;
    Ok(Some(sums))
}

/// Within what [`limits::COUNT_MAX`] values can sum up to, and so within what arithmetic on it holds.
pub(crate) fn is_bounded(sums: &Sums) -> Result<(), limits::LimitError> {
    let n = u128::from(sums.n);
    if sums.n.max(sums.clamped) > limits::COUNT_MAX {
        return Err(limits::beyond("n of the sums is", limits::COUNT_MAX));
    }
    // A value enters with at most 31 bits; cubes of that many values may exceed 128 bits.
    let cubes = n.checked_mul(1 << 93).unwrap_or(i128::MAX.unsigned_abs());
    if sums.s1.unsigned_abs() > n << 31
        || sums.s2 > n << 62
        || sums.s3.unsigned_abs() > cubes
        || sums.s4_high > 1 << 44
    {
        return Err(limits::LimitError::Sums);
    }
    Ok(())
}
