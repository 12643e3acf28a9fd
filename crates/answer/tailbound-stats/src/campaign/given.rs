// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a campaign is judged from: its file, and of each system one place per run.
//!
//! Units: shares of 1. Not here: where the runs come from (`tailbound-series`).

use tailbound_core::EndReason;
use tailbound_core::Run;
use tailbound_core::campaign::{CampaignFile, Kind, Part};
use tailbound_core::number::Real as _;
use tailbound_core::plan::Means;
use tailbound_core::record::Fact;

/// What became of one run.
#[derive(Clone, Debug)]
pub enum State {
    /// It came to its end.
    Complete(Box<Run>),
    /// It did not, and how: what it holds is shown and labelled.
    Cut(Box<Run>, String),
    /// It was tried in vain, and why.
    Failed(String),
    /// Not yet.
    NotRun,
    /// It cannot be on this system, and why.
    NotHere(String),
}

/// One run of one system.
#[derive(Clone, Debug)]
pub struct CampaignRun {
    /// The part's name.
    pub part: String,
    /// What became of it.
    pub state: State,
    /// Its run file, relative to the page.
    pub file: Option<String>,
    /// Its own report, relative to the page.
    pub report: Option<String>,
}

impl CampaignRun {
    /// Its run, whole or cut off.
    #[must_use]
    pub fn run(&self) -> Option<&Run> {
        match &self.state {
            State::Complete(run) | State::Cut(run, _) => Some(run),
            _ => None,
        }
    }

    /// In a few words.
    #[must_use]
    pub fn words(&self) -> String {
        match &self.state {
            State::Complete(_) => "complete".to_owned(),
            State::Cut(_, why) => format!("not complete: {why}"),
            State::Failed(why) => format!("failed: {why}"),
            State::NotRun => "not run yet".to_owned(),
            State::NotHere(why) => format!("not applicable: {why}"),
        }
    }
}

/// A measured system.
#[derive(Clone, Debug)]
pub struct CampaignSystem {
    /// What people call it.
    pub name: String,
    /// Which systems of the publication it is compared with.
    pub kind: Kind,
    /// A place for each part of the campaign, in their order.
    pub places: Vec<CampaignRun>,
}

impl CampaignSystem {
    /// The system that `places` tell of; `folder` names it where nothing else does.
    #[must_use]
    pub fn of(folder: &str, places: Vec<CampaignRun>) -> Self {
        let first = places.iter().find_map(CampaignRun::run);
        let name = first.map_or_else(|| folder.to_owned(), |run| name(run, folder));
        Self { name, kind: first.map_or(Kind::Other, kind), places }
    }

    /// The place of `part`.
    #[must_use]
    pub fn place(&self, part: &str) -> Option<&CampaignRun> {
        self.places.iter().find(|p| p.part == part)
    }
}

/// Everything a page shows.
#[derive(Clone, Debug)]
pub struct CampaignEvidence {
    /// The campaign.
    pub file: CampaignFile,
    /// Its parts, in order.
    pub parts: Vec<Part>,
    /// What was measured.
    pub systems: Vec<CampaignSystem>,
}

impl CampaignEvidence {
    /// The campaign with what was measured; systems of one name get their folder's beside it.
    #[must_use]
    pub fn of(file: CampaignFile, folders: Vec<(String, CampaignSystem)>) -> Self {
        let names: Vec<String> = folders.iter().map(|(_, m)| m.name.clone()).collect();
        let systems = folders.into_iter().map(|(folder, m)| {
            let twice = names.iter().filter(|n| **n == m.name).count() > 1;
            let name = if twice { format!("{} ({folder})", m.name) } else { m.name };
            CampaignSystem { name, ..m }
        });
        let systems = systems.collect();
        Self { parts: file.parts(), file, systems }
    }

    /// Measured systems of `kind`.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &CampaignSystem> {
        self.systems.iter().filter(move |s| s.kind == kind && kind != Kind::Other)
    }

    /// Did every part of every system come to its end that can be there?
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let ended = |p: &CampaignRun| matches!(p.state, State::Complete(_) | State::NotHere(_));
        !self.systems.is_empty() && self.systems.iter().flat_map(|s| &s.places).all(ended)
    }

    /// Did a part fail?
    #[must_use]
    pub fn has_failed(&self) -> bool {
        let failed = |p: &CampaignRun| matches!(p.state, State::Failed(_));
        self.systems.iter().flat_map(|s| &s.places).any(failed)
    }
}

/// Which share of the activations of `part` the run holds; 1 where nothing is missing, or where
/// it has none to count.
#[must_use]
pub fn share(part: &Part, run: &Run) -> f64 {
    let words = if run.header.lab.is_some() { &part.lab } else { &part.run };
    let plan = &run.header.plan;
    let full = words.loops.or_else(|| {
        let ns = tailbound_core::units::parse_ns(words.duration.as_deref()?).ok()?;
        u64::try_from(ns / plan.interval()?).ok()
    });
    let Some(full) = full.filter(|n| *n > 0 && !part.only_work) else { return 1.0 };
    let threads = run
        .judged_context()
        .map_or(0, |c| run.threads.iter().filter(|t| t.context == c).count())
        .max(1);
    let made = match run.end_reason() {
        // The publication's own rule ended it: it is what the publication asks for.
        EndReason::Rule if words.until.is_some() => return 1.0,
        EndReason::Complete => plan.activations.real(),
        _ => run.judged_total().1.n.real() / threads.real(),
    };
    (made / full.real()).min(1.0)
}

fn fact<'a>(run: &'a Run, name: &str) -> Option<&'a str> {
    run.header.machine.get(name).and_then(Fact::as_str)
}

/// Which kind of system made `run`.
fn kind(run: &Run) -> Kind {
    match run.header.plan.means {
        Means::Cobalt => return Kind::Cobalt,
        Means::Evl => return Kind::Evl,
        _ => {}
    }
    let rt = match fact(run, "kernel.preempt") {
        Some(word) => word == "rt",
        None => fact(run, "kernel.version").is_some_and(|v| v.contains("PREEMPT_RT")),
    };
    if rt { Kind::PreemptRt } else { Kind::Stock }
}

/// What people call the system of `run`.
fn name(run: &Run, folder: &str) -> String {
    if let Some(lab) = &run.header.lab {
        return format!("{} (lab)", lab.kernel.name);
    }
    let release = fact(run, "kernel.release").unwrap_or(folder);
    match fact(run, "kernel.preempt") {
        Some("rt") => format!("{release} (PREEMPT_RT)"),
        Some(word) => format!("{release} (preempt {word})"),
        None => release.to_owned(),
    }
}
