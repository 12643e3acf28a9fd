// SPDX-License-Identifier: MIT OR Apache-2.0
//! Late wake-ups that nobody measured, taken apart.
//!
//! Units: ns.

use tailbound_core::blame::{
    Activity, BlameLane, BlamePart, BlameRecord, BlameSpan, Cause, Phase, Sureness,
};

pub(crate) fn span(from_ns: i64, to_ns: i64, activity: Activity, who: &str) -> BlameSpan {
    BlameSpan { from_ns, to_ns, activity, who: who.to_owned() }
}

pub(crate) fn part(phase: Phase, ns: i64, cause: Cause, who: &str) -> BlamePart {
    let (stack, holder) = (Vec::new(), String::new());
    BlamePart {
        phase,
        from_ns: 0,
        ns,
        cause,
        who: who.to_owned(),
        sureness: Sureness::Sure,
        stack,
        holder,
    }
}

/// A record of `parts`, one after the other.
pub(crate) fn record(t_ns: i64, cpu: u32, parts: Vec<BlamePart>) -> BlameRecord {
    let mut record = BlameRecord {
        thread: cpu,
        name: String::new(),
        t_ns,
        latency_ns: 0,
        cpu: Some(cpu),
        parts,
        chain: Vec::new(),
        lanes: Vec::new(),
        tracing_ns: 0,
        near: false,
        lost: false,
    };
    for p in &mut record.parts {
        p.from_ns = record.latency_ns;
        record.latency_ns += p.ns;
    }
    record
}

/// A work queue's function kept the CPU, a disk's interrupt came in between; the other CPU was idle.
pub(crate) fn work() -> BlameRecord {
    let worker = "kworker/1:0-41 vmstat_update";
    let mut late = record(
        12_345_000_000,
        1,
        vec![
            part(Phase::Timer, 60_000, Cause::InterruptsOff, "cc1-812"),
            part(Phase::WakeUp, 4_000, Cause::TimerInterrupt, ""),
            part(Phase::Switch, 1_700_000, Cause::Workqueue, worker),
            part(Phase::Switch, 41_000, Cause::Interrupt, "nvme0q1"),
            part(Phase::Switch, 500_000, Cause::Workqueue, worker),
            part(Phase::Switch, 3_000, Cause::WakeUp, ""),
            part(Phase::Return, 2_000, Cause::Own, ""),
        ],
    );
    late.chain = vec![
        "The timer fell due while cc1-812 had interrupts disabled.".to_owned(),
        "Then kworker/1:0-41 ran vmstat_update, which cannot be preempted here.".to_owned(),
    ];
    late.lanes = vec![
        BlameLane {
            cpu: 0,
            spans: vec![
                span(-200_000, 900_000, Activity::Idle, ""),
                span(900_000, 2_310_000, Activity::Thread, "cc1-900"),
                span(1_000_000, 1_400_000, Activity::Spin, "rq->lock"),
            ],
        },
        BlameLane {
            cpu: 1,
            spans: vec![
                span(-300_000, 64_000, Activity::Thread, "cc1-812"),
                span(60_000, 64_000, Activity::Timer, ""),
                span(64_000, 2_305_000, Activity::Work, worker),
                span(1_764_000, 1_805_000, Activity::Interrupt, "nvme0q1"),
                span(2_308_000, 2_310_000, Activity::Target, "cyclic-9"),
            ],
        },
    ];
    late.tracing_ns = 21_000;
    late
}

/// Another worker with the same function, shorter; an idle state, likely; events lost.
pub(crate) fn others() -> Vec<BlameRecord> {
    let worker = "kworker/1:2-77 vmstat_update";
    let again = record(
        20_000_000_000,
        1,
        vec![
            part(Phase::WakeUp, 3_000, Cause::TimerInterrupt, ""),
            part(Phase::Switch, 310_000, Cause::Workqueue, worker),
            part(Phase::Return, 4_000, Cause::Own, ""),
        ],
    );
    let mut idle = record(
        31_000_500_000,
        1,
        vec![
            part(Phase::Timer, 180_000, Cause::IdleExit, "C6"),
            part(Phase::Switch, 6_000, Cause::WakeUp, ""),
        ],
    );
    idle.parts[0].sureness = Sureness::Likely;
    idle.lost = true;
    vec![again, idle]
}

pub(crate) fn all() -> Vec<BlameRecord> {
    let mut all = others();
    all.push(work());
    all
}
