// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts of the machine that were others after a run than before it, with both values.
//!
//! The run file holds all facts before a run, and after it those that changed or are
//! known only then. `watch.*` are of the run itself, no changes of the machine.
//! Not here: changes from run to run (`history`), changes of the latencies within a run (`phases`).

use tailbound_core::Run;
use tailbound_core::record::Fact;

use crate::compare::differing::is_noise;

/// What the measuring program changes for itself: the guard against threads that never sleep, and
/// the CPUs that it leaves to the measured threads.
const OF_THE_PROGRAM: [&str; 2] = ["cpu.allowed", "limits.rttime_us"];

/// One fact that changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FactChange<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value before the run, where the run file has one.
    pub before: Option<&'a Fact>,
    /// Its value after it.
    pub after: &'a Fact,
}

impl FactChange<'_> {
    /// The value before, for people.
    #[must_use]
    pub fn before_text(&self) -> String {
        self.before.map_or_else(|| "value before: not recorded".to_owned(), Fact::text)
    }

    /// Does this fact differ in every run: between any two moments, as a load average does, or
    /// because the measuring program changes it for itself?
    #[must_use]
    pub fn is_usual(&self) -> bool {
        is_noise(self.name) || OF_THE_PROGRAM.contains(&self.name)
    }
}

/// All that changed, in the order of the names.
#[must_use]
pub fn of(run: &Run) -> Vec<FactChange<'_>> {
    let changed = run.after.iter().filter(|(name, _)| !name.starts_with("watch."));
    changed
        .map(|(name, after)| FactChange { name, before: run.header.machine.get(name), after })
        .filter(|change| change.before != Some(change.after))
        .collect()
}
