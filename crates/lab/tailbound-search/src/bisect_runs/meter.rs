// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variants measured in the lab, all seeds of all of them side by side, and kept in the journal as each is done.

use std::collections::BTreeSet;
use std::path::Path;

use tailbound_core::Run;
use tailbound_core::units::format_ns_i64;
use tailbound_lab::matrix::RunReader;
use tailbound_lab::watching::{self, Depth};
use tailbound_lab::{Bench, Emulator, LabError, Labelled, Request, hash, keep, repeat};
use tailbound_sys::new_file::Existing;

use super::BisectOptions;
use super::measure::Measure;
use super::variants::{Unmade, Variants};
use super::{file_names, folder};
use crate::bisect::{Arm, Journal, Limit, Measured, Meter, Step};
use crate::error::SearchError;

/// The lab, as a search asks it.
pub(super) struct LabMeter<'a, V> {
    pub(super) bench: &'a Bench<'a>,
    pub(super) emulator: &'a Emulator,
    pub(super) options: &'a BisectOptions,
    pub(super) read: &'a RunReader<'a>,
    pub(super) measure: Measure,
    pub(super) folder: &'a Path,
    pub(super) variants: V,
    /// Once both ends are known.
    pub(super) limit: Option<Limit>,
    /// Variants that it takes, as far as can be told.
    pub(super) about: usize,
    /// Keys of the steps whose run is one of their variant.
    pub(super) believed: BTreeSet<String>,
}

/// A variant while its seeds are measured.
struct Open {
    key: String,
    title: String,
    /// Seeds that are not done.
    left: u32,
    /// The latest so far.
    worst: Option<(i64, Run, Vec<u8>)>,
    unfit: Option<String>,
    note: Option<String>,
}

/// How often a cell is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    First,
    Last,
}

/// The one cell that a request comes to.
pub(super) fn single(mut all: Vec<Labelled>) -> Result<Labelled, SearchError> {
    match (all.pop(), all.is_empty()) {
        (Some(one), true) => Ok(one),
        _ => Err(SearchError::Several),
    }
}

impl<V> LabMeter<'_, V> {
    /// What the figure takes of a run.
    fn measured_as(&self, request: &mut Request) {
        if self.measure == Measure::Section {
            request.campaign.raw = Some(true);
        }
    }

    /// Is the run of a step what would be made for `request`, with one of the seeds?
    fn same(&self, request: &Request, step: &Step) -> Result<(), SearchError> {
        let Some(name) = &step.run else { return Ok(()) };
        let path = self.folder.join(name);
        let run = (self.read)(&path)?;
        let mut why = vec!["it was not made in the lab".to_owned()];
        for more in 0..self.options.seeds {
            let Some(there) = run.header.lab.as_deref() else { break };
            let wanted = self.cell(request, more)?.cell.prepare(self.emulator)?.record;
            if *there == wanted {
                return Ok(());
            }
            if more == 0 {
                why = repeat::differences(there, &wanted);
            }
        }
        if why.is_empty() {
            why.push("its seed, its job or its machine is another".to_owned());
        }
        let title = step.title.clone().unwrap_or_else(|| step.key.clone());
        Err(SearchError::OtherStep { path, title, differing: why })
    }

    /// The cell of a request with a seed `more` behind the first.
    pub(super) fn cell(&self, request: &Request, more: u32) -> Result<Labelled, SearchError> {
        let mut request = request.clone();
        request.seed = Some(request.seed.unwrap_or(1).saturating_add(more));
        single(request.cells(&mut |name, arch| self.bench.obtain(name, arch))?)
    }

    /// What would fail for any variant just now.
    fn host_failed(&self, title: &str, source: LabError) -> SearchError {
        let (title, folder) = (title.to_owned(), self.folder.to_owned());
        SearchError::HostFailed { title, folder, source: Box::new(source) }
    }

    /// Adds a step to the journal and its file, and says it.
    fn keep(&self, step: Step, journal: &mut Journal) -> Result<String, SearchError> {
        let answer = match (&step.measured, self.limit) {
            (Measured::ValueNs(ns), Some(limit)) => {
                let word = if limit.is_bad(*ns) { "bad" } else { "good" };
                format!("{}, {word}", format_ns_i64(*ns))
            }
            (Measured::ValueNs(ns), None) => format_ns_i64(*ns),
            (Measured::Unfit(why), _) => {
                format!("passed over: {}", why.lines().next().unwrap_or_default())
            }
        };
        let title = step.title.clone().unwrap_or_else(|| step.key.clone());
        journal.add(step);
        folder::keep(self.folder, journal)?;
        let n = journal.steps().len();
        Ok(format!("{n} of about {}: {title}: {answer}", self.about.max(n)))
    }

    /// A variant with all its seeds; its run file is that of the worst one.
    fn done(&self, open: Open, journal: &mut Journal) -> Result<String, SearchError> {
        let mut step = Step {
            key: open.key,
            title: Some(open.title),
            measured: Measured::Unfit("it did not measure".to_owned()),
            run: None,
            run_sha256: None,
            note: open.note,
        };
        match (open.unfit, open.worst) {
            (Some(why), _) => step.measured = Measured::Unfit(why),
            (None, Some((ns, made, console))) => {
                let name = file_names::run_name(journal);
                let path = self.folder.join(&name);
                keep(&path, &made, &console, Existing::Replace)?;
                step.measured = Measured::ValueNs(ns);
                step.run_sha256 = Some(hash::of_file(&path)?);
                step.run = Some(name);
            }
            (None, None) => {}
        }
        self.keep(step, journal)
    }

    /// All cells side by side. What takes part in the answer is the greatest figure of the seeds. What a guest does is the
    /// same each time, so that one without a figure is made once more: twice without one it is the variant's doing.
    fn runs(
        &self,
        mut open: Vec<Open>,
        mut cells: Vec<(usize, Labelled)>,
        journal: &mut Journal,
    ) -> Result<(), SearchError> {
        for attempt in [Attempt::First, Attempt::Last] {
            let all: Vec<_> = cells.iter().map(|(_, l)| l.cell.clone()).collect();
            let (mut broken, mut again) = (None, BTreeSet::new());
            let made = self.bench.make(&all, self.emulator, &mut |nth, made| {
                let Some(at) = cells.get(nth).map(|(at, _)| *at) else { return String::new() };
                let Some(one) = open.get_mut(at) else { return String::new() };
                match made {
                    Err(LabError::Interrupted) => return "interrupted".to_owned(),
                    Err(e) if !e.is_of_kernel() => {
                        let failed = format!("{}: failed", one.title);
                        broken.get_or_insert_with(|| self.host_failed(&one.title, e));
                        return failed;
                    }
                    Err(e) if attempt == Attempt::First => {
                        again.insert(nth);
                        let why = e.to_string();
                        let first = why.lines().next().unwrap_or_default();
                        return format!("{}: {first}; it is booted once more", one.title);
                    }
                    Err(e) => one.unfit = Some(e.to_string()),
                    Ok(made) => match self.measure.of_run(&made.run) {
                        Ok(ns) if one.worst.as_ref().is_some_and(|(worst, ..)| *worst >= ns) => {}
                        Ok(ns) => one.worst = Some((ns, made.run, made.console)),
                        Err(why) => {
                            let why = why.to_string();
                            broken.get_or_insert(SearchError::Figure { why });
                        }
                    },
                }
                one.left = one.left.saturating_sub(1);
                if one.left > 0 {
                    return format!("{}: {} more seeds", one.title, one.left);
                }
                let whole = Open {
                    key: one.key.clone(),
                    title: one.title.clone(),
                    left: 0,
                    worst: one.worst.take(),
                    unfit: one.unfit.take(),
                    note: one.note.take(),
                };
                // A signal ends guests as a failure of theirs would look.
                if self.bench.stopped() {
                    return "interrupted".to_owned();
                }
                self.done(whole, journal).unwrap_or_else(|e| {
                    let text = e.to_string();
                    broken.get_or_insert(e);
                    text
                })
            });
            broken.map_or(Ok(()), Err)?;
            made?;
            let mut nth = 0..;
            cells.retain(|_| nth.next().is_some_and(|nth| again.contains(&nth)));
            if cells.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// One after the other, watched from within QEMU.
    fn sections(
        &self,
        open: Vec<Open>,
        cells: &[(usize, Labelled)],
        journal: &mut Journal,
    ) -> Result<(), SearchError> {
        let shown = self.bench.tasks(cells.len(), Some(Depth::Sections.steps()));
        for (at, mut one) in open.into_iter().enumerate() {
            for (_, labelled) in cells.iter().filter(|(of, _)| *of == at) {
                let watch = || {
                    let depth = Depth::Sections;
                    watching::watch(self.bench, self.emulator, &labelled.cell, depth, &*shown)
                };
                // As [`Self::runs`].
                let looked = match watch() {
                    Err(e) if e.is_of_kernel() && !self.bench.stopped() => watch(),
                    looked => looked,
                };
                if self.bench.stopped() {
                    return Err(LabError::Interrupted.into());
                }
                let l = match looked {
                    Ok(l) => l,
                    Err(e) if !e.is_of_kernel() => return Err(self.host_failed(&one.title, e)),
                    Err(e) => {
                        one.unfit = Some(e.to_string());
                        continue;
                    }
                };
                match Measure::of_paths(&l.record) {
                    Ok(ns) if one.worst.as_ref().is_some_and(|(worst, ..)| *worst >= ns) => {}
                    Ok(ns) => {
                        let mut made = l.plain.run;
                        // The figure stands in the file that it is of.
                        made.paths = Some(Box::new(l.record));
                        one.worst = Some((ns, made, Vec::new()));
                    }
                    Err(why) => one.unfit = Some(why.to_string()),
                }
            }
            let note = self.done(one, journal)?;
            shown.note(&note);
        }
        shown.clear();
        Ok(())
    }
}

impl<T, V: Variants<T>> Meter<T> for LabMeter<'_, V> {
    type Error = SearchError;

    fn key(&self, at: &T, arm: Arm) -> String {
        self.variants.key(at, arm)
    }

    fn measure(&mut self, variants: &[(T, Arm)], journal: &mut Journal) -> Result<(), SearchError> {
        let (mut open, mut cells) = (Vec::new(), Vec::new());
        for (at, arm) in variants {
            let key = self.variants.key(at, *arm);
            let title = self.variants.title(at, *arm);
            let mut request = match self.variants.request(at, *arm) {
                Ok(request) => request,
                Err(Unmade::Failed(failure)) => return Err(failure),
                Err(Unmade::Unfit(why)) => {
                    let measured = Measured::Unfit(why);
                    let step = Step {
                        key,
                        title: Some(title),
                        measured,
                        run: None,
                        run_sha256: None,
                        note: None,
                    };
                    let note = self.keep(step, journal)?;
                    self.bench.note(&note);
                    continue;
                }
            };
            self.measured_as(&mut request);
            self.believed.insert(key.clone());
            for more in 0..self.options.seeds {
                cells.push((open.len(), self.cell(&request, more)?));
            }
            let left = self.options.seeds;
            open.push(Open {
                key,
                title,
                left,
                worst: None,
                unfit: None,
                note: self.variants.note(),
            });
        }
        if open.is_empty() {
            return Ok(());
        }
        match self.measure {
            Measure::Section => self.sections(open, &cells, journal),
            Measure::Max | Measure::Quantile(_) => self.runs(open, cells, journal),
        }
    }

    fn believe(&mut self, at: &T, arm: Arm, step: &Step) -> Result<(), SearchError> {
        let is_figure = matches!(step.measured, Measured::ValueNs(_));
        if !is_figure || self.believed.contains(&step.key) {
            return Ok(());
        }
        // What would have to be built again for it is not: its figure was held against its file.
        if self.variants.is_made(at, arm) {
            let mut request = match self.variants.request(at, arm) {
                Ok(request) => request,
                Err(Unmade::Failed(failure)) => return Err(failure),
                Err(Unmade::Unfit(why)) => return Err(SearchError::Unfit { why }),
            };
            self.measured_as(&mut request);
            self.same(&request, step)?;
        }
        self.believed.insert(step.key.clone());
        Ok(())
    }

    fn at_once(&self) -> usize {
        if self.measure == Measure::Section {
            return 1;
        }
        (self.bench.jobs() / usize::try_from(self.options.seeds).unwrap_or(1).max(1)).max(1)
    }
}
