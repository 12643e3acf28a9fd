// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verdict of a whole run, always made from its records: one that stands in a file is
//! compared with it and never believed.
//!
//! Units: ns. Threads whose records hold a requirement of their own (the start and the
//! completion of a program's own loop) are judged each by it, and the graver verdict is the run's.
//! Not here: the verdict of one context ([`mod@crate::verdict`]).

use tailbound_core::Run;
use tailbound_core::record::SecondRecord;
use tailbound_core::units::grouped;
use tailbound_core::{Finding, Impact, Outcome, Plan, Verdict};

use crate::verdict::verdict;

/// Findings about the file itself begin so: the verdict that the run wrote knew none of them.
const OF_THE_FILE: &str = "file-";

/// Judges `run` by its records; a verdict that stood in it and says something else is a finding.
pub fn judge(run: &mut Run) {
    let stored = run.verdict.take();
    let mut fresh = of(run, &run.findings);
    if let Some(stored) = stored
        && differ(&stored, &fresh)
        && differ(&stored, &of(run, &without_the_files(&run.findings)))
    {
        run.findings.retain(|f| f.id != "file-verdict");
        run.findings.push(finding(&stored, &fresh));
        fresh = of(run, &run.findings);
    }
    run.verdict = Some(fresh);
}

fn without_the_files(findings: &[Finding]) -> Vec<Finding> {
    findings.iter().filter(|f| !f.id.starts_with(OF_THE_FILE)).cloned().collect()
}

/// Another answer or other counts; the words may be those of another version.
fn differ(a: &Verdict, b: &Verdict) -> bool {
    let figures = |v: &Verdict| (v.outcome, v.due, v.beyond, v.beyond_unknown);
    figures(a) != figures(b)
}

fn finding(stored: &Verdict, fresh: &Verdict) -> Finding {
    let words = |v: &Verdict| {
        format!(
            "`{}` ({} of {} beyond, {} unknown)",
            v.outcome.word(),
            grouped(v.beyond),
            grouped(v.due),
            grouped(v.beyond_unknown)
        )
    };
    let title =
        format!("the verdict in the file is {}, its records give {}", words(stored), words(fresh));
    Finding::listed("file-verdict", Impact::Doubt, title)
}

/// The verdict that `run`'s records give beside `findings`.
fn of(run: &Run, findings: &[Finding]) -> Verdict {
    let ended = run.end_reason();
    let (plan, measured_ns) = (&run.header.plan, run.measured_ns());
    let all = run.threads.iter().filter(|t| t.requirement.is_some());
    let each = all.map(|t| {
        let mut plan: Plan = plan.clone();
        plan.requirement = t.requirement.as_deref().cloned().unwrap_or_default();
        let seconds: Vec<SecondRecord> =
            run.seconds.iter().filter(|s| s.thread == t.thread).cloned().collect();
        let threads = std::slice::from_ref(t);
        (t.context.as_str(), verdict(&plan, threads, &seconds, findings, ended, measured_ns))
    });
    gravest(each)
        .unwrap_or_else(|| verdict(plan, &run.threads, &run.seconds, findings, ended, measured_ns))
}

/// How grave a verdict is: the graver of two is the run's.
fn gravity(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Measured => 0,
        Outcome::Met => 1,
        Outcome::Undecided | Outcome::Unknown(_) => 2,
        Outcome::NotMet => 3,
        Outcome::Unfit => 4,
    }
}

/// Of several contexts: the graver verdict, of equal ones the outer (the last).
fn gravest<'a>(all: impl Iterator<Item = (&'a str, Verdict)>) -> Option<Verdict> {
    let all: Vec<(&str, Verdict)> = all.collect();
    let (context, mut gravest) = all.iter().max_by_key(|(_, v)| gravity(v.outcome)).cloned()?;
    gravest.sentence = about(&gravest.sentence, context);
    gravest.statements = all
        .into_iter()
        .flat_map(|(c, v)| {
            let own = (c != context).then(|| about(&v.sentence, c));
            own.into_iter().chain(v.statements.into_iter().map(move |s| format!("{c}: {s}")))
        })
        .collect();
    Some(gravest)
}

/// `Met: none of …` of one context: `Met: start: none of …`.
fn about(sentence: &str, context: &str) -> String {
    match sentence.split_once(": ") {
        Some((outcome, rest)) => format!("{outcome}: {context}: {rest}"),
        None => format!("{context}: {sentence}"),
    }
}
