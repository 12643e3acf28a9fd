// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spans that interrupt each other, in an order in which each lies within the one it interrupted.
//!
//! Units: ns. A file may hold spans that overlap without one lying within the other:
//! there the earlier one ends where the later one begins.

use tailbound_core::order;

/// One of several spans of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nested {
    /// Begin.
    pub(crate) from_ns: i64,
    /// End, after the begin.
    pub(crate) to_ns: i64,
    /// How many others it lies within.
    pub(crate) depth: usize,
    /// Its place among those given.
    pub(crate) at: usize,
}

/// `spans` (begin, end) by their begin, the outer one first; empty ones are left out.
#[must_use]
pub(crate) fn nested(spans: impl IntoIterator<Item = (i64, i64)>) -> Vec<Nested> {
    let span = |(at, (from_ns, to_ns))| Nested { from_ns, to_ns, depth: 0, at };
    let mut all: Vec<Nested> = spans.into_iter().enumerate().map(span).collect();
    order::by_key(&mut all, |n| (n.from_ns, std::cmp::Reverse(n.to_ns), n.at));
    let mut out: Vec<Nested> = Vec::new();
    // Places in `out`, each within the one before.
    let mut open: Vec<usize> = Vec::new();
    for mut next in all.into_iter().filter(|n| n.to_ns > n.from_ns) {
        while let Some(last) = open.last().and_then(|i| out.get_mut(*i)) {
            if last.to_ns >= next.to_ns && last.to_ns > next.from_ns {
                break;
            }
            last.to_ns = last.to_ns.min(next.from_ns);
            open.pop();
        }
        next.depth = open.len();
        open.push(out.len());
        out.push(next);
    }
    // What ended where it began had its whole time taken by another one.
    out.retain(|n| n.to_ns > n.from_ns);
    out
}

/// The same time with one span at each moment: the innermost.
#[must_use]
pub(crate) fn innermost(nested: &[Nested]) -> Vec<Nested> {
    let mut out = Vec::new();
    let mut open: Vec<Nested> = Vec::new();
    let mut now = i64::MIN;
    let mut until = |open: Nested, now: &mut i64, to_ns: i64| {
        if to_ns > *now {
            out.push(Nested { from_ns: *now, to_ns, ..open });
            *now = to_ns;
        }
    };
    for next in nested {
        while let Some(last) = open.last().copied().filter(|l| l.to_ns <= next.from_ns) {
            until(last, &mut now, last.to_ns);
            open.pop();
        }
        if let Some(last) = open.last() {
            until(*last, &mut now, next.from_ns);
        }
        now = next.from_ns;
        open.push(*next);
    }
    while let Some(last) = open.pop() {
        until(last, &mut now, last.to_ns);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(all: &[Nested]) -> Vec<(usize, i64, i64, usize)> {
        all.iter().map(|n| (n.at, n.from_ns, n.to_ns, n.depth)).collect()
    }

    #[test]
    fn what_interrupts_lies_within_and_overlaps_are_cut() {
        let all = nested([(0, 100), (10, 20), (12, 15), (50, 60), (60, 60), (100, 110)]);
        assert_eq!(
            shown(&all),
            [(0, 0, 100, 0), (1, 10, 20, 1), (2, 12, 15, 2), (3, 50, 60, 1), (5, 100, 110, 0)]
        );
        let flat: Vec<_> = innermost(&all).iter().map(|n| (n.at, n.from_ns, n.to_ns)).collect();
        assert_eq!(
            flat,
            [
                (0, 0, 10),
                (1, 10, 12),
                (2, 12, 15),
                (1, 15, 20),
                (0, 20, 50),
                (3, 50, 60),
                (0, 60, 100),
                (5, 100, 110)
            ]
        );
        let odd = nested([(0, 10), (8, 20)]);
        assert_eq!(shown(&odd), [(0, 0, 8, 0), (1, 8, 20, 0)]);
    }
}
