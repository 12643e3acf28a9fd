// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the inversions of a run come to, for people: findings, figures, and the tasks of one
//! trial beside each other.
//!
//! Units: ns since the begin of the trial.

use tailbound_core::finding::{Finding, Impact};
use tailbound_core::record::{Lane, Span, TimelineRecord};

use super::super::{count, span};

use super::super::ledger::Ledger;
use super::super::pace::Stretch;
use super::tasks::{LockKind, Seating};
use super::trial::{Outcome, Proof, Seats, Trial};
use crate::kind::PlantedFault;
use crate::thread_group::ProbeOutput;

/// What all CPUs found.
#[derive(Debug, Default)]
pub(super) struct Sum {
    /// Trials with inheritance.
    pub(super) trials: u64,
    /// Of those, the ones that show nothing.
    pub(super) undecided: u64,
    /// Of those, the ones in which the kernel failed.
    pub(super) violations: Ledger<Proof>,
    /// Trials without inheritance.
    pub(super) controls: u64,
    /// Of those, the ones that showed an inversion.
    pub(super) inverted: u64,
    /// Trials that did not end.
    pub(super) stuck: u64,
    /// The slowest boost, and where its tasks sat.
    pub(super) slowest: Option<(Seats, Trial)>,
    /// The first control.
    pub(super) control: Option<(Seats, Trial)>,
}

impl Sum {
    /// Enters trial `n`, with inheritance.
    pub(super) fn enter(&mut self, n: u64, seats: Seats, trial: &Trial) {
        self.trials += 1;
        self.undecided += u64::from(trial.outcome() == Outcome::Undecided);
        if let Some(proof) = trial.proof(seats) {
            self.violations.enter(n, proof);
        }
        let boost_ns = trial.boost().span_ns();
        if self.slowest.as_ref().is_none_or(|(_, t)| t.boost().span_ns() < boost_ns) {
            self.slowest = Some((seats, *trial));
        }
    }

    /// Enters a trial without inheritance, if it can show anything.
    pub(super) fn enter_control(&mut self, seats: Seats, trial: &Trial) {
        let outcome = trial.outcome();
        if outcome != Outcome::Undecided {
            self.controls += 1;
            self.inverted += u64::from(outcome != Outcome::Inherited);
            self.control.get_or_insert((seats, *trial));
        }
    }

    /// Adds what another CPU found.
    pub(super) fn add(&mut self, other: Self) {
        self.trials += other.trials;
        self.undecided += other.undecided;
        self.controls += other.controls;
        self.inverted += other.inverted;
        self.stuck += other.stuck;
        self.violations.add(&other.violations);
        let length = |t: &Option<(Seats, Trial)>| t.as_ref().map(|(_, t)| t.boost().span_ns());
        if length(&other.slowest) > length(&self.slowest) {
            self.slowest = other.slowest;
        }
        self.control = self.control.take().or(other.control);
    }

    /// Findings, figures and pictures.
    pub(super) fn output(
        &self,
        priorities: [u8; 3],
        planted: PlantedFault,
        seating: Seating,
    ) -> ProbeOutput {
        let mut output = ProbeOutput::default();
        let counts = [
            ("inversions", self.trials, "trials with inheritance"),
            (
                "violations",
                self.violations.n(),
                "of them, those in which the spinner ran while the urgent task waited",
            ),
            ("controls", self.controls, "trials without inheritance"),
            ("control-inversions", self.inverted, "of them, those that showed the inversion"),
        ];
        output.figures.extend(counts.map(|(name, n, note)| count(name, n, note)));
        if seating == Seating::Across {
            let note = "of the inversions, those whose spinner ended before the urgent task was seen asleep: they show nothing";
            output.figures.push(count("undecided", self.undecided, note));
        }
        output.findings.extend(violation(&self.violations));
        output.findings.extend(self.doubts(planted));
        let slowest =
            "the slowest boost: the holder of the lock inherits the priority of who waits";
        let control = "the same without inheritance: the spinner keeps both waiting";
        for (trial, title, lock) in [
            (&self.slowest, slowest, LockKind::with(planted)),
            (&self.control, control, LockKind::Plain),
        ] {
            let lanes = |(seats, t): &(Seats, Trial)| timeline(t, *seats, priorities, lock);
            output.timelines.extend(
                trial.as_ref().map(|t| TimelineRecord { title: title.to_owned(), lanes: lanes(t) }),
            );
        }
        output
    }

    fn doubts(&self, planted: PlantedFault) -> Vec<Finding> {
        let mut found = Vec::new();
        if self.stuck > 0 {
            found.push(
                Finding::new("trial-stuck", Impact::Violation, "a trial did not end within seconds")
                    .meaning("The three tasks and their lock want less than the interval: one of them was never let go on, so the lock or the scheduler lost a wake-up (or real-time tasks get no time here at all).")
                    .remedy("Look for a task of a higher priority that does not sleep, and at kernel.sched_rt_runtime_us."),
            );
        }
        if self.controls > self.inverted && !planted.is_present() {
            let title = format!(
                "{} of {} trials without inheritance showed no inversion",
                self.controls - self.inverted,
                self.controls
            );
            found.push(Finding::listed("control-failed", Impact::Doubt, title));
        }
        found
    }
}

fn violation(ledger: &Ledger<Proof>) -> Option<Finding> {
    let title = |n| {
        format!(
            "a task of lower priority ran while the urgent task waited for a lock with inheritance, in {n} trials"
        )
    };
    ledger.finding("priority-inversion", title, |p| {
        let Seats { holder_cpu: cpu, urgent_cpu } = p.seats;
        if p.errno != 0 {
            return format!("CPU {cpu}: the kernel refused the lock, errno {}", p.errno);
        }
        let from = if urgent_cpu == cpu { String::new() } else { format!(" on CPU {urgent_cpu}") };
        format!(
            "CPU {cpu}: the urgent task{from} waited {}, and for {} of it the spinner ran",
            span(p.waited_ns),
            span(p.spun_ns)
        )
    })
    .map(|f| f.remedy("The holder of a lock must run at the priority of its most urgent waiter: this kernel's inheritance (CONFIG_FUTEX_PI, CONFIG_RT_MUTEXES) does not do so."))
}

/// The three tasks of a trial beside each other, the most urgent first.
fn timeline(trial: &Trial, seats: Seats, priorities: [u8; 3], lock: LockKind) -> Vec<Lane> {
    let [low, middle, high] = &trial.seen;
    let [low_priority, middle_priority, high_priority] = priorities;
    let begin = trial.began_ns;
    let lane = |name: &str, priority: u8, cpu: u32, spans: Vec<(i64, i64, &str)>| Lane {
        name: name.to_owned(),
        note: format!("fifo:{priority}, CPU {cpu}"),
        spans: spans
            .into_iter()
            .filter(|(from, to, _)| to > from)
            .map(|(from, to, state)| Span {
                from_ns: from - begin,
                to_ns: to - begin,
                state: state.to_owned(),
            })
            .collect(),
    };
    let urgent = vec![
        (trial.called_ns, high.first_ns, "ready"),
        (high.first_ns, high.asked_ns, "running"),
        (high.asked_ns, high.got_ns, "blocked"),
        (high.got_ns, high.end_ns, "running"),
    ];
    let mut spinner = vec![(trial.called_ns, middle.first_ns, "ready")];
    spinner.extend(between(middle.pace.stretches(), middle.first_ns, middle.end_ns, |_| "running"));
    let mut holder = vec![(begin, low.first_ns, "ready"), (low.first_ns, low.got_ns, "running")];
    let boosted = match lock {
        LockKind::Inheriting => "boosted",
        LockKind::Plain => "holds",
    };
    let stretches = low.pace.stretches();
    let (before, after) = (|_| "holds", |_| boosted);
    let from_ns = if low.resumed_ns == 0 { low.released_ns } else { low.resumed_ns };
    let stopped_ns = trial.stopped_ns().min(from_ns);
    holder.extend(between(stretches, low.got_ns, stopped_ns, before));
    holder.push((stopped_ns, from_ns, "ready"));
    holder.extend(between(stretches, from_ns, low.released_ns, after));
    let last = middle.end_ns.max(high.end_ns);
    holder.push((low.released_ns, last.min(low.end_ns), "ready"));
    holder.push((last, low.end_ns, "running"));
    vec![
        lane("urgent", high_priority, seats.urgent_cpu, urgent),
        lane("spinner", middle_priority, seats.holder_cpu, spinner),
        lane("holder", low_priority, seats.holder_cpu, holder),
    ]
}

/// The stretches from `from_ns` to `to_ns`, and `ready` between them.
fn between<'s>(
    stretches: &[Stretch],
    from_ns: i64,
    to_ns: i64,
    state: impl Fn(i64) -> &'s str,
) -> Vec<(i64, i64, &'s str)> {
    let mut spans = Vec::new();
    let mut at = from_ns;
    for s in stretches {
        let (from, to) = (s.from_ns.max(from_ns), s.to_ns.min(to_ns));
        if from < to {
            spans.push((at, from, "ready"));
            spans.push((from, to, state(from)));
            at = to;
        }
    }
    spans.push((at, to_ns, "ready"));
    spans
}
