// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of a sweep: one interval after the other, each on even intervals and, where asked for, on
//! random ones around them.
//!
//! Units: ns.

use std::path::{Path, PathBuf};

use tailbound_core::number::Real as _;
use tailbound_core::units::exact;
use tailbound_core::unwritten::{Alternative, UnwrittenFile};
use tailbound_core::{EndReason, Run};
use tailbound_stats::sweep::Step;

use crate::error::SeriesError;

/// Most steps of a sweep.
pub const STEPS_MAX: u32 = 100;

/// What is to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// The intervals, the shortest first.
    pub intervals_ns: Vec<i64>,
    /// The spread of random intervals around each, as a share in words.
    pub random: Option<String>,
    /// Where the run files go.
    pub folder: Option<PathBuf>,
}

/// One run of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepRun<'a> {
    /// Its interval.
    pub interval_ns: i64,
    /// The spread of its intervals; `None`: they are even.
    pub random: Option<&'a str>,
    /// Its step, from 1.
    pub step: usize,
    /// Of how many.
    pub steps: usize,
    /// Its run file.
    pub file: Option<PathBuf>,
}

impl SweepRun<'_> {
    /// `even` or `random`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        if self.random.is_some() { "random" } else { "even" }
    }
}

/// The exit status of these steps, the worst of their verdicts: not met, cannot, undecided; where steps are
/// missing that were asked for, all others are undecided.
#[must_use]
pub fn exit_status(steps: &[Step], asked: usize) -> u8 {
    let outcomes = || {
        let runs = steps.iter().flat_map(|s| std::iter::once(&s.even).chain(&s.spread));
        runs.filter_map(|r| r.verdict.as_ref().map(|v| v.outcome.exit_status()))
    };
    let worst = [1, 3, 5].into_iter().find(|status| outcomes().any(|o| o == *status));
    worst.unwrap_or(if steps.len() < asked { 5 } else { 0 })
}

/// What was measured.
#[derive(Debug, Default)]
pub struct SweepRuns {
    /// The steps, in their order.
    pub steps: Vec<Step>,
    /// The last of their runs was interrupted.
    pub interrupted: bool,
}

impl Sweep {
    /// Refuses a sweep of whose files, or of those in `more`, one is there already.
    ///
    /// # Errors
    /// When one is.
    pub fn is_free(&self, more: impl IntoIterator<Item = PathBuf>) -> Result<(), SeriesError> {
        let own = self.folder.iter().flat_map(|folder| {
            let kinds = |ns: &i64| ["even", "random"].map(|kind| file(folder, *ns, kind));
            self.intervals_ns.iter().flat_map(kinds)
        });
        match own.chain(more).find(|path| path.exists()) {
            Some(path) => Err(UnwrittenFile::Exists { path, choose: Alternative::File }.into()),
            None => Ok(()),
        }
    }

    /// Makes the runs one after the other by `make`, until one is interrupted.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn make<E>(
        &self,
        make: &mut dyn FnMut(&SweepRun<'_>) -> Result<Run, E>,
    ) -> Result<SweepRuns, E> {
        let mut made = SweepRuns::default();
        for (i, interval_ns) in self.intervals_ns.iter().copied().enumerate() {
            let mut run = |random: Option<&str>| {
                let mut one = SweepRun {
                    interval_ns,
                    random,
                    step: i + 1,
                    steps: self.intervals_ns.len(),
                    file: None,
                };
                one.file = self.folder.as_ref().map(|f| file(f, interval_ns, one.kind()));
                make(&one)
            };
            let even = run(None)?;
            let ended = interrupted(&even);
            let spread = match &self.random {
                Some(share) if !ended => Some(run(Some(share))?),
                _ => None,
            };
            made.interrupted = ended || spread.as_ref().is_some_and(interrupted);
            made.steps.push(Step { interval_ns, even, spread });
            if made.interrupted {
                break;
            }
        }
        Ok(made)
    }
}

/// Where the run of one step goes.
fn file(folder: &Path, interval_ns: i64, kind: &str) -> PathBuf {
    folder.join(format!("{}-{kind}.tailbound.jsonl", exact(interval_ns).replace(' ', "")))
}

fn interrupted(run: &Run) -> bool {
    run.end.as_ref().is_none_or(|e| e.reason == EndReason::Interrupted)
}

/// `steps` intervals from `from_ns` to `to_ns`, at least two, in equal ratios, in whole µs, none twice.
#[must_use]
pub fn intervals(from_ns: i64, to_ns: i64, steps: u32) -> Vec<i64> {
    let steps = steps.max(2);
    let at = |i: u32| {
        let share = f64::from(i) / f64::from(steps - 1);
        let ns = from_ns.real() * (to_ns.real() / from_ns.real()).powf(share);
        (ns / 1000.0).round() as i64 * 1000
    };
    let mut all: Vec<i64> = (0..steps).map(at).collect();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn sweep(folder: Option<PathBuf>) -> Sweep {
        Sweep {
            intervals_ns: intervals(100_000, 10_000_000, 3),
            random: Some("90%".into()),
            folder,
        }
    }

    #[test]
    fn intervals_are_in_equal_ratios_and_none_is_there_twice() {
        assert_eq!(sweep(None).intervals_ns, [100_000, 1_000_000, 10_000_000]);
        assert_eq!(intervals(1000, 2000, 100), [1000, 2000]);
    }

    #[test]
    fn a_run_that_was_interrupted_is_the_last_one() {
        let mut made = Vec::new();
        let swept = sweep(Some("f".into())).make::<()>(&mut |one| {
            made.push((one.step, one.steps, one.kind(), one.file.clone()));
            // It has no end.
            Ok(testing::run(None))
        });
        let swept = swept.expect("made");
        assert!(swept.interrupted && swept.steps.len() == 1);
        assert_eq!(made, [(1, 3, "even", Some("f/100us-even.tailbound.jsonl".into()))]);
    }

    #[test]
    fn files_that_are_there_are_not_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let sweep = sweep(Some(folder.path().to_owned()));
        assert!(sweep.is_free([]).is_ok());
        let taken = folder.path().join("10ms-random.tailbound.jsonl");
        std::fs::write(&taken, "").expect("written");
        let e = sweep.is_free([]).expect_err("taken").to_string();
        assert!(e.starts_with(&format!("{} exists already", taken.display())), "{e}");
    }
}
