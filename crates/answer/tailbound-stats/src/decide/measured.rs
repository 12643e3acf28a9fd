// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run tells of the machine that an application will be on: answers to the questions of the flow.
//!
//! Units: percent. A run of the lab tells nothing of that machine: its guest is virtual, idle and
//! empty by construction.

use tailbound_core::Run;
use tailbound_core::cpus::CpuSet;
use tailbound_core::number::Real as _;
use tailbound_core::record::Fact;

use super::flow::{AnswerEvidence, FlowAnswer};

/// Utilisation from here on is high: a queue is ten times as long as the work.
pub const HIGH_PERCENT: f64 = 90.0;
/// Memory of which less than this is left is full.
const LEFT_PERCENT: f64 = 10.0;
const LAB: &str = "not known: the runs are the lab's, whose guest is virtual, idle and empty";

fn value<'a>(run: &'a Run, name: &str) -> Option<&'a serde_json::Value> {
    match run.header.machine.get(name) {
        Some(Fact::Value(v)) => Some(v),
        _ => None,
    }
}

/// Is its utilisation high? Before the run began: what ran then is what else runs on the machine.
#[must_use]
pub fn utilisation_high(run: &Run) -> AnswerEvidence {
    if run.header.lab.is_some() {
        return AnswerEvidence::new(FlowAnswer::Unknown, LAB);
    }
    let average =
        value(run, "kernel.loadavg").and_then(|v| v.get(0)).and_then(serde_json::Value::as_f64);
    let cpus = value(run, "cpu.online")
        .and_then(|v| v.as_str()?.parse::<CpuSet>().ok())
        .map_or(0, |set| set.len());
    let (Some(average), true) = (average, cpus > 0) else {
        return AnswerEvidence::new(
            FlowAnswer::Unknown,
            "the run file lacks the load average of the machine",
        );
    };
    let share = average / cpus.real() * 100.0;
    let from = format!(
        "load average {average} on {cpus} CPUs before the measurement; --utilisation gives that of the application"
    );
    match share {
        s if s >= HIGH_PERCENT => AnswerEvidence::new(FlowAnswer::Yes, from),
        s if s <= HIGH_PERCENT / 2.0 => AnswerEvidence::new(FlowAnswer::No, from),
        _ => AnswerEvidence::new(FlowAnswer::Unknown, from),
    }
}

/// Is the memory full?
#[must_use]
pub fn memory_full(run: &Run) -> AnswerEvidence {
    if run.header.lab.is_some() {
        return AnswerEvidence::new(FlowAnswer::Unknown, LAB);
    }
    let kb = |name| value(run, name).and_then(serde_json::Value::as_f64);
    let (Some(left), Some(total)) =
        (kb("mem.available_kb"), kb("mem.total_kb").filter(|t| *t > 0.0))
    else {
        return AnswerEvidence::new(FlowAnswer::Unknown, "the run file lacks the available memory");
    };
    let percent = left / total * 100.0;
    let full = if percent < LEFT_PERCENT { FlowAnswer::Yes } else { FlowAnswer::No };
    AnswerEvidence::new(
        full,
        format!("{percent:.0} % of memory was available before the measurement"),
    )
}

/// Is it a guest?
#[must_use]
pub fn virtualised(run: &Run) -> AnswerEvidence {
    if run.header.lab.is_some() {
        return AnswerEvidence::new(FlowAnswer::Unknown, LAB);
    }
    match value(run, "virt.kind").and_then(|v| v.as_str()) {
        Some("none") => AnswerEvidence::new(FlowAnswer::No, "measured: no hypervisor"),
        Some(kind) => AnswerEvidence::new(FlowAnswer::Yes, format!("measured: a guest of {kind}")),
        None => AnswerEvidence::new(FlowAnswer::Unknown, "the run file lacks it"),
    }
}
