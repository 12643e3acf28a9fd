// SPDX-License-Identifier: MIT OR Apache-2.0
//! Versions in an order, the first good and the last bad: where does it change?
//!
//! Units: positions. With one question at a time an order of n steps between the ends takes at most
//! ⌈log₂ n⌉ of them, with k at a time about log of base k+1 rounds. Whatever the oracle, the two ends of what is
//! left were answered good and bad: the change that is found is one, and where there are several it is one of them.

use std::collections::BTreeSet;

use crate::bisect::oracle::{Answer, Oracle};

/// What is known of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The last position known as good before `bad`.
    pub good: usize,
    /// The first known as bad.
    pub bad: usize,
    /// Positions that cannot be told.
    pub skipped: BTreeSet<usize>,
    /// Good positions after a bad one: there is more than one change.
    pub good_after_bad: BTreeSet<usize>,
}

impl Span {
    /// The first position is known as good, the last as bad.
    #[must_use]
    pub fn new(good: usize, bad: usize) -> Self {
        Self { good, bad, skipped: BTreeSet::new(), good_after_bad: BTreeSet::new() }
    }

    /// Positions that can still be asked about.
    #[must_use]
    pub fn open(&self) -> Vec<usize> {
        (self.good + 1..self.bad).filter(|p| !self.skipped.contains(p)).collect()
    }

    /// Is the change known to one step?
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.bad == self.good + 1
    }

    /// Questions that are left when each answer halves what is open.
    #[must_use]
    pub fn about(&self) -> u32 {
        usize::BITS - self.open().len().leading_zeros()
    }

    /// Asks until nothing is open.
    ///
    /// # Errors
    /// The oracle's; what was learnt until then is kept.
    pub fn narrow<O: Oracle<usize> + ?Sized>(&mut self, oracle: &mut O) -> Result<(), O::Error> {
        let mut skips = 0;
        loop {
            let open = self.open();
            if open.is_empty() {
                return Ok(());
            }
            let asked = points(&open, oracle.at_once().max(1), skips);
            let answers = oracle.ask(&asked)?;
            skips =
                if answers.iter().all(|a| *a == Answer::Skip) { skips + asked.len() } else { 0 };
            self.learn(&asked, &answers);
        }
    }

    fn learn(&mut self, asked: &[usize], answers: &[Answer]) {
        let of = |wanted: Answer| {
            asked.iter().zip(answers).filter(move |(_, a)| **a == wanted).map(|(p, _)| *p)
        };
        self.skipped.extend(of(Answer::Skip));
        let bad = of(Answer::Bad).chain([self.bad]).min().unwrap_or(self.bad);
        self.good_after_bad.extend(of(Answer::Good).filter(|p| *p > bad));
        self.bad = bad;
        self.good =
            of(Answer::Good).filter(|p| *p < bad).chain([self.good]).max().unwrap_or(self.good);
    }
}

/// Positions among the open ones that say most: the middle, or evenly spread ones. Beside one that cannot be told
/// others often cannot either, so that after `skips` of them it is looked elsewhere: at 1/4, 3/4, 1/8, …
fn points(open: &[usize], at_once: usize, skips: usize) -> Vec<usize> {
    let n = open.len();
    let k = at_once.min(n);
    let at: BTreeSet<usize> = if skips == 0 {
        (1..=k).map(|i| (i * (n + 1) / (k + 1)).clamp(1, n) - 1).collect()
    } else {
        // Every fraction comes in its turn, so that this ends.
        (skips + 1..).map(|i| in_turn(i, n)).take(k).collect()
    };
    at.into_iter().filter_map(|i| open.get(i)).copied().collect()
}

/// The index at the i-th of 1/2, 1/4, 3/4, 1/8, 5/8, … of n (van der Corput's sequence).
fn in_turn(i: usize, n: usize) -> usize {
    let (mut i, mut at, mut step) = (i, 0, n);
    while i > 0 && step > 0 {
        if i & 1 == 1 {
            at += step.div_ceil(2);
        }
        step /= 2;
        i >>= 1;
    }
    at.min(n - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Played<F> {
        by: F,
        asked: Vec<usize>,
        rounds: usize,
        at_once: usize,
    }

    impl<F: Fn(usize) -> Answer> Oracle<usize> for Played<F> {
        type Error = ();

        fn ask(&mut self, questions: &[usize]) -> Result<Vec<Answer>, ()> {
            self.rounds += 1;
            for q in questions {
                assert!(!self.asked.contains(q), "{q} was asked twice");
                self.asked.push(*q);
            }
            Ok(questions.iter().map(|q| (self.by)(*q)).collect())
        }

        fn at_once(&self) -> usize {
            self.at_once
        }
    }

    fn played<F: Fn(usize) -> Answer>(by: F) -> Played<F> {
        Played { by, asked: Vec::new(), rounds: 0, at_once: 1 }
    }

    fn from(first: usize) -> impl Fn(usize) -> Answer {
        move |p| if p >= first { Answer::Bad } else { Answer::Good }
    }

    #[test]
    fn each_of_64_commits_is_found_with_six_questions() {
        for first in 1..=64 {
            let mut oracle = played(from(first));
            let mut span = Span::new(0, 64);
            assert_eq!(span.about(), 6);
            span.narrow(&mut oracle).unwrap();
            assert_eq!((span.bad, span.is_exact()), (first, true));
            assert_eq!(oracle.asked.len(), 6, "{first}");
        }
    }

    #[test]
    fn two_at_a_time_take_four_rounds() {
        for first in 1..=64 {
            let mut oracle = Played { at_once: 2, ..played(from(first)) };
            let mut span = Span::new(0, 64);
            span.narrow(&mut oracle).unwrap();
            assert_eq!(span.bad, first);
            assert!(oracle.rounds <= 4, "{first}: {}", oracle.rounds);
        }
    }

    #[test]
    fn what_cannot_be_told_around_the_culprit_is_said_and_no_more() {
        for (first, broken) in [(30, 25..30), (30, 28..33), (2, 1..2), (64, 60..64), (33, 20..45)] {
            let skip = broken.clone();
            let mut oracle =
                played(move |p| if skip.contains(&p) { Answer::Skip } else { from(first)(p) });
            let mut span = Span::new(0, 64);
            span.narrow(&mut oracle).unwrap();
            assert!(span.good < first && first <= span.bad, "{first}: {span:?}");
            assert!((span.good + 1..span.bad).all(|p| broken.contains(&p)), "{span:?}");
            assert!(span.open().is_empty());
        }
    }

    #[test]
    fn a_long_broken_stretch_beside_the_middle_is_left_by_leaps() {
        let by = |p: usize| if (300..700).contains(&p) { Answer::Skip } else { from(900)(p) };
        let mut oracle = played(by);
        let mut span = Span::new(0, 1000);
        span.narrow(&mut oracle).unwrap();
        assert_eq!((span.bad, span.is_exact()), (900, true));
        assert!(oracle.asked.len() <= 14, "{}", oracle.asked.len());
    }

    #[test]
    fn among_several_changes_one_is_found_and_it_is_one() {
        // Bad from 10, good again from 20, bad from 50: any step from good to bad is right.
        let by =
            |p: usize| if (10..20).contains(&p) || p >= 50 { Answer::Bad } else { Answer::Good };
        for at_once in 1..8 {
            let mut oracle = Played { at_once, ..played(by) };
            let mut span = Span::new(0, 64);
            span.narrow(&mut oracle).unwrap();
            assert!(span.is_exact() && [10, 50].contains(&span.bad), "{span:?}");
        }
        // Where an answer shows it, it is told.
        let mut oracle = Played { at_once: 5, ..played(by) };
        let mut span = Span::new(0, 64);
        span.narrow(&mut oracle).unwrap();
        assert_eq!(span.bad, 10);
        assert!(!span.good_after_bad.is_empty());
    }

    #[test]
    fn an_oracle_that_stops_leaves_what_is_known() {
        struct Stops(u32);
        impl Oracle<usize> for Stops {
            type Error = &'static str;
            fn ask(&mut self, q: &[usize]) -> Result<Vec<Answer>, &'static str> {
                self.0 = self.0.checked_sub(1).ok_or("stopped")?;
                Ok(q.iter().map(|p| from(40)(*p)).collect())
            }
        }
        let mut span = Span::new(0, 64);
        assert_eq!(span.narrow(&mut Stops(2)), Err("stopped"));
        assert_eq!((span.good, span.bad), (32, 48));
    }
}
