// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run as test cases: what was required, of the whole and of each thread.
//!
//! A case passes only where the verdict is "met": what was not required is skipped, what
//! is not decided is an error. Not here: how a test framework writes it (`crate::cases`).

use tailbound_core::units::format_ns_i64;
use tailbound_core::{Impact, Outcome};
use tailbound_stats::Analysis;

use crate::cases::{Case, Status};
use crate::label;

/// The cases of a run: the whole first, then the threads, then what forbids to trust them.
pub(super) fn of(analysis: &Analysis<'_>) -> Vec<Case> {
    let run = analysis.run();
    let outcome = analysis.outcome();
    let sentence = label::sentence(run);
    let plan = &run.header.plan;
    let deadline = plan.requirement.deadline_ns;
    let name = match (&plan.property, deadline) {
        (Some(property), _) => format!("{}: {property}", plan.probe),
        (None, Some(d)) => {
            format!("{}: no {} later than {}", plan.probe, plan.late_word(), format_ns_i64(d))
        }
        (None, None) => format!("{}: measured", plan.probe),
    };
    let status = match outcome {
        Outcome::Met => Status::Pass,
        Outcome::NotMet | Outcome::Unfit => Status::Fail(sentence.clone()),
        Outcome::Measured => Status::Skip("nothing was required: no deadline was given".to_owned()),
        Outcome::Undecided | Outcome::Unknown(_) => Status::Undecided(sentence.clone()),
    };
    let mut all = vec![Case { name, status }];
    if let Some(deadline) = deadline {
        let figures = run.threads.iter().zip(analysis.threads());
        let judged = figures.filter(|(t, _)| Some(t.context) == run.judged_context());
        all.extend(judged.map(|(t, figures)| {
            let name = format!(
                "{}: {} within {}",
                plan.probe,
                label::thread(run, t),
                format_ns_i64(deadline)
            );
            let latest = figures.due.max_ns;
            let status = match latest {
                Some(max) if max > deadline => {
                    Status::Fail(format!("the latest was late by {}", format_ns_i64(max)))
                }
                Some(_) if outcome == Outcome::Met => Status::Pass,
                Some(max) => Status::Skip(format!(
                    "none seen later than {}; alone it decides nothing",
                    format_ns_i64(max)
                )),
                None if figures.due.n > 0 => {
                    Status::Undecided("the latest is not known: the source does not say".to_owned())
                }
                None => Status::Undecided("nothing was recorded".to_owned()),
            };
            Case { name, status }
        }));
    }
    for f in label::findings(run) {
        let status = match f.impact {
            Impact::Notice => continue,
            Impact::Violation | Impact::Unfit => Status::Fail(f.title.clone()),
            Impact::Doubt | Impact::Unknown(_) => Status::Undecided(f.title.clone()),
        };
        all.push(Case { name: format!("finding {}", f.id), status });
    }
    all
}
