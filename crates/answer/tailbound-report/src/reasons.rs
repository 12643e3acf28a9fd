// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the run file says of the reason without any tracing: what comes with the latest seconds, and how regularly
//! exceedances come. A sentence each; none where nothing is shown.
//!
//! Not here: finding it (`tailbound_stats::{coincidence, period}`), who made single wake-ups late (`blame`).

use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_core::{Run, blame::Cause};
use tailbound_stats::Analysis;
use tailbound_stats::coincidence::{Coincidence, DisturbanceKind};
use tailbound_stats::period::of_run::ThreadPeriod;

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
    let who = match c.kind {
        DisturbanceKind::Steal => "the hypervisor",
        DisturbanceKind::Interrupt => "interrupts",
        DisturbanceKind::Softirq => "soft interrupts",
    };
    let amount = if c.least_ns == c.most_ns {
        format_ns_i64(c.least_ns)
    } else {
        format!("{} to {}", format_ns_i64(c.least_ns), format_ns_i64(c.most_ns))
    };
    let judged = run.judged_context();
    let pinned = run.threads.iter().filter(|t| Some(t.context) == judged).all(|t| t.cpu.is_some());
    let place = if pinned { "that CPU" } else { "the CPUs" };
    let others = match c.others {
        0.0 => "in none of the others as much".to_owned(),
        share if share < 0.01 => "in less than 1 % of the others as much".to_owned(),
        share => format!("in {:.0} % of the others as much", share * 100.0),
    };
    let chance = if c.p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {:.3}", c.p) };
    let (count, latest) = (c.count, c.latest);
    format!(
        "In {count} of the {latest} latest seconds {who} had taken {amount} from {place}, {others} (permutation test, {chance})."
    )
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
    format!(
        "{name}: the late {what}s come every {} ± {}, {} times (of {}){who}.",
        format_ns_i64(of.period_ns),
        format_ns_i64(of.error_ns),
        grouped(of.count as u64),
        grouped(of.of as u64),
    )
}
