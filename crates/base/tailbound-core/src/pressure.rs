// SPDX-License-Identifier: MIT OR Apache-2.0
//! How busy the CPUs were beside a run, as its facts before and after tell: whether other work
//! loaded the machine is seen there, not concluded from what Tailbound started.
//!
//! Units: % of the last 10 s in which some task waited for a CPU.
//! Source: Documentation/accounting/psi.rst (`some avg10` of /proc/pressure/cpu).

use crate::record::{Fact, Facts};

/// The fact that is read.
pub const FACT: &str = "kernel.pressure_cpu";

/// From here on other work loaded the machine, in %.
pub const BUSY_PERCENT: f64 = 5.0;

/// The pressure on the CPUs before a run and after it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuPressure {
    /// In the 10 s before it.
    pub before_percent: Option<f64>,
    /// In its last 10 s.
    pub after_percent: Option<f64>,
}

/// Did anything load the machine that Tailbound did not start?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherWork {
    /// Tasks waited for CPUs.
    Seen,
    /// Hardly any task waited, before and after.
    NotSeen,
    /// The pressure was not recorded.
    Unknown,
}

impl CpuPressure {
    /// From the facts before and after a run; those after it are only what changed.
    #[must_use]
    pub fn of(before: &Facts, after: &Facts) -> Self {
        let percent = |facts: &Facts| match facts.get(FACT) {
            Some(Fact::Value(v)) => v.as_f64().filter(|v| v.is_finite()),
            _ => None,
        };
        let before_percent = percent(before);
        let same = !after.is_empty() && !after.contains_key(FACT);
        let after_percent = if same { before_percent } else { percent(after) };
        Self { before_percent, after_percent }
    }

    /// What it says of other work.
    #[must_use]
    pub fn other_work(self) -> OtherWork {
        let known = [self.before_percent, self.after_percent];
        if known.iter().flatten().any(|v| *v >= BUSY_PERCENT) {
            return OtherWork::Seen;
        }
        if known.iter().all(Option::is_some) { OtherWork::NotSeen } else { OtherWork::Unknown }
    }

    /// What is said where other work was seen beside a run without a load of ours.
    #[must_use]
    pub fn other_work_sentence(self) -> String {
        format!("Tailbound started no load, but other work loaded the machine: {}", self.words())
    }

    /// `CPU pressure was 99 % before the run and 97 % at its end`.
    #[must_use]
    pub fn words(self) -> String {
        let percent = |v: f64| if v >= 10.0 { format!("{v:.0} %") } else { format!("{v:.1} %") };
        match (self.before_percent.map(percent), self.after_percent.map(percent)) {
            (Some(before), Some(after)) => {
                format!("CPU pressure was {before} before the run and {after} at its end")
            }
            (Some(before), None) => {
                format!("CPU pressure was {before} before the run; at its end it is unknown")
            }
            (None, Some(after)) => {
                format!("CPU pressure was {after} at the end of the run; before it is unknown")
            }
            (None, None) => "CPU pressure is not recorded".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(percent: f64) -> Facts {
        [(FACT.to_owned(), Fact::of(percent))].into_iter().collect()
    }

    #[test]
    fn other_work_is_seen_in_the_pressure_before_or_after() {
        let (idle, busy, none) = (facts(0.3), facts(99.0), Facts::new());
        for (before, after, seen) in [
            (&busy, &idle, OtherWork::Seen),
            (&idle, &busy, OtherWork::Seen),
            (&none, &busy, OtherWork::Seen),
            (&idle, &idle, OtherWork::NotSeen),
            (&idle, &none, OtherWork::Unknown),
            (&none, &none, OtherWork::Unknown),
        ] {
            assert_eq!(CpuPressure::of(before, after).other_work(), seen, "{before:?} {after:?}");
        }
        // Facts after a run are those that changed: this one did not.
        let other = [("x".to_owned(), Fact::of(1))].into_iter().collect();
        let pressure = CpuPressure::of(&busy, &other);
        assert_eq!(pressure.words(), "CPU pressure was 99 % before the run and 99 % at its end");
        assert_eq!(CpuPressure::of(&none, &other).other_work(), OtherWork::Unknown);
    }
}
