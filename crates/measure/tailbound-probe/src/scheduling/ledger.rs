// SPDX-License-Identifier: MIT OR Apache-2.0
//! The violations of a run: all counted, the first ones kept with their proof.
//!
//! Context: HOT in `enter` (no allocation), COLD in `finding`.

use tailbound_core::finding::{Finding, Impact};

const KEPT: usize = 5;

/// Violations of one rule, each proven by a `T`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ledger<T> {
    n: u64,
    kept: [Option<(u64, T)>; KEPT],
}

impl<T: Copy> Default for Ledger<T> {
    fn default() -> Self {
        Self { n: 0, kept: [None; KEPT] }
    }
}

impl<T: Copy> Ledger<T> {
    /// Enters what was seen in trial `trial`.
    pub(super) fn enter(&mut self, trial: u64, proof: T) {
        if let Some(free) = self.kept.iter_mut().find(|k| k.is_none()) {
            *free = Some((trial, proof));
        }
        self.n = self.n.saturating_add(1);
    }

    /// Adds those of another ledger.
    pub(super) fn add(&mut self, other: &Self) {
        for &(trial, proof) in other.kept.iter().flatten() {
            self.enter(trial, proof);
        }
        let kept = other.kept.iter().flatten().count() as u64;
        self.n = self.n.saturating_add(other.n.saturating_sub(kept));
    }

    /// How many there were.
    pub(super) fn n(&self) -> u64 {
        self.n
    }

    /// The finding, if there is anything to find: `title` gets the number, and `tell` the proof
    /// of the first few.
    pub(super) fn finding(
        &self,
        id: &str,
        title: impl FnOnce(u64) -> String,
        tell: impl Fn(&T) -> String,
    ) -> Option<Finding> {
        if self.n == 0 {
            return None;
        }
        let mut proofs: Vec<String> = self
            .kept
            .iter()
            .flatten()
            .map(|(trial, proof)| format!("trial {trial}: {}", tell(proof)))
            .collect();
        let untold = self.n.saturating_sub(proofs.len() as u64);
        if untold > 0 {
            proofs.push(format!("and {untold} more"));
        }
        let title = title(self.n);
        Some(Finding::new(id, Impact::Violation, title).meaning(format!("{}.", proofs.join("; "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_the_first_reported() {
        let mut ledger = Ledger::default();
        let find = |l: &Ledger<i64>| l.finding("x", |n| format!("{n} seen"), |p| format!("{p} ns"));
        assert_eq!(find(&ledger), None);
        for trial in 0..8 {
            ledger.enter(trial, 10 * i64::try_from(trial).expect("small"));
        }
        let finding = find(&ledger).expect("eight");
        let mut both = Ledger::default();
        both.enter(0, -1);
        both.add(&ledger);
        assert_eq!(both.n(), 9);
        assert_eq!(finding.impact, Impact::Violation);
        assert_eq!(finding.title, "8 seen");
        assert!(finding.meaning.starts_with("trial 0: 0 ns; trial 1: 10 ns"), "{finding:?}");
        assert!(finding.meaning.ends_with("and 3 more."), "{finding:?}");
    }
}
