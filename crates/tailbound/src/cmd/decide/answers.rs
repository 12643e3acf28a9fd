// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answers to the questions of the flow: from flags, else from what was measured, else from
//! the person at the terminal.
//!
//! Context: COLD. A run of the lab tells nothing of the machine that the work will be on: its
//! guest is virtual, idle and empty by construction.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use tailbound_core::Run;
use tailbound_core::cpus::CpuSet;
use tailbound_core::record::Fact;
use tailbound_stats::decide::flow::{self, Answer, Answers, Known};

use super::sides::Given;
use crate::cli_decide::DecideArgs;
use crate::say::Failure;

/// Utilisation from here on is high: a queue is ten times as long as the work.
const HIGH_PERCENT: f64 = 90.0;
/// Memory of which less than this is left is full.
const LEFT_PERCENT: f64 = 10.0;
const LAB: &str = "not known: the runs are the lab's, whose guest is virtual, idle and empty";

/// What the flags and the runs answer.
pub(super) fn answers(args: &DecideArgs, given: &Given) -> Result<Answers, Failure> {
    let run = given.runs.first();
    let flag = |word: &Option<String>, or: Known| match word.as_deref() {
        Some("yes") => Known::new(Answer::Yes, "as given"),
        Some(_) => Known::new(Answer::No, "as given"),
        None => or,
    };
    let throughput = given.deadline.as_ref().map_or_else(Known::default, |d| {
        Known::new(Answer::No, format!("a deadline of {d} is required"))
    });
    let utilisation = match &args.utilisation {
        Some(text) => percent(text)?,
        None => run.map_or_else(Known::default, load),
    };
    Ok(Answers {
        throughput_only: flag(&args.throughput_only, throughput),
        utilisation_high: utilisation,
        barriers: flag(&args.barriers, Known::default()),
        memory_full: flag(&args.memory_full, run.map_or_else(Known::default, memory)),
        virtualised: flag(&args.virtualised, run.map_or_else(Known::default, guest)),
        long_items: Known::default(),
    })
}

fn percent(text: &str) -> Result<Known, Failure> {
    let number = text.trim().trim_end_matches('%').trim().parse::<f64>().ok();
    let percent = number.filter(|p| (0.0..=100.0).contains(p)).ok_or_else(|| {
        Failure::usage(format!("--utilisation {text}: write a percentage, for example 80%"))
    })?;
    let high = if percent >= HIGH_PERCENT { Answer::Yes } else { Answer::No };
    Ok(Known::new(high, format!("{percent} %, as given")))
}

fn value<'a>(run: &'a Run, name: &str) -> Option<&'a serde_json::Value> {
    match run.header.machine.get(name) {
        Some(Fact::Value(v)) => Some(v),
        _ => None,
    }
}

/// Before the run began: what ran then is what else runs on the machine.
fn load(run: &Run) -> Known {
    if run.header.lab.is_some() {
        return Known::new(Answer::Unknown, LAB);
    }
    let average =
        value(run, "kernel.loadavg").and_then(|v| v.get(0)).and_then(serde_json::Value::as_f64);
    let cpus = value(run, "cpu.online")
        .and_then(|v| v.as_str()?.parse::<CpuSet>().ok())
        .map_or(0, |set| set.len());
    let (Some(average), true) = (average, cpus > 0) else {
        return Known::new(Answer::Unknown, "the run file lacks the load average of the machine");
    };
    #[expect(clippy::cast_precision_loss, reason = "a number of CPUs")]
    let share = average / cpus as f64 * 100.0;
    let from = format!(
        "load average {average} on {cpus} CPUs before the measurement; --utilisation gives that of the application"
    );
    match share {
        s if s >= HIGH_PERCENT => Known::new(Answer::Yes, from),
        s if s <= HIGH_PERCENT / 2.0 => Known::new(Answer::No, from),
        _ => Known::new(Answer::Unknown, from),
    }
}

fn memory(run: &Run) -> Known {
    if run.header.lab.is_some() {
        return Known::new(Answer::Unknown, LAB);
    }
    let kb = |name| value(run, name).and_then(serde_json::Value::as_f64);
    let (Some(left), Some(total)) =
        (kb("mem.available_kb"), kb("mem.total_kb").filter(|t| *t > 0.0))
    else {
        return Known::new(Answer::Unknown, "the run file lacks the available memory");
    };
    let percent = left / total * 100.0;
    let full = if percent < LEFT_PERCENT { Answer::Yes } else { Answer::No };
    Known::new(full, format!("{percent:.0} % of memory was available before the measurement"))
}

fn guest(run: &Run) -> Known {
    if run.header.lab.is_some() {
        return Known::new(Answer::Unknown, LAB);
    }
    match value(run, "virt.kind").and_then(|v| v.as_str()) {
        Some("none") => Known::new(Answer::No, "measured: no hypervisor"),
        Some(kind) => Known::new(Answer::Yes, format!("measured: a guest of {kind}")),
        None => Known::new(Answer::Unknown, "the run file lacks it"),
    }
}

/// Asks the person at the terminal what is still unknown and on the way.
pub(super) fn request(
    args: &DecideArgs,
    mut answers: Answers,
    unit_ns: Option<f64>,
) -> Result<Answers, Failure> {
    let person = io::stdin().is_terminal() && io::stderr().is_terminal();
    if args.no_ask || args.json || args.svg.is_some() || !person {
        return Ok(answers);
    }
    let mut seen: Vec<&str> = Vec::new();
    if unit_ns.is_some() {
        // Answered by the length, later.
        seen.push("long-items");
    }
    loop {
        let path = flow::walk(&answers);
        let open = path
            .steps
            .iter()
            .find(|s| s.taken && s.known.answer == Answer::Unknown && !seen.contains(&s.id));
        let Some(step) = open else { return Ok(answers) };
        seen.push(step.id);
        let hint = if step.known.from.is_empty() {
            String::new()
        } else {
            format!(" ({})", step.known.from)
        };
        let mut err = io::stderr().lock();
        let shown = write!(err, "{}{hint} [y/n, Enter: not known] ", step.question);
        drop(shown.and_then(|()| err.flush()));
        drop(err);
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map_err(Failure::cannot)?;
        let answer = match line.trim().to_lowercase().as_str() {
            "y" | "yes" => Answer::Yes,
            "n" | "no" => Answer::No,
            _ => continue,
        };
        let known = Known::new(answer, "as answered");
        match step.id {
            "throughput-only" => answers.throughput_only = known,
            "utilisation-high" => answers.utilisation_high = known,
            "barriers" => answers.barriers = known,
            "memory-full" => answers.memory_full = known,
            "virtualised" => answers.virtualised = known,
            _ => answers.long_items = known,
        }
    }
}
