// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bound on the latency beyond what was seen, for people and scripts: the lines that hold for
//! every distribution first, then the bound with all it comes from, or why there is none.
//!
//! Units: ns in, text out.
//! Not here: the statement and whether it shows the deadline (`tailbound_stats::bound`), its picture (`pictures`).

use serde_json::{Value, json};
use tailbound_core::number::Real as _;
use tailbound_core::requirement::Rate;
use tailbound_core::units::{format_ns, grouped};
use tailbound_stats::Analysis;
use tailbound_stats::bound::{Bound, Extrapolation, Reason, Statement, TailMode, outcome};

use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::{Page, outcome_ink};

/// The statement of one run for a terminal; `name` is the file's.
#[must_use]
pub fn text(statement: &Statement, name: &str, rate: Option<Rate>, style: Style) -> String {
    let mut page = Page::new(style);
    let (outcome, words) = outcome(statement, rate);
    page.text(&format!("{name}: {words}"), "  ", outcome_ink(outcome));
    if statement.unfit().is_some() {
        page.gap();
        statement.reasons().iter().for_each(|reason| refusal(&mut page, reason));
        return page.finish();
    }
    page.heading("For any distribution");
    free(&mut page, statement);
    page.heading("Bound beyond what was seen");
    match &statement.extrapolation {
        Extrapolation::Bound(b) => bound(&mut page, b),
        Extrapolation::Refused { reasons, modes, .. } => {
            page.text("No bound is given.", "  ", Ink::Warn);
            for reason in reasons {
                refusal(&mut page, reason);
            }
            for line in mode_lines(modes) {
                page.text(&line, "  ", Ink::Plain);
            }
        }
    }
    page.heading("Assumptions and tests");
    for line in statement.assumptions.iter().chain(&statement.discarded) {
        page.text(&format!("- {line}"), "  ", Ink::Dim);
    }
    let method = format!("- Method {}, seed {}.", statement.method, statement.settings.seed);
    page.text(&method, "  ", Ink::Dim);
    page.finish()
}

/// The same, short, as a section of a run's report.
pub(crate) fn section(page: &mut Page, analysis: &Analysis<'_>) {
    let Some(statement) = analysis.bound() else { return };
    page.heading("Bound on the latency");
    if let Some(reason) = statement.unfit() {
        page.text(&format!("- {}", refused(reason)), "  ", Ink::Plain);
        return;
    }
    free(page, statement);
    match &statement.extrapolation {
        Extrapolation::Bound(b) => bound(page, b),
        Extrapolation::Refused { reasons, modes, .. } => {
            if let Some(first) = reasons.first() {
                let more = reasons.len() - 1;
                let others = match more {
                    0 => String::new(),
                    1 => " `tailbound bound FILE` gives the other reason.".to_owned(),
                    n => format!(" `tailbound bound FILE` gives the other {n} reasons."),
                };
                let words = format!(
                    "- No bound beyond what was seen: {} Do: {}{others}",
                    first.sentence, first.remedy
                );
                page.text(&words, "  ", Ink::Plain);
            }
            if modes.len() > 1 {
                mode_lines(modes).iter().for_each(|l| page.text(l, "  ", Ink::Plain));
            }
        }
    }
}

/// Of figures that do not describe the machine there is neither rate nor bound.
pub(crate) fn refused(unfit: &Reason) -> String {
    format!("Neither rate nor bound is given. {} Do: {}", unfit.sentence, unfit.remedy)
}

fn free(page: &mut Page, statement: &Statement) {
    for line in &statement.free {
        page.text(&format!("- {}", line.sentence), "  ", Ink::Plain);
    }
    if let Some(why) = &statement.free_missing {
        page.text(&format!("- {why}"), "  ", Ink::Plain);
    }
    if let Some(c) = &statement.clustering {
        page.text(&format!("- {}", c.sentence), "  ", Ink::Plain);
    }
}

fn refusal(page: &mut Page, reason: &Reason) {
    page.text(&format!("- {}", reason.sentence), "  ", Ink::Plain);
    page.text(&format!("  Do: {}", reason.remedy), "      ", Ink::Plain);
}

fn bound(page: &mut Page, b: &Bound) {
    page.text(&format!("- {}", b.sentence), "  ", Ink::Bold);
    for line in bound_lines(b) {
        page.text(&format!("- {line}"), "  ", Ink::Plain);
    }
    for warning in &b.warnings {
        page.text(&format!("- {warning}"), "  ", Ink::Warn);
    }
}

/// All figures of a bound, a sentence each.
pub(crate) fn bound_lines(b: &Bound) -> Vec<String> {
    let limits = &b.limits;
    let higher = limits.higher.map_or_else(String::new, |h| {
        format!(", from the next higher thresholds {}", format_ns(h))
    });
    let few = limits.few.map_or_else(String::new, |f| {
        format!(", from the greatest few values alone {}", format_ns(f))
    });
    let mut out = vec![
        format!(
            "The bound is the greatest of: every shape {}, no credit for an end {}, exponential \
             {}{higher}{few}. Best value without a margin: {}.",
            format_ns(limits.free),
            format_ns(limits.no_end),
            format_ns(limits.exponential),
            format_ns(b.point_ns)
        ),
        format!(
            "Tail: {} of {} blocks of {} s, above {}; shape {:.3} ({}), at most {:.2} at 90 %; \
             scale {}; standard deviation over mean {:.2}; fit p = {}.",
            b.exceedances,
            grouped(b.blocks as u64),
            b.block_s,
            format_ns(b.threshold_ns),
            b.shape,
            b.shape_words,
            b.shape_upper,
            format_ns(b.scale_ns),
            b.variation,
            fit_p(b.fit_p)
        ),
        format!(
            "Tests passed at 1 %: Ljung–Box p = {:.3}, KPSS {:.3} (below 0.739), runs p = {:.3}, \
             ten slices p = {:.3}, periods p = {:.3}; exceedances in time: uniform p = {:.3}, \
             bursts p = {:.3}.",
            b.gate.ljung_box_p,
            b.gate.kpss,
            b.gate.runs_p,
            b.gate.slices_p,
            b.gate.period_p,
            b.spread.uniform_p,
            b.spread.dispersion_p
        ),
    ];
    if let Some(i) = &b.influence {
        out.push(format!(
            "Without the largest value the bound would be {} ({:+.0} %).",
            format_ns(i.bound_ns),
            -i.drop * 100.0
        ));
    }
    out
}

fn fit_p(p: f64) -> String {
    if p >= 0.75 { "more than 0.5".to_owned() } else { format!("{p:.2}") }
}

/// Where the great values lie.
pub(crate) fn mode_lines(modes: &[TailMode]) -> Vec<String> {
    if modes.is_empty() {
        return Vec::new();
    }
    let mut out = vec!["Clusters of the greatest values, likely of distinct causes:".to_owned()];
    out.extend(modes.iter().map(|m| {
        format!(
            "- {} to {}: {} ({})",
            format_ns(m.low_ns.real()),
            format_ns(m.high_ns.real()),
            if m.count == 1 { "one".to_owned() } else { grouped(m.count) },
            share(m.share)
        )
    }));
    out
}

fn share(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 0.01 { format!("{percent:.2} % of all") } else { format!("{share:.1e} of all") }
}

/// The statements of several runs for scripts, schema `tailbound-bound/1`: `runs`, a list of
/// `file`, `outcome`, `sentence`, `statement` (as [`Statement`]).
#[must_use]
pub fn json(statements: &[(String, Option<Rate>, Statement)]) -> Value {
    let one = |(name, rate, statement): &(String, Option<Rate>, Statement)| {
        let (outcome, sentence) = outcome(statement, *rate);
        json!({
            "file": name,
            "outcome": outcome,
            "exit_status": outcome.exit_status(),
            "sentence": sentence,
            "statement": statement,
        })
    };
    json!({"schema": "tailbound-bound/1", "runs": statements.iter().map(one).collect::<Vec<_>>()})
}
