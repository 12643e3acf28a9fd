// SPDX-License-Identifier: MIT OR Apache-2.0
//! From many late samples to who made them late, the worst first.
//!
//! Context: COLD. Units: ns.

use super::{BlameRecord, Cause, Sureness};
use crate::number::Real as _;
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
    /// The least sure of the attributions.
    pub sureness: Sureness,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranking {
    /// Samples that were taken apart.
    pub samples: usize,
    /// The earliest of them.
    pub least_ns: i64,
    /// Culprits: most samples first, then most time.
    pub culprits: Vec<Culprit>,
}

/// `hackbench-3975` is one of many `hackbench`, `kworker/0:1-41 vmstat_update` one of `kworker vmstat_update`.
#[must_use]
pub fn kind(who: &str) -> String {
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

impl Ranking {
    /// Ranks the culprits of `records`.
    #[must_use]
    pub fn of(records: &[BlameRecord]) -> Self {
        let mut culprits: Vec<Culprit> = Vec::new();
        for record in records {
            let (cause, who) = record.culprit();
            let main = (cause, kind(who));
            let mut seen: Vec<(Cause, String, i64, Sureness)> = Vec::new();
            for part in &record.parts {
                let key = kind(&part.who);
                match seen.iter_mut().find(|(c, w, ..)| *c == part.cause && *w == key) {
                    Some((_, _, ns, sure)) => {
                        *ns = ns.saturating_add(part.ns);
                        *sure = (*sure).max(part.sureness);
                    }
                    None => seen.push((part.cause, key, part.ns, part.sureness)),
                }
            }
            for (cause, who, ns, sureness) in seen {
                let is_main = (cause, &who) == (main.0, &main.1);
                let at = culprits.iter().position(|c| c.cause == cause && c.who == who);
                let fresh = Culprit {
                    cause,
                    who,
                    samples: 0,
                    worst_ns: 0,
                    part_ns_max: 0,
                    total_ns: 0,
                    sureness: Sureness::Sure,
                };
                let at = at.unwrap_or_else(|| {
                    culprits.push(fresh);
                    culprits.len() - 1
                });
                let Some(culprit) = culprits.get_mut(at) else { continue };
                if is_main {
                    if culprit.samples == 0 {
                        culprit.worst_ns = record.latency_ns;
                    }
                    culprit.samples += 1;
                }
                if is_main || culprit.samples == 0 {
                    culprit.worst_ns = culprit.worst_ns.max(record.latency_ns);
                }
                culprit.part_ns_max = culprit.part_ns_max.max(ns);
                culprit.total_ns = culprit.total_ns.saturating_add(ns);
                culprit.sureness = culprit.sureness.max(sureness);
            }
        }
        culprits
            .sort_by(|a, b| (b.samples, b.total_ns, &a.who).cmp(&(a.samples, a.total_ns, &b.who)));
        let least_ns = records.iter().map(|r| r.latency_ns).min().unwrap_or(0);
        Self { samples: records.len(), least_ns, culprits }
    }

    /// The answer in one sentence: `73 % of the 41 samples above 100 µs: work queue function vmstat_update`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Some(first) = self.culprits.first() else {
            return "no late sample was taken apart".to_owned();
        };
        let what = first.cause.sentence(&first.who);
        let hedge = match first.sureness {
            Sureness::Sure => "",
            _ => " (likely)",
        };
        let least = format_ns_i64(self.least_ns);
        match (first.samples, self.samples) {
            (_, 1) => format!("the one sample of {least}: {what}{hedge}"),
            (some, all) => {
                let share = (some.real() / all.real() * 100.0).round();
                format!("{share} % of the {all} samples of {least} and more: {what}{hedge}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;

    #[test]
    fn ten_workers_are_one_culprit() {
        assert_eq!(kind("hackbench-3975"), "hackbench");
        assert_eq!(kind("kworker/0:1-41 vmstat_update"), "kworker vmstat_update");
        assert_eq!(kind("irq/36-virtio0-112"), "irq/36-virtio0");
        assert_eq!(kind("eth-x"), "eth-x");
        assert_eq!(kind("in futex 0x1, woken by low-12, or cc1-7"), "in futex 0x1, woken by low, or cc1");
    }

    #[test]
    fn most_samples_first_and_a_sentence() {
        let ranking = Ranking::of(&[
            record(
                200_000,
                &[(Cause::LockSpin, "hackbench-1", 190_000), (Cause::WakeUp, "", 10_000)],
            ),
            record(150_000, &[(Cause::LockSpin, "hackbench-2", 140_000), (Cause::Nmi, "", 10_000)]),
            record(900_000, &[(Cause::Host, "", 900_000)]),
        ]);
        let first = &ranking.culprits[0];
        assert_eq!((first.who.as_str(), first.samples, first.worst_ns), ("hackbench", 2, 200_000));
        assert_eq!((first.part_ns_max, first.total_ns), (190_000, 330_000));
        assert_eq!(
            ranking.sentence(),
            "67 % of the 3 samples of 150 µs and more: spinning for a lock: hackbench"
        );
        assert_eq!(Ranking::of(&[]).sentence(), "no late sample was taken apart");
    }
}
