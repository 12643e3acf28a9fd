// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that a simulated run is going to meet, drawn from its seed.
//!
//! Context: COLD, tests only. Units: ns.

use tailbound_core::plan::{Plan, StopRule, Until};
use tailbound_stats::random::Random;

use crate::view::SamplesTo;

pub(super) const MS: i64 = 1_000_000;
pub(super) const S: i64 = 1000 * MS;

/// A load that has phases, and may die.
#[derive(Clone, Debug)]
pub(super) struct FateOfLoad {
    pub(super) from_ns: i64,
    pub(super) for_ns: i64,
    pub(super) every_ns: i64,
    pub(super) dies_ns: Option<i64>,
}

/// The run of one seed.
#[derive(Clone, Debug)]
pub(super) struct Fate {
    pub(super) seed: u64,
    pub(super) threads: u32,
    pub(super) interval_ns: i64,
    pub(super) activations: u64,
    pub(super) warm_up_ns: i64,
    pub(super) deadline_ns: Option<i64>,
    pub(super) raw: bool,
    pub(super) rule: bool,
    pub(super) refresh_ms: u32,
    /// Wake-ups are late by more than an interval now and then.
    pub(super) stalls: bool,
    /// The supervisor is late now and then.
    pub(super) late_looks: bool,
    /// A signal comes then.
    pub(super) signal_ns: Option<i64>,
    /// The sleep of this thread is refused from this activation on.
    pub(super) fails: Option<(u32, u64)>,
    /// A measured CPU goes away then.
    pub(super) hotplug_ns: Option<i64>,
    pub(super) load: Option<FateOfLoad>,
    /// The disk takes so many bytes.
    pub(super) disk_bytes: Option<usize>,
    /// The write that goes beyond so many bytes fails, and later ones do not.
    pub(super) bad_block: Option<usize>,
    /// The file cannot be given its name.
    pub(super) nameless: bool,
    /// The power fails at this look; the file as it is then is kept.
    pub(super) power_cut: usize,
}

/// One of `n`, from 0.
fn below(random: &mut Random, n: i64) -> i64 {
    let n = usize::try_from(n.max(1)).unwrap_or(usize::MAX);
    i64::try_from(random.below(n)).unwrap_or(0)
}

impl Fate {
    pub(super) fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let r = &mut random;
        // A rule needs half a minute to show something.
        let rule = r.below(6) == 0;
        let (interval_ns, least, most) = match r.below(5) {
            _ if rule => (50 * MS, 700, 500),
            0 => (1500 * MS, 1, 6),
            i => ([50 * MS, 7 * MS, 2 * MS, MS][i - 1], 1, 400),
        };
        let activations = least + below(r, most);
        let warm_up_ns = [0, 10 * MS, 300 * MS][r.below(3)];
        let duration = activations * interval_ns;
        // Also just before the start and just after the end.
        let instant = |r: &mut Random| below(r, duration + warm_up_ns + 20 * MS) - warm_up_ns;
        let one_in = |r: &mut Random, n: usize| r.below(n) == 0;
        let load = one_in(r, 3).then(|| FateOfLoad {
            from_ns: below(r, duration),
            for_ns: 1 + below(r, duration),
            every_ns: duration + 1,
            dies_ns: one_in(r, 2).then(|| instant(r)),
        });
        Self {
            seed,
            threads: 1 + u32::try_from(r.below(3)).unwrap_or(0),
            interval_ns,
            activations: activations.unsigned_abs(),
            warm_up_ns,
            deadline_ns: (!one_in(r, 4)).then(|| [200_000, 5 * MS, 10 * S][r.below(3)]),
            raw: one_in(r, 4),
            rule,
            refresh_ms: if one_in(r, 4) { 125 } else { 0 },
            stalls: one_in(r, 2),
            late_looks: one_in(r, 3),
            signal_ns: one_in(r, 4).then(|| instant(r)),
            fails: one_in(r, 10).then(|| {
                (u32::try_from(r.below(3)).unwrap_or(0), below(r, activations).unsigned_abs())
            }),
            hotplug_ns: one_in(r, 10).then(|| instant(r)),
            load,
            disk_bytes: one_in(r, 6).then(|| r.below(60_000)),
            bad_block: one_in(r, 8).then(|| r.below(60_000)),
            nameless: one_in(r, 20),
            power_cut: r.below(12),
        }
    }

    pub(super) fn apply(&self, plan: &mut Plan) {
        plan.interval_ns = self.interval_ns;
        plan.activations = self.activations;
        plan.warm_up_ns = self.warm_up_ns;
        plan.cpus = (0..self.threads).collect();
        plan.raw = self.raw;
        plan.requirement.deadline_ns = self.deadline_ns;
        if let (true, Some(_)) = (self.rule, self.deadline_ns) {
            plan.requirement.class = tailbound_core::requirement::Class::Safe;
            plan.requirement.rate = "1/10s".parse().ok();
            let rule = StopRule::Demonstrated;
            plan.until = Some(Until { rule, precision: None, quantiles: Vec::new() });
        }
    }

    /// Every other run that keeps raw samples hands them to a viewer.
    pub(super) fn samples(&self) -> SamplesTo {
        match self.raw && self.seed % 2 == 1 {
            true => SamplesTo::Viewer,
            false => SamplesTo::File,
        }
    }

    /// The generator of one part of the run: what one part draws must not depend on another.
    pub(super) fn random(&self, part: u64) -> Random {
        Random::new(self.seed ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}
