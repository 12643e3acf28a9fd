// SPDX-License-Identifier: MIT OR Apache-2.0
//! From many late samples to who made them late, the worst first.
//!
//! Units: ns.

use super::{BlameRecord, Cause, Sureness};
use crate::number::Real as _;
use crate::order;
use crate::units::format_ns_i64;

/// One cause and name, over all samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// What.
    pub cause: Cause,
    /// Who; a number behind a thread's name is left out, so that ten workers are one culprit.
    pub who: String,
    /// Samples of which it took the largest share.
    pub samples: usize,
    /// The latest of these; else the latest that it had a part in.
    pub worst_ns: i64,
    /// Most that it took of one sample.
    pub part_ns_max: i64,
    /// All that it took of all samples.
    pub total_ns: i64,
    /// How sure nine tenths of that time are, the surest first.
    pub sureness: Sureness,
}

/// What the samples of a ranking are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampleKind {
    /// Wake-ups or cycles that came late.
    #[default]
    Late,
    /// Sections of the kernel's code, all of them.
    Section,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranking {
    /// Samples that were taken apart; near misses count only where there is nothing else.
    pub samples: usize,
    /// Near misses that were taken apart.
    pub near: usize,
    /// They are all there is.
    pub near_only: bool,
    /// What they are.
    pub kind: SampleKind,
    /// The earliest of them.
    pub least_ns: i64,
    /// All their lateness.
    pub total_ns: i64,
    /// Culprits: those that took most of a sample, most time first; then the others.
    pub culprits: Vec<Culprit>,
}

/// `hackbench-3975` is one of many `hackbench`, `kworker/0:1-41 vmstat_update` one of `kworker vmstat_update`.
#[must_use]
pub fn without_numbers(who: &str) -> String {
    let word = |w: &str| {
        let bare = w.trim_end_matches([',', ')', ';']);
        let end = w.get(bare.len()..).unwrap_or_default();
        let name = match bare.rsplit_once('-') {
            Some((name, n)) if !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => bare,
        };
        let name = if name.starts_with("kworker/") { "kworker" } else { name };
        format!("{name}{end}")
    };
    who.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Times that are sure, likely, and not sure.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    sure_ns: i64,
    likely_ns: i64,
    unsure_ns: i64,
}

impl Times {
    fn add(&mut self, sureness: Sureness, ns: i64) {
        let sum = match sureness {
            Sureness::Sure => &mut self.sure_ns,
            Sureness::Likely => &mut self.likely_ns,
            _ => &mut self.unsure_ns,
        };
        *sum = sum.saturating_add(ns);
    }

    fn absorb(&mut self, other: Self) {
        self.add(Sureness::Sure, other.sure_ns);
        self.add(Sureness::Likely, other.likely_ns);
        self.add(Sureness::Unsure, other.unsure_ns);
    }

    fn all(self) -> i64 {
        self.sure_ns.saturating_add(self.likely_ns).saturating_add(self.unsure_ns)
    }

    /// How sure nine tenths are: a few ns of something less sure do not make a doubt of it.
    fn sureness(self) -> Sureness {
        let most = |ns: i64| ns.saturating_mul(10) >= self.all().saturating_mul(9);
        match () {
            () if most(self.sure_ns) => Sureness::Sure,
            () if most(self.sure_ns.saturating_add(self.likely_ns)) => Sureness::Likely,
            () => Sureness::Unsure,
        }
    }
}

/// A culprit's share of a sample, beside those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SampleShare {
    Greatest,
    Lesser,
}

impl Culprit {
    fn new(cause: Cause, who: String) -> Self {
        let sureness = Sureness::Sure;
        Self { cause, who, samples: 0, worst_ns: 0, part_ns_max: 0, total_ns: 0, sureness }
    }

    /// It took `ns` of a sample.
    fn absorb(&mut self, latency_ns: i64, ns: i64, share: SampleShare) {
        let is_main = share == SampleShare::Greatest;
        if is_main && self.samples == 0 {
            self.worst_ns = latency_ns;
        }
        self.samples = self.samples.saturating_add(usize::from(is_main));
        if is_main || self.samples == 0 {
            self.worst_ns = self.worst_ns.max(latency_ns);
        }
        self.part_ns_max = self.part_ns_max.max(ns);
        self.total_ns = self.total_ns.saturating_add(ns);
    }
}

impl Ranking {
    /// Ranks the culprits of `records`: of those above the limit, and where none is, of the near misses.
    #[must_use]
    pub fn of(records: &[BlameRecord]) -> Self {
        let near = records.iter().filter(|r| r.near).count();
        let near_only = near > 0 && near == records.len();
        let counted = || records.iter().filter(|r| near_only || !r.near);
        let mut culprits: Vec<(Culprit, Times)> = Vec::new();
        for record in counted() {
            let (cause, who) = record.culprit();
            let main = (cause, without_numbers(who));
            let mut seen: Vec<(Cause, String, Times)> = Vec::new();
            for part in &record.parts {
                let key = without_numbers(&part.who);
                let at = seen.iter().position(|(c, w, _)| *c == part.cause && *w == key);
                let at = at.unwrap_or_else(|| {
                    seen.push((part.cause, key, Times::default()));
                    seen.len().saturating_sub(1)
                });
                if let Some((.., times)) = seen.get_mut(at) {
                    times.add(part.sureness, part.ns);
                }
            }
            for (cause, who, times) in seen {
                let share = match (cause, &who) == (main.0, &main.1) {
                    true => SampleShare::Greatest,
                    false => SampleShare::Lesser,
                };
                let at = culprits.iter().position(|(c, _)| c.cause == cause && c.who == who);
                let at = at.unwrap_or_else(|| {
                    culprits.push((Culprit::new(cause, who), Times::default()));
                    culprits.len().saturating_sub(1)
                });
                let Some((culprit, all)) = culprits.get_mut(at) else { continue };
                culprit.absorb(record.latency_ns, times.all(), share);
                all.absorb(times);
            }
        }
        let told =
            |(culprit, times): (Culprit, Times)| Culprit { sureness: times.sureness(), ..culprit };
        let mut culprits: Vec<Culprit> = culprits.into_iter().map(told).collect();
        let rank = |c: &Culprit| (c.samples > 0, c.total_ns, c.samples);
        order::by(&mut culprits, |a, b| (rank(b), &a.who).cmp(&(rank(a), &b.who)));
        let total_ns = counted().map(|r| r.latency_ns).fold(0, i64::saturating_add);
        let least_ns = counted().map(|r| r.latency_ns).min().unwrap_or(0);
        let samples = counted().count();
        let kind = match samples > 0 && counted().all(BlameRecord::is_section) {
            true => SampleKind::Section,
            false => SampleKind::Late,
        };
        Self { samples, near, near_only, kind, least_ns, total_ns, culprits }
    }

    /// The answer in one sentence: `9 ms of the 12 ms that 41 late samples took (73 %; 100 µs or more each): …`. By time, not by number: a
    /// hundred short ones are less than one that breaks the deadline.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Some(first) = self.culprits.first() else {
            return "no late sample was analysed".to_owned();
        };
        let what = first.cause.sentence(&first.who);
        let hedge = match first.sureness {
            Sureness::Sure => "",
            Sureness::Likely => " (likely)",
            _ => " (one of several that fit)",
        };
        let least = format_ns_i64(self.least_ns);
        let (one, many) = match (self.near_only, self.kind) {
            (true, _) => ("near miss", "near misses"),
            (false, SampleKind::Late) => ("late sample", "late samples"),
            (false, SampleKind::Section) => ("section", "sections"),
        };
        let sentence = match (first.samples, self.samples) {
            (_, 1) => format!("the one {one} of {least}: {what}{hedge}"),
            (2, 2) => {
                format!("both {many} ({least} or more): {what}{hedge}")
            }
            (some, all) if some == all => {
                format!("all {all} {many} ({least} or more): {what}{hedge}")
            }
            (some, all) => {
                let share = first.total_ns.real() / self.total_ns.max(1).real() * 100.0;
                let ns = format_ns_i64(first.total_ns);
                let of = format_ns_i64(self.total_ns);
                format!(
                    "{ns} of the {of} that {all} {many} took ({share:.0} %; {least} or more each): {what}{hedge}, the \
                     largest part of {some}"
                )
            }
        };
        if self.near_only {
            return format!("no sample above the limit; {sentence}");
        }
        sentence
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;

    #[test]
    fn ten_workers_are_one_culprit() {
        assert_eq!(without_numbers("hackbench-3975"), "hackbench");
        assert_eq!(without_numbers("kworker/0:1-41 vmstat_update"), "kworker vmstat_update");
        assert_eq!(without_numbers("irq/36-virtio0-112"), "irq/36-virtio0");
        assert_eq!(without_numbers("eth-x"), "eth-x");
        assert_eq!(
            without_numbers("in futex 0x1, woken by low-12, or cc1-7"),
            "in futex 0x1, woken by low, or cc1"
        );
        assert_eq!(without_numbers("a-1 (last got by b-2)"), "a (last got by b)");
    }

    #[test]
    fn most_time_first_and_a_sentence() {
        let ranking = Ranking::of(&[
            record(
                200_000,
                &[(Cause::LockSpin, "hackbench-1", 190_000), (Cause::WakeUp, "", 10_000)],
            ),
            record(150_000, &[(Cause::LockSpin, "hackbench-2", 140_000), (Cause::Nmi, "", 10_000)]),
            record(900_000, &[(Cause::Host, "", 900_000)]),
        ]);
        let second = &ranking.culprits[1];
        assert_eq!(
            (second.who.as_str(), second.samples, second.worst_ns),
            ("hackbench", 2, 200_000)
        );
        assert_eq!((second.part_ns_max, second.total_ns), (190_000, 330_000));
        assert_eq!(
            ranking.sentence(),
            "900 µs of the 1.25 ms that 3 late samples took (72 %; 150 µs or more each): the host took the virtual CPU, the \
             largest part of 1"
        );
        assert_eq!(Ranking::of(&[]).sentence(), "no late sample was analysed");
    }

    #[test]
    fn near_misses_count_where_nothing_else_is_there() {
        let near = |ns| BlameRecord { near: true, ..record(ns, &[(Cause::Nmi, "", ns)]) };
        let only = Ranking::of(&[near(80), near(90)]);
        assert_eq!(
            only.sentence(),
            "no sample above the limit; both near misses (80 ns or more): non-maskable interrupt"
        );
        let both = Ranking::of(&[near(80), record(120, &[(Cause::PageFault, "", 120)])]);
        assert_eq!((both.samples, both.near, both.culprits.len()), (1, 1, 1));
        assert_eq!(both.sentence(), "the one late sample of 120 ns: page fault");
    }
}
