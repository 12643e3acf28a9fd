// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the run file says of the reason without any tracing: what comes with the latest seconds, and how regularly
//! exceedances come. A sentence each; none where nothing is shown.
//!
//! Not here: finding it (`tailbound_stats::{coincidence, period}`), who made single wake-ups late (`blame`).

use tailbound_core::recurring::RecurringKind;
use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_core::{Run, blame::Cause};
use tailbound_stats::Analysis;
use tailbound_stats::coincidence::{Amount, Coincidence, DisturbanceKind};
use tailbound_stats::period::of_run::{SamePeriod, ThreadPeriod};

use crate::label;

/// Most threads whose periods are told.
const PERIODS_MAX: usize = 2;

/// What is shown, the answer to "why" first.
#[must_use]
pub fn sentences(analysis: &Analysis<'_>) -> Vec<String> {
    let run = analysis.run();
    let coincidence = analysis.coincidence().map(|c| coincidence(run, c));
    coincidence.into_iter().chain(periods(run, analysis.periods())).collect()
}

/// The periods of exceedances, those that explain most first.
#[must_use]
pub fn periods(run: &Run, periods: &[ThreadPeriod]) -> Vec<String> {
    let mut out: Vec<String> = periods.iter().take(PERIODS_MAX).map(|p| period(run, p)).collect();
    match periods.len().saturating_sub(PERIODS_MAX) {
        0 => {}
        1 => out.push("One more thread has a period.".to_owned()),
        more => out.push(format!("{more} more threads have periods.")),
    }
    out
}

/// `In 6 of the 7 latest seconds the hypervisor had taken 10 to 20 ms from that CPU, in 3 % of the others as much.`
fn coincidence(run: &Run, c: &Coincidence) -> String {
    let judged = run.judged_context();
    let pinned = run.threads.iter().filter(|t| Some(t.context) == judged).all(|t| t.cpu.is_some());
    let place = if pinned { "that CPU" } else { "the CPUs" };
    let as_much = match c.kind {
        DisturbanceKind::Firmware => "as many",
        DisturbanceKind::Frequency => "as slowly",
        kind if is_a_wait(kind) => "as long",
        _ => "as much",
    };
    let others = match c.others {
        0.0 => format!("in none of the others {as_much}"),
        share if share < 0.01 => format!("in less than 1 % of the others {as_much}"),
        share => format!("in {:.0} % of the others {as_much}", share * 100.0),
    };
    let chance = if c.p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {:.3}", c.p) };
    let seconds = match c.cell_s {
        1 => "seconds".to_owned(),
        s => format!("windows of {s} s"),
    };
    let (count, latest, what) = (c.count, c.latest, what_came(c, place));
    format!(
        "In {count} of the {latest} latest {seconds} {what}, {others} (permutation test, {chance})."
    )
}

/// Does the amount say how long somebody waited?
fn is_a_wait(kind: DisturbanceKind) -> bool {
    matches!(
        kind,
        DisturbanceKind::IrqPressure
            | DisturbanceKind::MemoryPressure
            | DisturbanceKind::IoPressure
            | DisturbanceKind::CpuPressure
            | DisturbanceKind::Waited
    )
}

/// `the hypervisor had taken 10 to 20 ms from that CPU`
fn what_came(c: &Coincidence, place: &str) -> String {
    let amount = amount(&c.amount);
    match c.kind {
        DisturbanceKind::Steal => format!("the hypervisor had taken {amount} from {place}"),
        DisturbanceKind::Interrupt => format!("interrupts had taken {amount} from {place}"),
        DisturbanceKind::Softirq => format!("soft interrupts had taken {amount} from {place}"),
        DisturbanceKind::Firmware => match c.amount {
            Amount::Count { least: 1, most: 1 } => {
                "there was 1 firmware interrupt (SMI)".to_owned()
            }
            _ => format!("there were {amount} firmware interrupts (SMI)"),
        },
        DisturbanceKind::RanAbove => {
            let who = c.who.as_ref().map(|w| format!(", mostly {w}")).unwrap_or_default();
            format!("threads that come before it had run {amount} on {place}{who}")
        }
        DisturbanceKind::Quota => {
            format!("a CPU quota had stopped Tailbound's control group for {amount}")
        }
        DisturbanceKind::Frequency => format!("{place} ran at {amount}"),
        DisturbanceKind::IrqPressure => {
            format!("tasks had waited {amount} for interrupts to end")
        }
        DisturbanceKind::MemoryPressure => format!("tasks had waited {amount} for memory"),
        DisturbanceKind::IoPressure => format!("tasks had waited {amount} for a disk"),
        DisturbanceKind::CpuPressure => format!("tasks had waited {amount} for a CPU"),
        DisturbanceKind::Waited => {
            format!("the measured thread was ready and waited {amount} while others ran")
        }
        DisturbanceKind::Unknown(word) => format!("{} was {amount}", word.as_str()),
    }
}

/// `10.0 ms to 20.0 ms`
fn amount(amount: &Amount) -> String {
    let mhz = |khz: i64| format!("{} MHz", khz / 1000);
    let (least, most) = match *amount {
        Amount::Time { least_ns, most_ns } => (format_ns_i64(least_ns), format_ns_i64(most_ns)),
        Amount::Count { least, most } => (least.to_string(), most.to_string()),
        Amount::Frequency { least_khz, most_khz } => (mhz(least_khz), mhz(most_khz)),
    };
    if least == most { most } else { format!("{least} to {most}") }
}

/// `Late wake-ups on CPU 1 come every 500 ms ± 1 ms: 19 of 25 do.`
fn period(run: &Run, p: &ThreadPeriod) -> String {
    let what = run.header.plan.late_word();
    let name = p.name.clone().unwrap_or_else(|| label::thread_id(run, p.thread));
    let of = &p.period;
    let who = p.culprit.as_ref().map_or_else(String::new, |c| match (&c.cause, c.who.as_str()) {
        (Cause::Unexplained, _) => String::new(),
        (cause, who) => {
            format!("; of {} that were taken apart, {}: {}", c.of, c.count, cause.sentence(who))
        }
    });
    let same = match same(&p.same) {
        Some(names) => format!(" The same period: {names}."),
        None => String::new(),
    };
    format!(
        "{name}: the late {what}s come every {} ± {}, {} times (of {}){who}.{same}",
        format_ns_i64(of.period_ns),
        format_ns_i64(of.error_ns),
        grouped(of.count as u64),
        grouped(of.of as u64),
    )
}

/// `thread irq/9 (fifo:90); interrupt 24 (eth0)`
fn same(all: &[SamePeriod]) -> Option<String> {
    let names = all.iter().map(|s| match s.kind {
        RecurringKind::Thread => format!("thread {}", s.name),
        RecurringKind::Interrupt => format!("interrupt {}", s.name),
        RecurringKind::Setting | RecurringKind::Unknown(_) => s.name.clone(),
    });
    (!all.is_empty()).then(|| names.collect::<Vec<_>>().join("; "))
}
