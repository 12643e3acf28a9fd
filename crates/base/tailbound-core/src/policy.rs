// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduling policies as people write them: `fifo:95`, `rr:10`, `other`, `deadline:200us/1ms`.
//!
//! Source: sched(7).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::units;
use crate::words::Word;

/// A scheduling policy and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Word", into = "String")]
pub enum Policy {
    /// SCHED_OTHER.
    Other,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_FIFO with priority 1 to 99.
    Fifo(u8),
    /// SCHED_RR with priority 1 to 99.
    Rr(u8),
    /// SCHED_DEADLINE; the deadline is the period.
    Deadline {
        /// Budget in each period.
        runtime_ns: u64,
        /// Period and deadline.
        period_ns: u64,
    },
    /// Of a file: what this version does not know, as it stands.
    Unknown(Word),
}

impl Policy {
    /// SCHED_FIFO, SCHED_RR or SCHED_DEADLINE.
    #[must_use]
    pub fn is_realtime(self) -> bool {
        matches!(self, Self::Fifo(_) | Self::Rr(_) | Self::Deadline { .. })
    }
    /// The static priority, 0 where there is none.
    #[must_use]
    pub fn priority(self) -> u8 {
        match self {
            Self::Fifo(p) | Self::Rr(p) => p,
            _ => 0,
        }
    }
}

/// Why a text is not a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a scheduling policy ({reason}): write fifo:1..99, rr:1..99, other, batch, idle or deadline:RUNTIME/PERIOD"
)]
pub struct ParsePolicyError {
    text: String,
    reason: String,
}

impl FromStr for Policy {
    type Err = ParsePolicyError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail =
            |reason: &str| ParsePolicyError { text: text.to_owned(), reason: reason.to_owned() };
        let (name, rest) = text.split_once(':').map_or((text, None), |(n, r)| (n, Some(r)));
        let priority_of = |text: &str| {
            text.parse::<u8>()
                .ok()
                .filter(|p| (1..=99).contains(p))
                .ok_or_else(|| fail("the priority must be 1 to 99"))
        };
        let priority = || priority_of(rest.unwrap_or("95"));
        match name {
            // As of cyclictest: a priority alone is one of SCHED_FIFO.
            number if rest.is_none() && number.starts_with(|c: char| c.is_ascii_digit()) => {
                Ok(Self::Fifo(priority_of(number)?))
            }
            "fifo" => Ok(Self::Fifo(priority()?)),
            "rr" => Ok(Self::Rr(priority()?)),
            "other" | "batch" | "idle" if rest.is_some() => {
                Err(fail("this policy has no priority"))
            }
            "other" => Ok(Self::Other),
            "batch" => Ok(Self::Batch),
            "idle" => Ok(Self::Idle),
            "deadline" => {
                let (runtime, period) = rest
                    .and_then(|r| r.split_once('/'))
                    .ok_or_else(|| fail("deadline needs RUNTIME/PERIOD"))?;
                let ns = |s: &str| {
                    units::parse_ns(s)
                        .map_err(|e| fail(&e.to_string()))
                        .and_then(|v| u64::try_from(v).map_err(|_| fail("a time is negative")))
                };
                let (runtime_ns, period_ns) = (ns(runtime)?, ns(period)?);
                // sched(7): the kernel refuses a runtime below 1024 ns and one above the period.
                if runtime_ns < 1024 || runtime_ns > period_ns {
                    return Err(fail(
                        "the runtime must be at least 1024 ns and at most the period",
                    ));
                }
                Ok(Self::Deadline { runtime_ns, period_ns })
            }
            _ => Err(fail("unknown name")),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other => f.write_str("other"),
            Self::Batch => f.write_str("batch"),
            Self::Idle => f.write_str("idle"),
            Self::Fifo(p) => write!(f, "fifo:{p}"),
            Self::Rr(p) => write!(f, "rr:{p}"),
            Self::Unknown(word) => f.write_str(word.as_str()),
            Self::Deadline { runtime_ns, period_ns } => write!(
                f,
                "deadline:{}/{}",
                units::exact(runtime_ns.cast_signed()),
                units::exact(period_ns.cast_signed())
            ),
        }
    }
}

impl From<Word> for Policy {
    /// As files are read; what a person types is parsed instead.
    fn from(word: Word) -> Self {
        word.as_str().parse().unwrap_or(Self::Unknown(word))
    }
}

impl From<Policy> for String {
    fn from(policy: Policy) -> Self {
        policy.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_and_refuses() {
        for text in ["fifo:95", "rr:1", "other", "batch", "idle", "deadline:200us/1ms"] {
            assert_eq!(text.parse::<Policy>().map(|p| p.to_string()).as_deref(), Ok(text));
        }
        for text in [
            "fifo:0",
            "fifo:100",
            "other:1",
            "deadline",
            "deadline:2ms/1ms",
            "deadline:1/2",
            "isochronous",
        ] {
            assert!(text.parse::<Policy>().is_err(), "{text}");
        }
    }
}
