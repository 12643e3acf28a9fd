// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sections of one run's report, in the order a reader asks: is it good, why not, what
//! to do, what does it look like, and only then everything else.

use std::fmt::Write as _;

use tailbound_core::blame::KernelKind;
use tailbound_core::number::Real as _;
use tailbound_core::record::{Fact, Facts};
use tailbound_core::units::{format_ns, format_span, grouped};
use tailbound_core::{Outcome, Run};
use tailbound_stats::Analysis;
use tailbound_stats::bound::Extrapolation;

use super::page::Page;
use crate::escape::{repeat as repeat_words, xml};
use crate::next_step::NextStep;
use crate::site::{Subject, linked, marked};
use crate::svg::Unit;
use crate::table::Table;
use crate::{changes, digest, figures, label, limits, pictures, precision, reasons, unitless};

/// Everything about a run; `prefix` keeps names apart where several runs share a page.
pub(super) fn run(page: &mut Page, analysis: &Analysis<'_>, name: &str, prefix: &str) {
    let run = analysis.run();
    super::head::section(page, run, name);
    if run.header.plan.probe == "work" && run.threads.is_empty() {
        // Benchmarks alone: there is no latency to judge.
        crate::decide::benchmarks::section(page, run, prefix);
        findings(page, run);
        machine(page, run);
        return;
    }
    verdict(page, run);
    why(page, analysis, prefix);
    let pictures = pictures::of_run(analysis);
    let (first, later): (Vec<_>, Vec<_>) =
        pictures.into_iter().partition(|f| ["histogram", "survival", "early"].contains(&f.id));
    page.push("<section class=\"pair\">");
    first.iter().for_each(|f| page.figure(f, prefix));
    if first.is_empty() {
        page.text("note", "No picture of distributions: the run file holds none.");
    }
    page.push("</section>");
    crate::rules::section(page, &run.violations);
    crate::split::section(page, &run.pulse_joins);
    let kind = KernelKind::of_facts(&run.header.machine);
    crate::blame::section(page, &run.blames, kind, prefix);
    crate::cycles::section(page, &run.cycles, kind, prefix);
    let kernel = crate::label::lab_kernel(run);
    crate::paths::section(page, run.paths.as_deref(), kernel, prefix);
    if let Some(table) = crate::named::table(run) {
        page.heading("Figures of the probe");
        let table = table.html();
        page.push(&table);
    }
    let lanes = pictures::lanes(&run.timelines);
    if !lanes.is_empty() {
        page.heading("Task timeline");
        lanes.iter().for_each(|f| page.figure(f, prefix));
    }
    if run.timelines.len() > lanes.len() {
        let more = run.timelines.len() - lanes.len();
        page.text("note", &format!("{more} more timelines are in the run file."));
    }
    page.heading("Over time");
    later.iter().for_each(|f| page.figure(f, prefix));
    if later.is_empty() {
        page.text("note", "Unknown: the run file holds no records over time.");
    }
    let phases = crate::phases::sentences(analysis);
    match crate::phases::why_not(analysis) {
        Some(why) => {
            page.text("note", &format!("Whether it changed within the run is unknown: {why}."))
        }
        None if phases.is_empty() => {
            page.text("", "No change within the run was found (CUSUM of p50 and p99).")
        }
        None => page.list(&phases),
    }
    bound(page, analysis, prefix);
    statistics(page, analysis);
    windows(page, run);
    findings(page, run);
    loads(page, analysis);
    crate::decide::benchmarks::section(page, run, prefix);
    own_cost(page, run);
    page.heading("Warm-up, not judged");
    let lines = digest::warm_up(run);
    if lines.is_empty() {
        page.text("note", "Unknown: no thread left a record.");
    } else {
        page.list(&lines);
    }
    page.heading("Lost, over range or incomplete data");
    let lost = digest::losses(run);
    if lost.is_empty() {
        page.text("", "Nothing: every due activation is in the figures above.");
    } else {
        page.list(&lost);
    }
    machine(page, run);
    plan(page, run);
    repeat(page, run, name, prefix);
}

/// The bound on the latency beyond what was seen.
fn bound(page: &mut Page, analysis: &Analysis<'_>, prefix: &str) {
    let Some(statement) = analysis.bound() else { return };
    page.heading("Bound on the latency");
    if let Some(reason) = statement.unfit() {
        page.text("", &crate::bound::refused(reason));
        return;
    }
    let mut lines: Vec<String> = statement.free.iter().map(|l| l.sentence.clone()).collect();
    lines.extend(statement.free_missing.clone());
    lines.extend(statement.clustering.as_ref().map(|c| c.sentence.clone()));
    page.list(&lines);
    if let Some(figure) = pictures::returns(statement) {
        page.figure(&figure, prefix);
    }
    match &statement.extrapolation {
        Extrapolation::Bound(b) => {
            page.text("", &b.sentence);
            page.list(&crate::bound::bound_lines(b));
            if !b.warnings.is_empty() {
                page.list(&b.warnings);
            }
        }
        Extrapolation::Refused { reasons, modes, .. } => {
            page.text("", "No bound beyond what was seen is given:");
            page.push("<ul>");
            for r in reasons {
                let why = linked(Subject::NoBound, r.cause.id(), &r.sentence);
                let _ = write!(page.body, "<li>{why} {}</li>", xml(&r.remedy));
            }
            page.push("</ul>");
            let modes = crate::bound::mode_lines(modes);
            if let Some((first, rest)) = modes.split_first() {
                page.text("", first);
                page.list(
                    &rest.iter().map(|l| l.trim_start_matches("- ").to_owned()).collect::<Vec<_>>(),
                );
            }
        }
    }
    let rests: Vec<String> =
        statement.assumptions.iter().chain(&statement.discarded).cloned().collect();
    page.text("note", &rests.join(" "));
}

/// The verdict in a box, in words as well as in colour.
fn verdict(page: &mut Page, run: &Run) {
    let sign = match label::outcome(run) {
        Outcome::Met => "✓",
        Outcome::NotMet => "✗",
        Outcome::Measured => "●",
        Outcome::Unfit => "!",
        Outcome::Undecided | Outcome::Unknown(_) => "?",
    };
    verdict_after(page, sign, run);
}

/// The box itself, with `lead` (HTML) before its word, and how the run was made.
pub(super) fn verdict_after(page: &mut Page, lead: &str, run: &Run) {
    let outcome = label::outcome(run);
    let _ = write!(
        page.body,
        "<div class=\"verdict {}\"><span class=\"word\">{lead} {}</span><p>{}</p></div>",
        label::outcome_class(outcome),
        linked(Subject::Outcome, outcome.as_str(), outcome.word()),
        xml(&label::sentence(run))
    );
    page.text("soft", &digest::set_up(run));
    if let Some(words) = digest::virtual_time(run) {
        page.text("virtual", &words);
    }
}

fn why(page: &mut Page, analysis: &Analysis<'_>, prefix: &str) {
    let run = analysis.run();
    let (limits, advice) = (limits::of(analysis), digest::advice(run));
    page.push("<section class=\"why\"><div><h3>What limits these figures</h3>");
    if limits.is_empty() {
        page.text("", "Nothing that was looked for was found.");
    } else {
        page.push("<ul>");
        for l in &limits {
            let _ = write!(
                page.body,
                "<li><span class=\"tag {}\">{}</span>{}</li>",
                l.class(),
                xml(l.word()),
                xml(&l.sentence())
            );
        }
        page.push("</ul>");
    }
    match limits::other_notices(run) {
        0 => {}
        1 => page.text("soft", "One more notice is among the findings."),
        n => page.text("soft", &format!("{n} more notices are among the findings.")),
    }
    let reasons = reasons::sentences(analysis);
    if !reasons.is_empty() {
        page.push("<h3>What comes with late wake-ups</h3>");
        page.list(&reasons);
    }
    page.push("</div><div><h3>What to do</h3>");
    if advice.is_empty() {
        page.text("", "No advice follows from what was found.");
    } else {
        page.list(&advice.iter().take(4).map(|a| (*a).to_owned()).collect::<Vec<_>>());
        if advice.len() > 4 {
            page.text("soft", &format!("and {} more, below among the findings", advice.len() - 4));
        }
    }
    next_step(page, &NextStep::of(analysis), prefix);
    page.push("</div></section>");
    let shown = digest::shown(run);
    if !shown.is_empty() {
        page.push("<h3>What this run shows</h3>");
        page.list(&shown);
    }
}

fn statistics(page: &mut Page, analysis: &Analysis<'_>) {
    let run = analysis.run();
    page.heading("All figures");
    let missed: u64 = run.threads.iter().fold(0, |a, t| a.saturating_add(t.missed.n));
    let words = if missed > 0 {
        format!(
            "{} activations were missed: the thread still slept or ran when they fell due. The figures per wake-up \
             leave them out; those per due activation count each with the latency it \
             would have had.",
            grouped(missed)
        )
    } else {
        "No activation was missed: the figures per wake-up and per due activation are the same."
            .to_owned()
    };
    page.text("", &words);
    let table = figures::full(analysis);
    // Few threads: a column each, which paper and phones have room for.
    let table = if table.rows.len() <= 8 { table.transposed().html() } else { table.html() };
    page.push(&table);
    page.text(
        "note",
        "A quantile is given only where at least ten activations lie beyond it. Kurtosis is the excess over \
         that of a normal distribution. The mode is the middle of the densest bucket.",
    );
    if let Some(words) = precision::sentence(analysis) {
        let open = "open: too few activations lie beyond for a limit.";
        page.text("note", &format!("{words}. They are those of all due activations, by batch means and design effects; {open}"));
    }
    let mut counters = Table::new(&["", "counter", "value"]).with_words(&[1]);
    for t in &run.threads {
        for (k, v) in &t.counters {
            counters.row(vec![label::thread(run, t), k.clone(), grouped(*v)]);
        }
    }
    if !counters.rows.is_empty() {
        let table = counters.html();
        let _ = write!(
            page.body,
            "<details><summary>Counters of the measured threads</summary>{table}</details>"
        );
    }
}

fn windows(page: &mut Page, run: &Run) {
    page.heading("Moving windows");
    if run.windows.is_empty() {
        page.text("note", "Unknown: the run file holds no window records.");
        return;
    }
    page.text(
        "soft",
        "Figures of all due activations of a moving window: of the last window, and the worst of all windows (each figure's worst may be of another window).",
    );
    let table = pictures::window_table(run).html();
    page.push(&table);
    let unknown = pictures::maxima_unknown(run);
    if unknown > 0 {
        let windows = match unknown {
            1 => "1 window has".to_owned(),
            n => format!("{} windows have", grouped(n as u64)),
        };
        page.text(
            "note",
            &format!("{windows} no recorded maximum, because activations in them were missed. Their latest wake-up or highest figure stands in for it; \"or more\": the maximum may be higher."),
        );
    }
}

fn findings(page: &mut Page, run: &Run) {
    page.heading("Findings");
    let all = label::findings(run);
    if all.is_empty() {
        page.text("", "None.");
    }
    for f in all {
        let class = label::impact_class(f.impact);
        let impact = linked(Subject::Impact, f.impact.as_str(), f.impact.as_str());
        let id = marked(Subject::Finding, &f.id, &format!("<code>{}</code>", xml(&f.id)));
        let _ = write!(
            page.body,
            "<div class=\"finding {class}\"><p><span class=\"tag {class}\" title=\"{}\">{impact}</span>\
             <strong>{}</strong> {id}</p>",
            xml(label::impact_meaning(f.impact)),
            xml(&f.title)
        );
        if !f.meaning.is_empty() {
            page.text("", &f.meaning);
        }
        if !f.remedy.is_empty() {
            let _ = write!(page.body, "<p><strong>Do:</strong> {}</p>", xml(&f.remedy));
        }
        page.push("</div>");
    }
}

fn loads(page: &mut Page, analysis: &Analysis<'_>) {
    page.heading("Load achieved");
    let loads = analysis.loads();
    if loads.is_empty() {
        if analysis.run().header.plan.loads.is_empty() {
            page.text("note", "Not applicable: Tailbound started no load in this run.");
            if let Some(pressure) = limits::other_work(analysis.run()) {
                let words = pressure.words();
                page.text("note", &format!("But other work loaded the machine: {words}."));
            }
        } else {
            page.text("note", "Unknown: the loads left no record of their rates.");
        }
        return;
    }
    let mut table = Table::new(&["load", "mean rate", "least rate", "in all", "over"]);
    for l in loads {
        table.row(vec![
            l.name.clone(),
            format!("{} {}/s", Unit::Count.label(l.rate_per_s.round()), l.unit),
            format!("{} {}/s", Unit::Count.label(l.least_per_s.round()), l.unit),
            format!("{} {}", grouped(l.count), l.unit),
            format_span(l.span_ns),
        ]);
        table.naming(0, Subject::Load, &l.name);
    }
    let table = table.html();
    page.push(&table);
}

fn own_cost(page: &mut Page, run: &Run) {
    page.heading("Overhead of the measurement");
    if run.self_cost.is_empty() {
        page.text("note", "Unknown: not measured in this run.");
        return;
    }
    let mut table = Table::new(&["what", "cost"]);
    for (name, v) in &run.self_cost {
        // The unit is last in the name.
        let (what, text) = match name.strip_suffix("_ns") {
            Some(what) => (what, format_ns(*v)),
            None => (name.as_str(), unitless::unitless(Some(*v))),
        };
        table.row(vec![what.replace('_', " "), text]);
    }
    let table = table.html();
    page.push(&table);
}

fn facts_table(facts: &Facts) -> String {
    let mut table = Table::new(&["fact", "value"]).with_words(&[1]);
    for (name, fact) in facts {
        table.row(vec![name.clone(), fact.text()]);
    }
    format!("<div class=\"facts\">{}</div>", table.html())
}

fn machine(page: &mut Page, run: &Run) {
    page.heading("The machine");
    let facts = &run.header.machine;
    if facts.is_empty() {
        page.text("note", "Unknown: the run file contains no facts about the machine.");
        return;
    }
    let unknown = facts.values().filter(|f| matches!(f, Fact::Unknown(_))).count();
    let table = facts_table(facts);
    let _ = write!(
        page.body,
        "<details class=\"paper\"><summary>{} facts before the run, {unknown} of them unknown</summary>{table}</details>",
        facts.len()
    );
    if run.after.is_empty() {
        page.text("note", "After the run: unknown, not recorded.");
        return;
    }
    let changed = changes::of(run);
    if changed.is_empty() {
        page.text("", "No fact that was read again after the run had changed.");
        return;
    }
    page.push("<h3>Changed during the run</h3>");
    let mut table = Table::new(&["fact", "before", "after"]).with_words(&[1, 2]);
    for change in &changed {
        table.row(vec![change.name.to_owned(), change.before_text(), change.after.text()]);
    }
    let _ = write!(page.body, "<div class=\"facts\">{}</div>", table.html());
    let usual: Vec<&str> = changed.iter().filter(|c| c.is_usual()).map(|c| c.name).collect();
    if !usual.is_empty() {
        let words =
            format!("Changed in every run, or by Tailbound for itself: {}.", usual.join(", "));
        page.text("note", &words);
    }
}

fn plan(page: &mut Page, run: &Run) {
    page.heading("The plan");
    let p = &run.header.plan;
    let none = || "none".to_owned();
    let time = |v: Option<i64>| v.map_or_else(none, digest::exactly);
    let loads: Vec<String> = p.loads.iter().map(ToString::to_string).collect();
    let rows = [
        ("name", p.name.clone().unwrap_or_else(none)),
        ("probe", p.probe_words()),
        ("interval", p.interval_words()),
        ("activations of each thread", grouped(p.activations)),
        ("length", p.duration_words()),
        ("warm-up", format_span(p.warm_up_ns)),
        ("CPUs", if p.cpus.is_empty() { "not pinned".to_owned() } else { p.cpus.to_string() }),
        ("policy", p.policy.to_string()),
        ("clock", p.clock.to_string()),
        ("sleep by", p.means_words()),
        ("loads", if loads.is_empty() { none() } else { loads.join(", ") }),
        ("deadline", time(p.requirement.deadline_ns)),
        ("too early from", time(p.requirement.early_ns)),
        ("class", p.requirement.class.to_string()),
        ("acceptable rate", p.requirement.rate.map_or_else(none, |r| r.to_string())),
        (
            "confidence",
            format!("{} %", crate::svg::scale::trimmed(p.requirement.confidence * 100.0, 4)),
        ),
        (
            "/dev/cpu_dma_latency",
            p.cpu_dma_latency_us
                .map_or_else(|| "left alone".to_owned(), |v| format!("held at {v} µs")),
        ),
        (
            "profile for the time of the run",
            p.tune.as_ref().map_or_else(none, |t| format!("{} {}", t.name, t.rt_cpus)),
        ),
        ("raw samples kept", if p.raw { "yes" } else { "no" }.to_owned()),
        ("seccomp on measured threads", if p.paranoid { "yes" } else { "no" }.to_owned()),
    ];
    let mut table = Table::new(&["", "value"]).with_words(&[1]);
    for (name, value) in rows {
        table.row(vec![name.to_owned(), value]);
        if name == "probe" {
            table.naming(1, Subject::Probe, &p.probe);
        }
    }
    let table = table.html();
    let _ = write!(
        page.body,
        "<details class=\"paper\"><summary>What was asked for, with every default filled in</summary>\
         <div class=\"facts\">{table}</div></details>"
    );
    if !run.events.is_empty() {
        let mut table = Table::new(&["time", "event", "details"]).with_words(&[1, 2]);
        for e in &run.events {
            table.row(vec![
                format!("{:.3} s", e.t_ns.real() / 1e9),
                e.event.clone(),
                e.text.clone(),
            ]);
        }
        let table = table.html();
        let _ = write!(
            page.body,
            "<details><summary>Events of the run</summary><div class=\"facts\">{table}</div></details>"
        );
    }
}

/// The one command, which can be copied.
fn next_step(page: &mut Page, next: &NextStep, prefix: &str) {
    let _ = write!(
        page.body,
        "<p>Next: {}</p><pre id=\"{prefix}-next\">{}</pre><p><button hidden=\"hidden\" type=\"button\" \
         data-copy=\"{prefix}-next\">Copy</button></p>",
        xml(next.purpose),
        xml(&next.command)
    );
}

fn repeat(page: &mut Page, run: &Run, name: &str, prefix: &str) {
    page.heading("Repeat this run");
    if run.header.command.is_empty() {
        page.text("note", "Unknown: the run file has no command line.");
    } else {
        let _ = write!(
            page.body,
            "<pre id=\"{prefix}-command\">{}</pre><p><button hidden=\"hidden\" type=\"button\" \
             data-copy=\"{prefix}-command\">Copy</button></p>",
            xml(&repeat_words(&run.header.command))
        );
    }
    let origin = match &run.header.source {
        Some(s) => format!("Imported from {} ({}), file {}.", s.tool, s.format, s.file),
        None => format!("Measured by {}, begun {}.", run.header.tool, run.header.started),
    };
    page.text("soft", &format!("{origin} Run file {name}; identity {}.", run.header.id));
}
