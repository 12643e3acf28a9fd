// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answer of a search: figures before and after, sections that grew, commands that show it again.

use tailbound_lab::watching::{self, Depth};
use tailbound_lab::{Accelerator, LabError};
use tailbound_report::bisect::{Bisected, CulpritFound, Measurement};
use tailbound_report::paths::{Grown, grown};

use super::ends::{Measurements, value};
use super::meter::LabMeter;
use super::variants::{Unmade, Variants};
use super::way::Way;
use super::{BisectAnswer, BisectEnd};
use crate::bisect::{Arm, Journal, Limit, Measured, Meter, Step};
use crate::error::SearchError;

/// Names, whether nothing can be left out, the variant without it and the one with it.
type Culprit<T> = (Vec<String>, bool, T, T);

/// What a search found.
pub(super) struct Found<T> {
    pub(super) among: String,
    pub(super) culprits: Vec<Culprit<T>>,
    pub(super) rest_is_good: Option<bool>,
    /// What is known where it was interrupted.
    pub(super) left: String,
    pub(super) notes: Vec<String>,
}

/// All that the answer is made of.
pub(super) struct Answered<'a, T> {
    pub(super) way: &'a Way<'a>,
    pub(super) measurements: &'a Measurements,
    pub(super) limit: Limit,
    pub(super) limit_is_given: bool,
    pub(super) journal: &'a Journal,
    pub(super) recalled: usize,
    pub(super) found: Found<T>,
}

fn quoted(path: &std::path::Path) -> String {
    let text = path.display().to_string();
    shlex::try_quote(&text).map_or_else(|_| text.clone(), |quoted| quoted.into_owned())
}

impl<T: Clone> Answered<'_, T> {
    fn measurement(&self, step: &Step) -> Measurement {
        let (answer, note) = match &step.measured {
            Measured::ValueNs(ns) if self.limit.is_bad(*ns) => ("bad", step.note.clone()),
            Measured::ValueNs(_) => ("good", step.note.clone()),
            Measured::Unfit(why) => {
                ("skip", Some(why.lines().take(3).collect::<Vec<_>>().join(" ")))
            }
        };
        let value_ns = value(step);
        Measurement {
            title: step.title.clone().unwrap_or_else(|| step.key.clone()),
            value_ns,
            answer,
            is_near: value_ns.is_some_and(|ns| self.limit.is_near(ns)),
            note,
            run: step.run.clone(),
        }
    }

    fn bisected<V: Variants<T>>(&self, lab: &LabMeter<'_, V>) -> Bisected {
        let m = self.measurements;
        let is_end = |s: &&Step| {
            let ends = [&m.good, &m.bad];
            !ends.into_iter().chain(&m.controls).any(|end| end.key == s.key)
        };
        let at = |at: &T| {
            let step = self.journal.get(&lab.key(at, Arm::Itself));
            step.map_or_else(Measurement::default, |s| self.measurement(s))
        };
        let culprits = self.found.culprits.iter().map(|(members, is_exact, before, after)| {
            let (members, is_exact) = (members.clone(), *is_exact);
            CulpritFound { members, is_exact, before: at(before), after: at(after) }
        });
        Bisected {
            kind: self.way.kind,
            among: self.found.among.clone(),
            measure: lab.measure.title(),
            seeds: self.way.options.seeds,
            good: self.measurement(&m.good),
            bad: self.measurement(&m.bad),
            controls: m.controls.iter().map(|s| self.measurement(s)).collect(),
            limit_ns: self.limit.limit_ns,
            limit_is_given: self.limit_is_given,
            floor_ns: self.limit.floor_ns,
            steps: self
                .journal
                .steps()
                .iter()
                .filter(is_end)
                .map(|s| self.measurement(s))
                .collect(),
            recalled: self.recalled,
            culprits: culprits.collect(),
            rest_is_good: self.found.rest_is_good,
            notes: self.found.notes.clone(),
            ..Bisected::default()
        }
    }

    /// The answer, also where the search was interrupted.
    pub(super) fn tell<V: Variants<T>>(
        &self,
        lab: &mut LabMeter<'_, V>,
        ended: Result<(), SearchError>,
    ) -> Result<BisectAnswer, SearchError> {
        let mut answer = self.bisected(lab);
        let end = match ended {
            Err(e) if !e.is_cut_off() => return Err(e),
            Err(_) => {
                answer.left = Some(self.found.left.clone());
                answer.notes.push(format!(
                    "What was measured is kept in {}: the same command goes on.",
                    lab.folder.display()
                ));
                BisectEnd::Interrupted
            }
            Ok(()) => {
                answer.again = again(&answer, lab.folder);
                self.sections(lab, &mut answer);
                let exact = |c: &CulpritFound| c.is_exact;
                match answer.culprits.as_slice() {
                    [] => BisectEnd::Open,
                    culprits if culprits.iter().all(exact) => BisectEnd::Found,
                    _ => BisectEnd::Open,
                }
            }
        };
        Ok(BisectAnswer { answer, end })
    }

    /// Looks at the sections before and after the first culprit.
    fn sections<V: Variants<T>>(&self, lab: &mut LabMeter<'_, V>, answer: &mut Bisected) {
        let Some((_, _, before, after)) = self.found.culprits.first() else { return };
        if !self.way.options.has_sections {
            return;
        }
        match both(lab, before, after) {
            Ok(all) => answer.grown = all,
            Err(e) => answer.sections_unknown = Some(e.to_string()),
        }
    }
}

fn both<T, V: Variants<T>>(
    lab: &mut LabMeter<'_, V>,
    before: &T,
    after: &T,
) -> Result<Vec<Grown>, SearchError> {
    let mut records = Vec::new();
    let shown = lab.bench.tasks(2, Some(Depth::Sections.steps()));
    for (at, what) in [(before, "before"), (after, "after")] {
        shown.note(&format!("looking at the sections of the kernel {what}"));
        let mut request = lab.variants.request(at, Arm::Itself).map_err(|e| match e {
            Unmade::Failed(e) => e,
            Unmade::Unfit(why) => SearchError::Unfit { why },
        })?;
        tailbound_lab::paths::possible(
            request.arch()?,
            Accelerator::kvm_if(request.kvm),
            request.smp.unwrap_or(1),
        )?;
        tailbound_lab::paths::one_cpu("bisect", request.smp.unwrap_or(1))?;
        request.campaign.raw = Some(true);
        let cell = lab.cell(&request, 0)?.cell;
        let looked = watching::watch(lab.bench, lab.emulator, &cell, Depth::Sections, &*shown);
        records.push(looked?.record);
    }
    shown.clear();
    match records.as_slice() {
        [before, after] => Ok(grown(before, after).longer()),
        _ => Err(LabError::Bug.into()),
    }
}

/// Both sides of the first culprit: compared, and made again to the byte.
fn again(answer: &Bisected, folder: &std::path::Path) -> Vec<String> {
    let Some(first) = answer.culprits.first() else { return Vec::new() };
    let file = |m: &Measurement| m.run.as_ref().map(|name| quoted(&folder.join(name)));
    match (file(&first.before), file(&first.after)) {
        (Some(before), Some(after)) => vec![
            format!("tailbound compare {before} {after}"),
            format!("tailbound lab repeat {after}"),
        ],
        _ => Vec::new(),
    }
}
