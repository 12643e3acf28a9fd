// SPDX-License-Identifier: MIT OR Apache-2.0
//! A set of code: ranges of addresses, apart and in order.
//!
//! Units: bytes. Bytes, not blocks: where a run was interrupted within a block another one begins, which
//! says nothing of what was reached.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// See the module. As text each range is `gap+length` in hexadecimal, from the end of the one before, the first from 0:
/// `ffffffff81000000+1c 4+20`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Code(Vec<(u64, u64)>);

impl Code {
    /// The code of these ranges, from and to, which may touch and lie over each other.
    #[must_use]
    pub fn of(mut ranges: Vec<(u64, u64)>) -> Self {
        ranges.retain(|(from, to)| from < to);
        ranges.sort_unstable();
        let mut all: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
        for (from, to) in ranges {
            match all.last_mut().filter(|last| from <= last.1) {
                Some(last) => last.1 = last.1.max(to),
                None => all.push((from, to)),
            }
        }
        Self(all)
    }

    /// Is there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of ranges.
    #[must_use]
    pub fn ranges(&self) -> usize {
        self.0.len()
    }

    /// Bytes in all.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let lengths = self.0.iter().map(|(from, to)| to.saturating_sub(*from));
        lengths.fold(0, u64::saturating_add)
    }

    /// What `other` has not.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut all = Vec::new();
        for &(mut from, to) in &self.0 {
            let begin = other.0.partition_point(|o| o.1 <= from);
            for o in other.0.iter().skip(begin).take_while(|o| o.0 < to) {
                if from < o.0 {
                    all.push((from, o.0));
                }
                from = o.1.min(to);
            }
            if from < to {
                all.push((from, to));
            }
        }
        Self(all)
    }

    /// Does `other` have all of it?
    #[must_use]
    pub fn within(&self, other: &Self) -> bool {
        self.0.iter().all(|(from, to)| {
            let at = other.0.partition_point(|o| o.1 <= *from);
            other.0.get(at).is_some_and(|o| o.0 <= *from && *to <= o.1)
        })
    }

    /// `other` too.
    pub fn add(&mut self, other: &Self) {
        if !other.is_empty() {
            let all = self.0.iter().chain(&other.0).copied().collect();
            *self = Self::of(all);
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut end = 0;
        for (nth, (from, to)) in self.0.iter().enumerate() {
            let space = if nth == 0 { "" } else { " " };
            write!(f, "{space}{:x}+{:x}", from - end, to - from)?;
            end = *to;
        }
        Ok(())
    }
}

/// A text that is no set of code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no range of code: `{range}`")]
pub struct NoCode {
    /// What is no range in it.
    pub range: String,
}

impl FromStr for Code {
    type Err = NoCode;

    fn from_str(text: &str) -> Result<Self, NoCode> {
        let mut end: u64 = 0;
        let mut all = Vec::new();
        for one in text.split(' ').filter(|one| !one.is_empty()) {
            let read = |(gap, length): (&str, &str)| {
                let from = end.checked_add(u64::from_str_radix(gap, 16).ok()?)?;
                let length = u64::from_str_radix(length, 16).ok().filter(|n| *n > 0)?;
                Some((from, from.checked_add(length)?))
            };
            let range = one.split_once('+').and_then(read);
            let range = range.ok_or_else(|| NoCode { range: one.to_owned() })?;
            end = range.1;
            all.push(range);
        }
        Ok(Self::of(all))
    }
}

impl From<Code> for String {
    fn from(code: Code) -> Self {
        code.to_string()
    }
}

impl TryFrom<String> for Code {
    type Error = NoCode;

    fn try_from(text: String) -> Result<Self, NoCode> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::random::Random;

    /// Bytes one by one, as nobody could get it wrong.
    fn bytes(code: &Code) -> Vec<u64> {
        code.0.iter().flat_map(|(from, to)| *from..*to).collect()
    }

    #[test]
    fn sets_are_those_of_their_bytes() {
        let mut random = Random::new(5);
        let mut any = || {
            let ranges = (0..random.below(6)).map(|_| {
                let from = random.within(0, 40);
                (from, from + random.within(0, 9))
            });
            Code::of(ranges.collect())
        };
        for _ in 0..500 {
            let (one, other) = (any(), any());
            let left = one.without(&other);
            let wanted: Vec<u64> =
                bytes(&one).into_iter().filter(|b| !bytes(&other).contains(b)).collect();
            assert_eq!(bytes(&left), wanted, "{one} without {other}");
            assert_eq!(left.bytes(), wanted.len() as u64);
            assert_eq!(one.within(&other), wanted.is_empty(), "{one} within {other}");
            let mut both = left.clone();
            both.add(&other);
            assert!(one.within(&both) && other.within(&both));
            assert_eq!(both.bytes(), (wanted.len() + bytes(&other).len()) as u64);
            assert_eq!(one.to_string().parse(), Ok(one));
        }
    }

    #[test]
    fn text_is_short_and_what_is_none_is_refused() {
        let begin = 0xffff_ffff_8100_0000;
        let code = Code::of(vec![(begin + 0x20, begin + 0x40), (begin, begin + 0x1c)]);
        assert_eq!(code.to_string(), "ffffffff81000000+1c 4+20");
        for text in ["1", "1+0", "x+1", "ffffffffffffffff+2", "1+1 -1+1"] {
            assert!(text.parse::<Code>().is_err(), "{text}");
        }
    }
}
