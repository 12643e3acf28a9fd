// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts by bucket index whose memory follows what is filled, not how far it reaches.
//!
//! Context: COLD, but an import adds half a milliard times: a filled array is the fast path.
//! A histogram of few values far apart (a hostile file's, of precision 16) is kept as pairs;
//! one whose array would cost at most [`REACH`] words a filled bucket is an array.
//! Not here: what a bucket is (`histogram`).

/// Most words of the array for each filled bucket.
const REACH: usize = 16;

/// Counts by bucket index. One of the two lists is empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Filled buckets, ascending.
    few: Vec<(usize, u64)>,
    /// By index, up to the last filled bucket.
    all: Vec<u64>,
    /// Filled buckets of `all`.
    filled: usize,
}

impl Counts {
    /// The count of bucket `index`.
    pub(super) fn get(&self, index: usize) -> u64 {
        match self.few.binary_search_by_key(&index, |(i, _)| *i) {
            Ok(at) => self.few.get(at).map_or(0, |(_, c)| *c),
            Err(_) => self.all.get(index).copied().unwrap_or(0),
        }
    }

    /// Adds `count`, which is not 0, to bucket `index`.
    #[inline]
    pub(super) fn add(&mut self, index: usize, count: u64) {
        match self.all.get_mut(index) {
            Some(c) => {
                self.filled = self.filled.saturating_add(usize::from(*c == 0));
                *c = c.saturating_add(count);
            }
            None => self.add_beyond(index, count),
        }
    }

    fn add_beyond(&mut self, index: usize, count: u64) {
        if !self.all.is_empty() {
            if index < self.filled.saturating_add(1).saturating_mul(REACH) {
                self.all.resize(index.saturating_add(1), 0);
                return self.add(index, count);
            }
            self.few = self.entries().collect();
            self.all = Vec::new();
        }
        match self.few.binary_search_by_key(&index, |(i, _)| *i) {
            Ok(at) => {
                self.few.get_mut(at).into_iter().for_each(|(_, c)| *c = c.saturating_add(count))
            }
            Err(at) => self.few.insert(at, (index, count)),
        }
        let reach = self.few.last().map_or(0, |(i, _)| i.saturating_add(1));
        if reach <= self.few.len().saturating_mul(REACH) {
            let mut all = vec![0; reach];
            for (i, c) in &self.few {
                all.get_mut(*i).into_iter().for_each(|to| *to = *c);
            }
            (self.filled, self.all, self.few) = (self.few.len(), all, Vec::new());
        }
    }

    /// Index and count of every filled bucket, ascending.
    pub(super) fn entries(&self) -> impl DoubleEndedIterator<Item = (usize, u64)> + '_ {
        let all = self.all.iter().enumerate().filter(|(_, c)| **c > 0).map(|(i, c)| (i, *c));
        self.few.iter().copied().chain(all)
    }
}

impl PartialEq for Counts {
    fn eq(&self, other: &Self) -> bool {
        self.entries().eq(other.entries())
    }
}

impl Eq for Counts {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_count_alike_and_neither_is_large() {
        let mut counts = Counts::default();
        let mut naive = std::collections::BTreeMap::new();
        let mut x = 1u64;
        for round in 0..20_000u64 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round);
            let reach = [64, 6000, 25_600, 1_245_184][(x >> 60) as usize & 3];
            let index = (x >> 20) as usize % reach;
            counts.add(index, x >> 50 | 1);
            *naive.entry(index).or_insert(0) += x >> 50 | 1;
            let words = counts.few.len() * 2 + counts.all.len();
            assert!(
                words <= naive.len() * (REACH + 1)
                    && (counts.few.is_empty() || counts.all.is_empty())
            );
        }
        assert!(counts.entries().eq(naive.iter().map(|(i, c)| (*i, *c))));
        assert!(counts.entries().rev().eq(naive.iter().rev().map(|(i, c)| (*i, *c))));
        assert!(naive.iter().all(|(i, c)| counts.get(*i) == *c) && counts.get(usize::MAX) == 0);
    }
}
