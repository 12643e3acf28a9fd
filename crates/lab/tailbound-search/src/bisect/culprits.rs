// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes without an order, none of them good and all of them bad: which few make it bad?
//!
//! The guarantee is that of delta debugging: what is found is bad, and no change of it can be left out.
//! The way is shorter than ddmin's. The changes get an order after all, the one they were given in, and the shortest
//! bad beginning is searched for by halves: its last change belongs to a culprit. With that change kept, the shortest
//! beginning that is bad together with it has the next one, until what is kept is bad alone.
//!
//! Questions, with n changes, of which one alone is the culprit: ⌈log₂ n⌉ for the shortest beginning, one for the
//! change alone, one for all others without it. Of c that are bad only together: at most c·(⌈log₂ n⌉ + 2) + 1.
//! An oracle that is not monotone (more changes are better again) costs more, and never the guarantee.

use crate::bisect::oracle::{Answer, Oracle};
use crate::bisect::span::Span;

/// Changes that make it bad together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// The changes, in order.
    pub members: Vec<usize>,
    /// It was bad without any one of them left out: no question about it was left unanswered.
    pub is_minimal: bool,
}

/// What is known of a number of changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Culprits {
    /// Those that were found, each enough by itself.
    pub found: Vec<Culprit>,
    /// Members so far of the one that is searched for.
    pub kept: Vec<usize>,
    /// Among these are the others.
    pub among: Vec<usize>,
    /// What is left without all culprits is good; otherwise it could not be told.
    pub rest_is_good: bool,
}

/// Asks about beginnings of a list, with some changes kept.
struct Beginnings<'a, O: ?Sized> {
    oracle: &'a mut O,
    kept: &'a [usize],
    among: &'a [usize],
}

impl<O: Oracle<Vec<usize>> + ?Sized> Oracle<usize> for Beginnings<'_, O> {
    type Error = O::Error;

    fn ask(&mut self, lengths: &[usize]) -> Result<Vec<Answer>, O::Error> {
        let sets: Vec<Vec<usize>> = lengths
            .iter()
            .map(|n| sorted(self.kept.iter().chain(self.among.iter().take(*n)).copied()))
            .collect();
        self.oracle.ask(&sets)
    }

    fn at_once(&self) -> usize {
        self.oracle.at_once()
    }
}

fn sorted(members: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut all: Vec<usize> = members.collect();
    all.sort_unstable();
    all
}

fn one<O: Oracle<Vec<usize>> + ?Sized>(oracle: &mut O, set: &[usize]) -> Result<Answer, O::Error> {
    let answers = oracle.ask(&[sorted(set.iter().copied())])?;
    Ok(answers.first().copied().unwrap_or(Answer::Skip))
}

impl Culprits {
    /// None of `n` changes is known as good, all of them as bad.
    #[must_use]
    pub fn new(n: usize) -> Self {
        Self { among: (0..n).collect(), ..Self::default() }
    }

    /// Finds every culprit that is enough by itself and shares no change with another.
    ///
    /// # Errors
    /// The oracle's; what was learnt until then is kept.
    pub fn search<O: Oracle<Vec<usize>> + ?Sized>(
        &mut self,
        oracle: &mut O,
    ) -> Result<(), O::Error> {
        let mut rest = self.among.clone();
        loop {
            self.among.clone_from(&rest);
            self.kept.clear();
            self.gather(oracle)?;
            let culprit = self.least(oracle)?;
            rest.retain(|c| !culprit.members.contains(c));
            self.kept.clear();
            self.among.clear();
            self.found.push(culprit);
            if rest.is_empty() {
                self.rest_is_good = true;
                return Ok(());
            }
            match one(oracle, &rest)? {
                Answer::Bad => {}
                answer => {
                    self.rest_is_good = answer == Answer::Good;
                    return Ok(());
                }
            }
        }
    }

    /// Keeps changes until they are bad alone.
    fn gather<O: Oracle<Vec<usize>> + ?Sized>(&mut self, oracle: &mut O) -> Result<(), O::Error> {
        while !self.among.is_empty() {
            let alone = !self.kept.is_empty() && one(oracle, &self.kept)? == Answer::Bad;
            if alone {
                self.among.clear();
                return Ok(());
            }
            let mut span = Span::new(0, self.among.len());
            let (kept, among) = (self.kept.clone(), self.among.clone());
            let mut beginnings = Beginnings { oracle: &mut *oracle, kept: &kept, among: &among };
            let narrowed = span.narrow(&mut beginnings);
            // An end that was answered is known, also where the next answer did not come.
            self.among.truncate(span.bad);
            narrowed?;
            // Several where some beginnings could not be told.
            self.kept.extend(self.among.drain(span.good..));
        }
        Ok(())
    }

    /// Leaves out what can be left out.
    fn least<O: Oracle<Vec<usize>> + ?Sized>(
        &mut self,
        oracle: &mut O,
    ) -> Result<Culprit, O::Error> {
        let mut is_minimal = true;
        let mut at = 0;
        while self.kept.len() > 1 && at < self.kept.len() {
            let mut without = self.kept.clone();
            without.remove(at);
            match one(oracle, &without)? {
                Answer::Bad => {
                    self.kept = without;
                    // What was needed beside more may not be needed beside less.
                    (at, is_minimal) = (0, true);
                    continue;
                }
                Answer::Good => {}
                Answer::Skip => is_minimal = false,
            }
            at += 1;
        }
        Ok(Culprit { members: sorted(self.kept.iter().copied()), is_minimal })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Remembers as a journal does: what is asked again costs nothing.
    struct Played<F> {
        by: F,
        known: BTreeMap<Vec<usize>, Answer>,
        at_once: usize,
    }

    impl<F: Fn(&[usize]) -> Answer> Oracle<Vec<usize>> for Played<F> {
        type Error = ();

        fn ask(&mut self, questions: &[Vec<usize>]) -> Result<Vec<Answer>, ()> {
            let by = &self.by;
            Ok(questions
                .iter()
                .map(|q| *self.known.entry(q.clone()).or_insert_with(|| by(q)))
                .collect())
        }

        fn at_once(&self) -> usize {
            self.at_once
        }
    }

    fn found<F: Fn(&[usize]) -> Answer>(n: usize, at_once: usize, by: F) -> (Culprits, usize) {
        let ends = [(Vec::new(), Answer::Good), ((0..n).collect(), Answer::Bad)];
        let mut oracle = Played { by, known: ends.into(), at_once };
        let mut culprits = Culprits::new(n);
        culprits.search(&mut oracle).unwrap();
        (culprits, oracle.known.len() - 2)
    }

    fn needs(all: &'static [usize]) -> impl Fn(&[usize]) -> Answer {
        move |set| if all.iter().all(|c| set.contains(c)) { Answer::Bad } else { Answer::Good }
    }

    fn members(c: &Culprits) -> Vec<&[usize]> {
        c.found.iter().map(|f| f.members.as_slice()).collect()
    }

    #[test]
    fn each_of_64_options_is_found_with_eight_questions_at_most() {
        for culprit in 0..64 {
            let by = move |set: &[usize]| {
                if set.contains(&culprit) { Answer::Bad } else { Answer::Good }
            };
            let (c, asked) = found(64, 1, by);
            assert_eq!(members(&c), [[culprit]]);
            assert!(c.rest_is_good && c.found.iter().all(|f| f.is_minimal));
            // Six for the beginning, itself alone, all others; less where those are the same.
            assert!((7..=8).contains(&asked), "{culprit}: {asked}");
        }
    }

    #[test]
    fn two_of_64_that_are_bad_together_are_found_with_17_questions_at_most() {
        let mut most = 0;
        for a in 0..64 {
            for b in a + 1..64 {
                let by = move |set: &[usize]| {
                    if set.contains(&a) && set.contains(&b) { Answer::Bad } else { Answer::Good }
                };
                let (c, asked) = found(64, 1, by);
                assert_eq!(members(&c), [[a, b]]);
                assert!(c.rest_is_good);
                most = most.max(asked);
            }
        }
        assert!(most <= 17, "{most}");
    }

    #[test]
    fn two_that_are_each_enough_are_both_told() {
        let by = |set: &[usize]| {
            if set.contains(&7) || set.contains(&40) { Answer::Bad } else { Answer::Good }
        };
        let (c, _) = found(64, 2, by);
        assert_eq!(members(&c), [[7], [40]]);
        assert!(c.rest_is_good);
    }

    #[test]
    fn three_of_a_kind_and_several_at_once() {
        for at_once in 1..5 {
            let (c, _) = found(40, at_once, needs(&[0, 17, 39]));
            assert_eq!(members(&c), [[0, 17, 39]]);
        }
    }

    #[test]
    fn what_does_not_boot_widens_the_answer_until_it_is_tried_alone() {
        // 5 and 6 boot only together, and 6 is the culprit.
        let by = |set: &[usize]| match (set.contains(&5), set.contains(&6)) {
            (true, true) => Answer::Bad,
            (false, false) => Answer::Good,
            _ => Answer::Skip,
        };
        let (c, _) = found(16, 1, by);
        assert_eq!(members(&c), [[5, 6]]);
        assert!(c.found.iter().all(|f| !f.is_minimal), "{c:?}");
    }

    #[test]
    fn an_oracle_that_is_not_monotone_still_gets_a_set_that_is_bad_and_has_nothing_to_spare() {
        // Bad with 3, unless 2 is there and 9 is not.
        let by = |set: &[usize]| {
            let bad = set.contains(&3) && (!set.contains(&2) || set.contains(&9));
            if bad { Answer::Bad } else { Answer::Good }
        };
        let (c, _) = found(16, 1, by);
        assert_eq!(members(&c), [[3]]);
    }

    #[test]
    fn an_oracle_that_stops_leaves_what_is_known() {
        struct Stops(u32);
        impl Oracle<Vec<usize>> for Stops {
            type Error = ();
            fn ask(&mut self, q: &[Vec<usize>]) -> Result<Vec<Answer>, ()> {
                self.0 = self.0.checked_sub(1).ok_or(())?;
                Ok(q.iter().map(|set| needs(&[3])(set)).collect())
            }
        }
        let mut culprits = Culprits::new(64);
        assert_eq!(culprits.search(&mut Stops(3)), Err(()));
        assert_eq!(culprits.among, (0..8).collect::<Vec<_>>());
    }
}
