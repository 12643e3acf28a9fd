// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many rounds of which length fit into a budget.
//!
//! Units: ns.

use serde::Serialize;
use tailbound_core::units::format_span;
use tailbound_stats::compare;

/// Survivors that are measured together: each costs a run in every round of that stage.
pub(super) const TOGETHER_MAX: usize = 6;
/// Longest and shortest measurement of a single run: more rounds say more than longer ones, and a
/// shorter one has no tail.
const RUN_NS: (i64, i64) = (1_000_000_000, 10_000_000_000);
/// Most rounds of the first stage.
const ROUNDS_MAX: u32 = 30;

/// The lengths of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Design {
    /// Rounds of each stage but the last; each halving has twice as many.
    pub rounds: u32,
    /// Rounds of the last stage.
    pub last_rounds: u32,
    /// Length of each measurement.
    pub run_ns: i64,
    /// About how long all of it takes.
    pub expected_ns: i64,
}

/// Why there is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DesignError {
    /// Too little time for so many candidates.
    #[error("{} are too short for {candidates} change{}: it takes at least {}; try fewer with --without, or a longer --budget", format_span(*.budget_ns), if *.candidates == 1 { "" } else { "s" }, format_span(*.needed_ns))]
    Budget {
        /// What was given.
        budget_ns: i64,
        /// What it takes.
        needed_ns: i64,
        /// How many changes there are.
        candidates: usize,
    },
    /// Nothing to try.
    #[error("there is nothing to try: every change is so already, or not possible here")]
    Nothing,
}

impl Design {
    /// Of this number of rounds, whatever it takes.
    #[must_use]
    pub fn of_rounds(rounds: u32) -> Self {
        let rounds = rounds.max(fewest());
        Self { rounds, last_rounds: rounds * 2, run_ns: 0, expected_ns: 0 }
    }

    /// The longest runs, then the most rounds, that fit into `budget_ns` with `overhead_ns` per run.
    ///
    /// # Errors
    /// [`DesignError`].
    pub fn for_budget(
        candidates: usize,
        budget_ns: i64,
        overhead_ns: i64,
    ) -> Result<Self, DesignError> {
        if candidates == 0 {
            return Err(DesignError::Nothing);
        }
        let longest = |rounds: u32| {
            let design = Self::of_rounds(rounds);
            let runs = i64::try_from(design.runs(candidates)).unwrap_or(i64::MAX);
            (design, runs, budget_ns / runs - overhead_ns)
        };
        let (_, runs, run_ns) = longest(fewest());
        if run_ns < RUN_NS.0 {
            let needed_ns = (RUN_NS.0 + overhead_ns).saturating_mul(runs);
            return Err(DesignError::Budget { budget_ns, needed_ns, candidates });
        }
        let rounds = (fewest()..=ROUNDS_MAX).rev().find(|r| longest(*r).2 >= RUN_NS.1 / 2);
        let (design, runs, run_ns) = longest(rounds.unwrap_or_else(fewest));
        let run_ns = run_ns.min(RUN_NS.1);
        Ok(Self { run_ns, expected_ns: (run_ns + overhead_ns).saturating_mul(runs), ..design })
    }

    /// Runs of all stages, if every halving leaves half.
    fn runs(&self, candidates: usize) -> usize {
        let mut left = candidates;
        let mut rounds = self.rounds as usize;
        let mut runs = (left + 1) * rounds;
        left = half(left);
        while left > TOGETHER_MAX {
            rounds *= 2;
            runs += (left + 1) * rounds;
            left = half(left);
        }
        let together = if left > 1 { (left + 2) * self.rounds as usize } else { 0 };
        runs + together + 2 * self.last_rounds as usize
    }
}

/// The better half, of a single one that one.
pub(super) fn half(n: usize) -> usize {
    n.div_ceil(2)
}

/// Rounds from which `compare` gives intervals.
fn fewest() -> u32 {
    u32::try_from(compare::Design::Rounds.units_min()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn a_budget_is_kept_or_refused_with_what_it_takes() {
        for candidates in [1, 2, 7, 20, 45] {
            let design = Design::for_budget(candidates, 7200 * S, S).expect("two hours");
            assert!(design.expected_ns <= 7200 * S && design.rounds >= 6, "{design:?}");
            let Err(DesignError::Budget { needed_ns, .. }) =
                Design::for_budget(candidates, 10 * S, S)
            else {
                panic!("{candidates} in ten seconds")
            };
            assert!(Design::for_budget(candidates, needed_ns, S).is_ok());
            assert!(Design::for_budget(candidates, needed_ns - S, S).is_err());
        }
        assert_eq!(Design::for_budget(0, S, S), Err(DesignError::Nothing));
    }
}
