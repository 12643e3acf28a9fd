// SPDX-License-Identifier: MIT OR Apache-2.0
//! The unit of cyclictest's figures: µs, or ns with `-N`.

/// Of latencies in figures, and of the limits of `-b`, `-h` and `-H`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unit {
    #[default]
    Micros,
    Nanos,
}

impl Unit {
    pub(crate) fn ns(self) -> i64 {
        match self {
            Self::Micros => 1000,
            Self::Nanos => 1,
        }
    }

    /// A latency in this unit, cut off as cyclictest cuts it.
    pub(crate) fn cut(self, ns: i64) -> i64 {
        match self {
            Self::Micros => ns / 1000,
            Self::Nanos => ns,
        }
    }

    /// The greatest latency in ns that is no greater than `limit` when it is cut off.
    pub(crate) fn limit_ns(self, limit: u64) -> i64 {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        limit.saturating_add(1).saturating_mul(self.ns()).saturating_sub(1)
    }
}
