// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples of several CPUs in the order of their times.
//!
//! Each CPU has a ring buffer of its own, and they are read one after
//! another: what is newer than the beginning of a round of reading may be followed by
//! older samples of another CPU, and waits for the next round.

use crate::decode::Sample;

/// Samples that wait for their turn.
#[derive(Debug, Default)]
pub struct Merge {
    waiting: Vec<Sample>,
}

impl Merge {
    /// Adds a sample, in any order.
    pub fn add(&mut self, sample: Sample) {
        self.waiting.push(sample);
    }

    /// Takes every sample before `until_ns`, in the order of their times; those of one CPU
    /// and one time in the order they came.
    pub fn take(&mut self, until_ns: u64) -> Vec<Sample> {
        self.waiting.sort_by_key(|s| s.t_ns);
        let ready = self.waiting.partition_point(|s| s.t_ns < until_ns);
        self.waiting.drain(..ready).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Record;

    #[test]
    fn nothing_overtakes() {
        let mut merge = Merge::default();
        let at =
            |cpu, t_ns| Sample { cpu, t_ns, pid: 0, record: Record::SwitchTo { pid: t_ns as i32 } };
        [at(0, 10), at(0, 30), at(1, 5), at(1, 30)].into_iter().for_each(|s| merge.add(s));
        let times: Vec<_> = merge.take(30).iter().map(|s| s.t_ns).collect();
        assert_eq!(times, [5, 10]);
        merge.add(at(1, 29));
        let rest: Vec<_> = merge.take(u64::MAX).iter().map(|s| (s.t_ns, s.cpu)).collect();
        assert_eq!(rest, [(29, 1), (30, 0), (30, 1)]);
    }
}
