// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a load works: from, for, every. Loads of one run take turns by it.
//!
//! Units: ns from the first due activation of the measurement.
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
            (None, Some(_)) => Err(r.bad("every", "write for= too: how long it runs each time")),
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

    /// When the phase that is on at `t_ns` began.
    fn began_ns(self, t_ns: i64) -> i64 {
        let since = t_ns.max(0).saturating_sub(self.from_ns);
        t_ns.max(0).saturating_sub(self.every_ns.map_or(since, |every| since % every))
    }

    /// How many phases both began and ended after `last_ns`, until `now_ns`: whoever looked at
    /// these two times alone saw none of them.
    fn passed_over(self, last_ns: i64, now_ns: i64) -> u64 {
        let Some(lasts) = self.for_ns else { return 0 };
        let from = self.from_ns;
        let newest = now_ns.saturating_sub(lasts).saturating_sub(from);
        if newest < 0 {
            return 0;
        }
        let before = last_ns.saturating_sub(from);
        let Some(every) = self.every_ns else { return u64::from(before < 0) };
        // Beginnings until `newest`, less those until `before`.
        let until = |ns: i64| if ns < 0 { 0 } else { ns.unsigned_abs() / every.unsigned_abs() + 1 };
        until(newest).saturating_sub(until(before))
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
    /// for it. One that cannot begin has failed, and one that was begun late or not at all,
    /// because this was called late, has that to its name: [`Loads::findings`] tells. From
    /// `end_ns` on, the end of the measurement, nothing begins.
    pub fn keep_phases(&mut self, t_ns: i64, end_ns: i64) -> Vec<PhaseChange> {
        self.listen();
        let mut changes = Vec::new();
        // What begins at 0 was begun before there was anything to look at.
        let last_ns = self.looked_ns.replace(t_ns).unwrap_or(0).max(0);
        for (load, r) in (0..).zip(&mut self.all) {
            if !r.is_over() {
                r.passed_over += r.phase.passed_over(last_ns, t_ns.min(end_ns));
            }
            let began = match (r.phase.is_on(t_ns), r.is_working()) {
                (true, false) if r.is_awaited() => {
                    let began_ns = r.phase.began_ns(t_ns);
                    if t_ns >= end_ns {
                        r.passed_over += u64::from(began_ns > last_ns && began_ns < end_ns);
                        continue;
                    }
                    r.begun_late_ns = r.begun_late_ns.max(t_ns.saturating_sub(began_ns));
                    if let Err(e) = r.begin(&self.how) {
                        r.fail(format!("it could not begin: {e}"));
                        continue;
                    }
                    true
                }
                (false, true) if r.request_stop() => false,
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
    fn phases_between_two_looks_are_counted() {
        let all = |it: Phase| -> Vec<(i64, i64)> {
            let begins = (0..100).map(|k| it.from_ns + k * it.every_ns.unwrap_or(1000));
            begins.map(|b| (b, b + it.for_ns.unwrap_or(1_000_000))).collect()
        };
        let phase = |from_ns, for_ns, every_ns| Phase { from_ns, for_ns, every_ns };
        for it in [phase(3, Some(2), Some(5)), phase(0, Some(1), Some(4)), phase(7, Some(3), None)]
        {
            for last in -1..20 {
                for now in last..40 {
                    let between = |p: &&(i64, i64)| p.0 > last && p.1 <= now;
                    let seen = all(it).iter().filter(between).count() as u64;
                    assert_eq!(it.passed_over(last, now), seen, "{it:?} {last} {now}");
                }
            }
        }
        assert_eq!(phase(5, None, None).passed_over(0, 100), 0, "it is still on");
        assert_eq!(phase(3, Some(2), Some(5)).began_ns(9), 8);
    }

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
