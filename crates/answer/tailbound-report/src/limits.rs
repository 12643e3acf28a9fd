// SPDX-License-Identifier: MIT OR Apache-2.0
//! What limits the figures of a run: all that its file holds of disturbances, of activations
//! without a wake-up, of lost data, of loads that stood still and of changes of the machine.
//!
//! A list that is empty says that nothing was found, so whatever else the report shows as
//! lost, missed, stolen or changed must be in it.
//! Not here: what to do about it (`digest::advice`), the findings in full.

use tailbound_core::pressure::{CpuPressure, OtherWork};
use tailbound_core::units::grouped;
use tailbound_core::{Finding, Impact, Run};
use tailbound_stats::Analysis;

use crate::changes::{self, FactChange};
use crate::{digest, label};

/// Notices that leave the figures standing, and yet say what they do not hold for.
const NOTICES: [&str; 20] = [
    "cgroup-quota",
    "clock-step",
    "frequency",
    "higher-priority",
    "idle-states",
    "kernel-debug-options",
    "kernel-log",
    "load-reduced",
    "load-stalled",
    "measured-beside",
    "no-load",
    "not-locked",
    "not-realtime-chosen",
    "observed",
    "rt-throttling",
    "smt-sibling",
    "steal-time",
    "thermal",
    "tracing-active",
    "virtual-machine",
];

/// Most sentences of one kind: the rest is counted, and stands in a section of its own.
const OF_A_KIND_MAX: usize = 4;

/// One limit.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit<'a> {
    /// Something noticed about the machine or the run.
    Finding(&'a Finding),
    /// Activations that no wake-up stands for.
    Missed {
        /// How many.
        missed: u64,
        /// Of how many that were due.
        due: u64,
    },
    /// Other work loaded the machine, of which the run has no record.
    OtherWork(CpuPressure),
    /// A load that did nothing for the time of one of its records.
    Still(String),
    /// Data that is missing or known only in part.
    Lost(String),
    /// A fact of the machine that changed during the run.
    Changed(FactChange<'a>),
    /// More of one kind than are shown here.
    More {
        /// How many.
        more: usize,
        /// Where they are.
        section: &'static str,
    },
}

impl Limit<'_> {
    /// A class of the style sheet.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::Finding(f) => label::impact_class(f.impact),
            Self::Missed { .. } | Self::Lost(_) | Self::Still(_) => "doubt",
            Self::OtherWork(_) | Self::Changed(_) | Self::More { .. } => "notice",
        }
    }

    /// Its kind in a word.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Self::Finding(f) => f.impact.as_str(),
            Self::Missed { .. } => "missed",
            Self::OtherWork(_) | Self::Still(_) => "load",
            Self::Lost(_) => "lost",
            Self::Changed(_) => "changed",
            Self::More { .. } => "more",
        }
    }

    /// What it is, in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Finding(f) => f.title.clone(),
            Self::Missed { missed, due } => format!(
                "{} of {} due activations {} missed: the thread still slept or ran when they fell due",
                grouped(*missed),
                grouped(*due),
                if *missed == 1 { "was" } else { "were" }
            ),
            Self::OtherWork(pressure) => pressure.other_work_sentence(),
            Self::Still(name) => {
                format!("Load {name} stood still for the whole time of at least one of its records")
            }
            Self::Lost(sentence) => sentence.clone(),
            Self::Changed(change) => format!(
                "{} changed during the run: {} → {}",
                change.name,
                change.before_text(),
                change.after.text()
            ),
            Self::More { more, section } => format!("{more} more under {section}"),
        }
    }
}

/// Everything that limits the figures, gravest first.
#[must_use]
pub fn of<'a>(analysis: &Analysis<'a>) -> Vec<Limit<'a>> {
    let run = analysis.run();
    let other_work = other_work(run);
    // Files of earlier versions say that nothing loaded the machine, whatever the pressure.
    let told = |f: &&Finding| is_limit(f) && (other_work.is_none() || f.id != "no-load");
    let mut out: Vec<Limit<'a>> =
        label::findings(run).into_iter().filter(told).map(Limit::Finding).collect();
    let (missed, due) = run.threads.iter().fold((0u64, 0u64), |(missed, due), t| {
        let all = due.saturating_add(t.wakeup.n).saturating_add(t.missed.n);
        (missed.saturating_add(t.missed.n), all)
    });
    if missed > 0 {
        out.push(Limit::Missed { missed, due });
    }
    out.extend(other_work.map(Limit::OtherWork));
    let still = analysis.loads().iter().filter(|l| l.least_per_s <= 0.0);
    some(&mut out, still.map(|l| Limit::Still(l.name.clone())).collect(), "Load achieved");
    let lost = digest::losses(run).into_iter().map(Limit::Lost).collect();
    some(&mut out, lost, "Lost, over range or incomplete data");
    let changed = changes::of(run).into_iter().filter(|c| !c.is_usual());
    some(&mut out, changed.map(Limit::Changed).collect(), "The machine");
    out
}

/// Findings that are no limit of their own; they are worth knowing.
#[must_use]
pub fn other_notices(run: &Run) -> usize {
    run.findings.iter().filter(|f| !is_limit(f)).count()
}

fn is_limit(f: &Finding) -> bool {
    f.impact > Impact::Notice || NOTICES.contains(&f.id.as_str())
}

/// Other work beside a run whose loads do not explain the pressure.
pub(crate) fn other_work(run: &Run) -> Option<CpuPressure> {
    // Who imported or watched it may have been busy by what was measured.
    if !run.header.plan.loads.is_empty() || run.header.source.is_some() {
        return None;
    }
    let pressure = CpuPressure::of(&run.header.machine, &run.after);
    (pressure.other_work() == OtherWork::Seen).then_some(pressure)
}

fn some<'a>(out: &mut Vec<Limit<'a>>, mut all: Vec<Limit<'a>>, section: &'static str) {
    let more = all.len().saturating_sub(OF_A_KIND_MAX);
    all.truncate(OF_A_KIND_MAX);
    out.append(&mut all);
    if more > 0 {
        out.push(Limit::More { more, section });
    }
}
