// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a load works: from, for, every. Loads of one run take turns by it.
//!
//! Context: COLD. Units: ns from the first due activation of the measurement.
//! A load without `from` works in the warm-up too, as one without any phase does.
//! Not here: starting and ending workers by it (`loads`).

use crate::error::LoadError;
use crate::loads::Loads;
use crate::options::Reader;

/// Starting and ending a load takes a while: shorter phases would be nothing else.
const SHORTEST_NS: i64 = 100_000_000;

/// When a load works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Phase {
    /// It begins.
    pub(crate) from_ns: i64,
    /// It lasts; `None`: to the end.
    pub(crate) for_ns: Option<i64>,
    /// From one beginning to the next; `None`: it begins once.
    pub(crate) every_ns: Option<i64>,
}

impl Phase {
    pub(crate) fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        let it = Self {
            from_ns: r.time_ns("from", 0)?.unwrap_or(0),
            for_ns: r.time_ns("for", SHORTEST_NS)?,
            every_ns: r.time_ns("every", SHORTEST_NS)?,
        };
        match (it.for_ns, it.every_ns) {
            (None, Some(_)) => {
                Err(r.bad("every", "write for= too: how long it works each time it begins"))
            }
            (Some(lasts), Some(every)) if every < lasts.saturating_add(SHORTEST_NS) => Err(r.bad(
                "every",
                "write a time longer than for= by at least 100ms: between the two it pauses",
            )),
            _ => Ok(it),
        }
    }

    /// Is it to work at `t_ns`? Before 0, in the warm-up, what begins at 0 works.
    pub(crate) fn is_on(self, t_ns: i64) -> bool {
        let since = t_ns.max(0).saturating_sub(self.from_ns);
        if since < 0 {
            return false;
        }
        let since = self.every_ns.map_or(since, |every| since % every);
        self.for_ns.is_none_or(|lasts| since < lasts)
    }

    /// The next time after `t_ns` at which it begins or ends.
    fn next_change_ns(self, t_ns: i64) -> Option<i64> {
        let t = t_ns.max(-1);
        if t < self.from_ns {
            return Some(self.from_ns);
        }
        let lasts = self.for_ns?;
        let since = t.saturating_sub(self.from_ns);
        let into = self.every_ns.map_or(since, |every| since % every);
        let begun = t.saturating_sub(into);
        let changes = [Some(lasts), self.every_ns].into_iter().flatten();
        changes.map(|c| begun.saturating_add(c)).find(|c| *c > t)
    }
}

/// A load began or ended a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseChange {
    /// Position of the load in the list given to [`Loads::start`].
    pub load: u32,
    /// Its specification.
    pub spec: String,
    /// It began; else it ended.
    pub began: bool,
}

impl Loads {
    /// Begins and ends loads as their phases say for `t_ns` of the measurement (before 0: its
    /// warm-up); what was begun and ended. Never waits: a load that was told to end has 700 ms
    /// for it. One that cannot begin has failed, which [`Loads::findings`] tells.
    pub fn keep_phases(&mut self, t_ns: i64) -> Vec<PhaseChange> {
        self.listen();
        let mut changes = Vec::new();
        for (load, r) in (0..).zip(&mut self.all) {
            let began = match (r.phase.is_on(t_ns), r.is_working()) {
                (true, false) if r.is_awaited() => {
                    if let Err(e) = r.begin(&self.how) {
                        r.fail(format!("it could not begin: {e}"));
                        continue;
                    }
                    true
                }
                (false, true) if r.tell_to_stop() => false,
                _ => continue,
            };
            changes.push(PhaseChange { load, spec: r.spec.to_string(), began });
        }
        changes
    }

    /// The next time after `t_ns` at which a load begins or ends a phase.
    #[must_use]
    pub fn next_change_ns(&self, t_ns: i64) -> Option<i64> {
        self.all.iter().filter_map(|r| r.phase.next_change_ns(t_ns)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_and_off_by_the_clock() {
        let on = |phase: Phase| -> Vec<i64> { (-1..12).filter(|t| phase.is_on(*t)).collect() };
        let phase = |from_ns, for_ns, every_ns| Phase { from_ns, for_ns, every_ns };
        assert_eq!(on(phase(0, None, None)), (-1..12).collect::<Vec<_>>());
        assert_eq!(on(phase(0, Some(2), None)), [-1, 0, 1]);
        assert_eq!(on(phase(3, Some(2), None)), [3, 4]);
        assert_eq!(on(phase(10, None, None)), [10, 11]);
        assert_eq!(on(phase(1, Some(2), Some(5))), [1, 2, 6, 7, 11]);
        for it in [phase(0, Some(2), None), phase(3, Some(2), Some(4)), phase(1, None, None)] {
            for t in -3..30 {
                let seen = (t.max(-1) + 1..60).find(|n| it.is_on(*n) != it.is_on(n - 1));
                assert_eq!(
                    it.next_change_ns(t).filter(|_| it.from_ns > 0 || t >= 0),
                    seen.filter(|_| it.from_ns > 0 || t >= 0),
                    "{it:?} at {t}"
                );
            }
        }
    }
}
