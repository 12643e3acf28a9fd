// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the inversions of a run come to, for people: findings, figures, and the tasks of one
//! trial beside each other.
//!
//! Context: COLD. Units: ns since the begin of the trial.

use super::super::{count, span};
use tailbound_core::finding::{Finding, Impact};
use tailbound_core::record::{Lane, Span, TimelineRecord};

use super::super::ledger::Ledger;
use super::super::pace::Stretch;
use super::trial::{Proof, Trial};
use crate::thread_group::ProbeOutput;

/// What all CPUs found.
#[derive(Debug, Default)]
pub(super) struct Sum {
    /// Trials with inheritance.
    pub(super) trials: u64,
    /// Of those, the ones in which the kernel failed.
    pub(super) violations: Ledger<Proof>,
    /// Trials without inheritance.
    pub(super) controls: u64,
    /// Of those, the ones that showed an inversion.
    pub(super) inverted: u64,
    /// Trials that did not end.
    pub(super) stuck: u64,
    /// The slowest boost, and a trial without inheritance; with their CPU.
    pub(super) slowest: Option<(u32, Trial)>,
    /// The first control.
    pub(super) control: Option<(u32, Trial)>,
}

impl Sum {
    /// Adds what another CPU found.
    pub(super) fn add(&mut self, other: Self) {
        self.trials += other.trials;
        self.controls += other.controls;
        self.inverted += other.inverted;
        self.stuck += other.stuck;
        self.violations.add(&other.violations);
        let length = |t: &Option<(u32, Trial)>| t.as_ref().map(|(_, t)| t.boost().span_ns());
        if length(&other.slowest) > length(&self.slowest) {
            self.slowest = other.slowest;
        }
        self.control = self.control.take().or(other.control);
    }

    /// Findings, figures and pictures.
    pub(super) fn output(&self, priorities: [u8; 3], planted: bool) -> ProbeOutput {
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
        output.findings.extend(violation(&self.violations));
        output.findings.extend(self.doubts(planted));
        let slowest =
            "the slowest boost: the holder of the lock inherits the priority of who waits";
        let control = "the same without inheritance: the spinner keeps both waiting";
        for (trial, title, inherits) in
            [(&self.slowest, slowest, !planted), (&self.control, control, false)]
        {
            let lanes = |(cpu, t): &(u32, Trial)| timeline(t, *cpu, priorities, inherits);
            output.timelines.extend(
                trial.as_ref().map(|t| TimelineRecord { title: title.to_owned(), lanes: lanes(t) }),
            );
        }
        output
    }

    fn doubts(&self, planted: bool) -> Vec<Finding> {
        let mut found = Vec::new();
        if self.stuck > 0 {
            found.push(
                Finding::new("trial-stuck", Impact::Violation, "a trial did not end within seconds")
                    .meaning("The three tasks and their lock want less than the interval: one of them was never let go on, so the lock or the scheduler lost a wake-up (or real-time tasks get no time here at all).")
                    .remedy("Look for a task of a higher priority that does not sleep, and at kernel.sched_rt_runtime_us."),
            );
        }
        if self.controls > self.inverted && !planted {
            let title = format!(
                "{} of {} trials without inheritance showed no inversion",
                self.controls - self.inverted,
                self.controls
            );
            found.push(
                Finding::new("control-failed", Impact::Doubt, title)
                    .meaning("The control trials did not show the inversion that inheritance prevents, so its absence in the other trials proves less.")
                    .remedy("Make --spin longer; look for something that takes the CPU away from the spinner."),
            );
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
        if p.errno != 0 {
            return format!("CPU {}: the kernel refused the lock, errno {}", p.cpu, p.errno);
        }
        format!(
            "CPU {}: the urgent task waited {}, and for {} of it the spinner ran",
            p.cpu,
            span(p.waited_ns),
            span(p.spun_ns)
        )
    })
    .map(|f| f.remedy("The holder of a lock must run at the priority of its most urgent waiter: this kernel's inheritance (CONFIG_FUTEX_PI, CONFIG_RT_MUTEXES) does not do so."))
}

/// The three tasks of a trial beside each other, the most urgent first.
fn timeline(trial: &Trial, cpu: u32, priorities: [u8; 3], inherits: bool) -> Vec<Lane> {
    let [low, middle, high] = &trial.seen;
    let [low_priority, middle_priority, high_priority] = priorities;
    let begin = trial.began_ns;
    let lane = |name: &str, priority: u8, spans: Vec<(i64, i64, &str)>| Lane {
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
    let boosted = |at: i64| if at >= high.asked_ns && inherits { "boosted" } else { "holds" };
    holder.extend(between(low.pace.stretches(), low.got_ns, low.released_ns, boosted));
    let last = middle.end_ns.max(high.end_ns);
    holder.push((low.released_ns, last.min(low.end_ns), "ready"));
    holder.push((last, low.end_ns, "running"));
    vec![
        lane("urgent", high_priority, urgent),
        lane("spinner", middle_priority, spinner),
        lane("holder", low_priority, holder),
    ]
}

/// The stretches, and `ready` between them.
fn between<'s>(
    stretches: &[Stretch],
    from_ns: i64,
    to_ns: i64,
    state: impl Fn(i64) -> &'s str,
) -> Vec<(i64, i64, &'s str)> {
    let mut spans = Vec::new();
    let mut at = from_ns;
    for s in stretches {
        spans.push((at, s.from_ns, "ready"));
        spans.push((s.from_ns, s.to_ns, state(s.from_ns)));
        at = s.to_ns;
    }
    spans.push((at, to_ns, "ready"));
    spans
}
