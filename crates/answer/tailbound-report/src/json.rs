// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report of a run for scripts.
//!
//! Units: ns, integers where they are exact.
//! Shape, schema `tailbound-report/1` (members are added, never renamed or removed):
//!
//! | member | what |
//! |---|---|
//! | `schema` | `tailbound-report/1` |
//! | `run` | `id`, `tool`, `started`, `command`, `measured_ns`, `ended` (`null`: cut off), `source` (`null`: measured by this tool), `purpose` (what persons stated: `title`, `operator`, `requirement`; `null`: nothing) |
//! | `verdict` | `outcome`, `exit_status`, `sentence`, `statements`, `due`, `beyond`, `beyond_unknown` |
//! | `threads` | a list: `name`, `thread`, `cpu`, `context`, `missed`, `wakeup` and `due` (summaries), `warm_up`, `counters`, `dropped`, `p2_approximate`, `ended` |
//! | `totals` | a list, one per context: `context`, `missed`, `wakeup`, `due` |
//! | `bound` | how late it can be: [`tailbound_stats::bound::Statement`]; `null` without threads |
//! | `findings` | a list, gravest first: `id`, `impact`, `title`, `meaning`, `remedy` |
//! | `loads` | a list: `name`, `unit`, `count`, `span_ns`, `rate_per_s`, `least_per_s` |
//! | `works` | a list: the repetitions of benchmarks, as in the run file |
//! | `figures` | a list: figures of the probe that are no latencies, as in the run file |
//! | `timelines` | a list: what some tasks did over a short time, as in the run file |
//! | `windows` | a list, one per thread and length: `thread`, `window_s`, `last` |
//! | `phases` | where the run changed: `method`, `found` (`second`, `figure`, `ratio`), or `why_not` |
//! | `periods` | a list: periods in which the exceedances of a thread come, [`tailbound_stats::period::of_run::ThreadPeriod`] |
//! | `coincidence` | what was taken of the CPU in the latest seconds: [`tailbound_stats::coincidence::Coincidence`]; else `null` |
//! | `next` | the command that is worth most now: `command`, `purpose` |
//! | `plan`, `machine`, `after`, `self_cost_ns`, `events` | as in the run file |
//! | `lost` | a list of sentences: what is missing from the figures |
//! | `rules` | rules for real-time programs that watched threads broke: [`crate::rules::json`]; else `null` |
//! | `cycles` | cycles of threads that were watched, where some were: [`crate::cycles::json`]; else `null` |
//! | `blame` | who made late wake-ups late, where some were taken apart: [`crate::blame::ranking`]; else `null` |
//! | `pulse_joins` | a list: the latest pulses from outside, taken apart by the run of who answered, as in the run file |
//! | `lab`, `virtual_time` | for a run of the lab, all that it is a function of and what its times are; else `null` |
//!
//! A summary is [`tailbound_stats::Summary`]; its `quantiles` are pairs of probability and
//! `{kind: value, ns, low_ns, high_ns}`, `{kind: needs, more}`, `{kind: at-least, ns}` or `{kind: unknown}`.
//! In those of `due`, `precision` has the half-width of every figure at 95 % confidence, or why there is none.
//! Not here: the run itself (the run file has every record).

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tailbound_core::Run;
use tailbound_core::blame::KernelKind;
use tailbound_core::record::{ThreadRecord, WindowRecord};
use tailbound_stats::Analysis;
use tailbound_stats::analysis::{Figures, Total};

use crate::next_step::NextStep;
use crate::{digest, label};

/// Version of the shape.
pub const SCHEMA: &str = "tailbound-report/1";

/// The report of a run.
#[must_use]
pub fn json(analysis: &Analysis<'_>) -> Value {
    let run = analysis.run();
    let header = &run.header;
    let outcome = analysis.outcome();
    let verdict = run.verdict.as_ref();
    json!({
        "schema": SCHEMA,
        "run": {
            "id": header.id,
            "tool": header.tool,
            "started": header.started,
            "command": header.command,
            "measured_ns": run.known_length_ns(),
            "ended": run.end.as_ref().map(|e| e.reason.as_str()),
            "source": header.source,
            "purpose": header.purpose,
        },
        "verdict": {
            "outcome": outcome,
            "exit_status": outcome.exit_status(),
            "sentence": label::sentence(run),
            "statements": verdict.map_or(&[][..], |v| &v.statements),
            "due": verdict.map(|v| v.due),
            "beyond": verdict.map(|v| v.beyond),
            "beyond_unknown": verdict.map(|v| v.beyond_unknown),
        },
        "threads": threads(analysis),
        "totals": totals(analysis),
        "bound": analysis.bound(),
        "findings": label::findings(run),
        "loads": analysis.loads(),
        "works": run.benchmarks,
        "figures": run.figures,
        "timelines": run.timelines,
        "windows": windows(run),
        "phases": crate::phases::json(analysis),
        "periods": analysis.periods(),
        "coincidence": analysis.coincidence(),
        "next": NextStep::of(analysis),
        "plan": header.plan,
        "machine": header.machine,
        "after": run.after,
        "self_cost_ns": run.self_cost,
        "events": run.events,
        "lost": digest::losses(run),
        "lab": header.lab,
        "virtual_time": digest::virtual_time(run),
        "rules": (!run.violations.is_empty()).then(|| crate::rules::json(&run.violations)),
        "cycles": (!run.cycles.is_empty()).then(|| crate::cycles::json(&run.cycles)),
        "paths": run.paths.as_deref().map(|p| crate::paths::json(p, crate::label::lab_kernel(run))),
        "pulse_joins": run.pulse_joins,
        "blame": (!run.blames.is_empty()).then(|| crate::blame::ranking(&run.blames, KernelKind::of_facts(&run.header.machine))),
    })
}

fn threads(analysis: &Analysis<'_>) -> Vec<Value> {
    let run = analysis.run();
    let one = |(t, figures): (&ThreadRecord, &Figures)| {
        json!({
            "name": label::thread(run, t),
            "thread": t.thread,
            "cpu": t.cpu,
            "context": t.context,
            "missed": t.missed.n,
            "wakeup": figures.wakeup,
            "due": figures.due,
            "warm_up": t.warm_up,
            "counters": t.counters,
            "dropped": t.dropped,
            "p2_approximate": t.p2,
            "ended": t.ended,
        })
    };
    run.threads.iter().zip(analysis.threads()).map(one).collect()
}

/// All threads of each context together.
pub(crate) fn totals(analysis: &Analysis<'_>) -> Vec<Value> {
    let one = |total: &Total| {
        json!({
            "context": total.context,
            "missed": total.figures.missed(),
            "wakeup": total.figures.wakeup,
            "due": total.figures.due,
        })
    };
    analysis.totals().iter().map(one).collect()
}

fn windows(run: &Run) -> Vec<Value> {
    let mut last: BTreeMap<(u32, u32), &WindowRecord> = BTreeMap::new();
    for w in &run.windows {
        let l = last.entry((w.thread, w.window_s)).or_insert(w);
        if w.second >= l.second {
            *l = w;
        }
    }
    last.iter()
        .map(|((thread, window_s), w)| json!({"thread": thread, "window_s": window_s, "last": w}))
        .collect()
}
