// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of CPUs in the kernel's list format: `0-3,8`.
//!
//! Source: cpuset(7), "List format".

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Largest CPU number accepted: the kernel's own limit is 8191.
pub const MAX_CPU: u32 = 8191;

/// A set of CPU numbers; text form is the kernel's list format.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuSet(BTreeSet<u32>);

/// Why a text is not a CPU list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a CPU list ({reason}): write for example `0`, `2-3` or `0-1,4`")]
pub struct ParseCpusError {
    text: String,
    reason: &'static str,
}

impl CpuSet {
    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }
    /// How many CPUs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// No CPU at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Is `cpu` in the set?
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }
    /// Of a mask as the kernel writes it, `ff,00000001`: groups of 32 bits, the highest first.
    #[must_use]
    pub fn of_mask(text: &str) -> Option<Self> {
        let mut cpus = BTreeSet::new();
        for (group, word) in text.rsplit(',').enumerate() {
            let bits = u32::from_str_radix(word.trim(), 16).ok()?;
            let base = u32::try_from(group).ok()?.checked_mul(32)?;
            cpus.extend((0..32).filter(|b| bits >> b & 1 == 1).map(|b| base.saturating_add(b)));
        }
        (cpus.last().is_none_or(|c| *c <= MAX_CPU)).then_some(Self(cpus))
    }
    /// The CPUs of `self` that are not in `other`.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }
    /// The CPUs in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

impl FromStr for CpuSet {
    type Err = ParseCpusError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |reason| ParseCpusError { text: crate::printable::excerpt(text, 80), reason };
        let number = |s: &str| s.trim().parse::<u32>().map_err(|_| fail("not a number"));
        let mut cpus = BTreeSet::new();
        let mut listed = 0u32;
        for part in text.trim().split(',').filter(|p| !p.trim().is_empty()) {
            let (low, high) = match part.split_once('-') {
                Some((low, high)) => (number(low)?, number(high)?),
                None => (number(part)?, number(part)?),
            };
            if low > high {
                return Err(fail("a range runs backwards"));
            }
            if high > MAX_CPU {
                return Err(fail("no Linux machine has a CPU above 8191"));
            }
            listed = listed.saturating_add(high.saturating_sub(low)).saturating_add(1);
            if listed > 8 * (MAX_CPU + 1) {
                return Err(fail("the same CPUs are listed again and again"));
            }
            cpus.extend(low..=high);
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for cpu in self.iter() {
            match ranges.last_mut() {
                Some(last) if last.1.checked_add(1) == Some(cpu) => last.1 = cpu,
                _ => ranges.push((cpu, cpu)),
            }
        }
        let words: Vec<String> = ranges
            .iter()
            .map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") })
            .collect();
        f.write_str(&words.join(","))
    }
}

impl TryFrom<String> for CpuSet {
    type Error = ParseCpusError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<CpuSet> for String {
    fn from(set: CpuSet) -> Self {
        set.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_and_refuses() {
        for text in ["0", "0-3", "0-1,4,6-7"] {
            assert_eq!(text.parse::<CpuSet>().map(|s| s.to_string()).as_deref(), Ok(text));
        }
        assert_eq!("".parse::<CpuSet>().map(|s| s.len()), Ok(0));
        for text in ["a", "3-1", "0-99999", "-1", "1--2"] {
            assert!(text.parse::<CpuSet>().is_err(), "{text}");
        }
    }
}
