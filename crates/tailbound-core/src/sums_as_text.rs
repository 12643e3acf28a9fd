// SPDX-License-Identifier: MIT OR Apache-2.0
//! 128-bit sums as JSON strings: no reader loses their digits.
//!
//! Context: COLD. Units: ns^k. Used by `#[serde(with)]` of a distribution.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tailbound_rt::sums::Sums;

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
    if i128::try_from(sums.s2).is_err() {
        return Err(D::Error::custom("the sum of squares is out of range"));
    }
    Ok(Some(sums))
}
