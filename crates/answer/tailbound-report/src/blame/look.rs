// SPDX-License-Identifier: MIT OR Apache-2.0
//! What activities and phases are called, and how they look in pictures.
//!
//! Activities differ by height *and* by colour, so that neither colour-blind readers
//! nor black-and-white printers lose one; phases have their names beside them.

use tailbound_core::blame::{Activity, Phase};

/// What a CPU does, for people.
pub(super) fn meaning(activity: &Activity) -> &str {
    match activity {
        Activity::Idle => "idle",
        Activity::Thread => "thread",
        Activity::Target => "this thread",
        Activity::Work => "work queue function",
        Activity::Interrupt => "interrupt",
        Activity::Timer => "timer interrupt",
        Activity::Ipi => "interrupt from another CPU",
        Activity::Softirq => "soft interrupt",
        Activity::Nmi => "non-maskable interrupt",
        Activity::Spin => "spinning for a lock",
        Activity::Unknown(word) => word.as_str(),
    }
}

/// Meaning and name: `work queue function vmstat_update`.
pub(crate) fn named(activity: &Activity, who: &str) -> String {
    match who {
        "" => meaning(activity).to_owned(),
        who => format!("{}: {who}", meaning(activity)),
    }
}

/// How it is drawn: a variable of the style sheet for its colour, height as a share of the row.
pub(super) fn drawn(activity: Activity) -> (&'static str, f64) {
    match activity {
        Activity::Idle => ("c6", 0.1),
        Activity::Thread => ("c1", 0.5),
        Activity::Target => ("c0", 0.6),
        Activity::Work => ("c4", 0.5),
        Activity::Interrupt => ("c2", 0.84),
        Activity::Timer => ("c5", 0.74),
        Activity::Ipi => ("c3", 0.84),
        Activity::Softirq => ("c2", 0.64),
        Activity::Nmi => ("total", 0.9),
        Activity::Spin => ("bad", 0.4),
        Activity::Unknown(_) => ("c6", 0.5),
    }
}

/// The colour of a phase.
pub(super) fn colour(phase: Phase) -> &'static str {
    match phase {
        Phase::Timer => "c5",
        Phase::WakeUp => "c2",
        Phase::Switch | Phase::Preempted => "c1",
        Phase::Return | Phase::Running | Phase::Section => "c0",
        Phase::Blocked => "c3",
        Phase::Unknown(_) => "c6",
    }
}
