// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of a campaign in the lab's kernels, in virtual time.
//!
//! A run whose file holds just what would be made is not made again.
//! Not here: which runs a campaign has (`tailbound_series::campaign`).

use std::path::PathBuf;

use tailbound_core::Run;
use tailbound_core::campaign::Part;
use tailbound_lab::{Bench, Emulator, LabError, Labelled, Made, Request};
use tailbound_series::SeriesError;
use tailbound_series::campaign::{CampaignCaller, CampaignEnd, Chosen, Folder, Options, folder};
use tailbound_sys::new_file::Existing;
use tailbound_tune::{Recipe, typed};

use crate::error::SearchError;

/// Activations beside benchmarks, which a guest cannot be without.
const BESIDE_WORKS: u64 = 100;

/// What is made.
#[derive(Debug)]
pub struct CampaignRequest<'a> {
    /// The campaign.
    pub chosen: &'a Chosen,
    /// Its parts.
    pub parts: &'a [Part],
    /// What was asked for beside it.
    pub options: Options,
    /// Kernels and guest of every part.
    pub guests: Request,
    /// It may take days.
    pub may_be_long: bool,
    /// Where files go.
    pub folder: &'a Folder,
}

/// What a campaign in the lab needs from the program that makes it.
pub struct LabCampaignCaller<'a, C> {
    /// Opens the lab.
    pub open: &'a dyn Fn() -> Result<Bench<'a>, LabError>,
    /// Reads runs and writes their pages.
    pub machine: C,
    /// Hears what is worth knowing.
    pub note: &'a dyn Fn(&str),
}

impl<C> std::fmt::Debug for LabCampaignCaller<'_, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LabCampaignCaller").finish_non_exhaustive()
    }
}

/// A cell and where its run belongs.
struct Job {
    part: String,
    system: PathBuf,
    labelled: Labelled,
}

/// Makes every part in every kernel, as far as it is not there yet.
///
/// # Errors
/// Words that are wrong, a run that would take days, files that cannot be written. A guest that fails is none: the folder
/// says why.
pub fn campaign<C: CampaignCaller<Error: Into<SearchError>>>(
    request: &CampaignRequest<'_>,
    caller: &mut LabCampaignCaller<'_, C>,
) -> Result<CampaignEnd, SearchError> {
    let can: Vec<&Part> = request.parts.iter().filter(|p| p.not_in_lab.is_none()).collect();
    request.not_too_long(&can)?;
    let bench = (caller.open)()?;
    let first = request.parts.first().ok_or(LabError::Bug)?;
    let emulator = bench.ready(&request.of_part(first)?)?;
    let mut all = Vec::new();
    for part in can {
        let asked = request.of_part(part)?;
        for labelled in asked.cells(&mut |name, arch| bench.obtain(name, arch))? {
            let system = request.folder.system(&format!("lab-{}", labelled.kernel))?;
            all.push(Job { part: part.id.clone(), system, labelled });
        }
    }
    let open = match open(request, &all, &emulator, &mut caller.machine)? {
        Ok(open) => open,
        Err(taken) => return Ok(taken),
    };
    if open.len() < all.len() {
        let there = all.len() - open.len();
        (caller.note)(&format!("{there} of {} runs are complete already", all.len()));
    }
    let mut broken = None;
    let guests: Vec<_> = open.iter().map(|j| j.labelled.cell.clone()).collect();
    let made = bench.make(&guests, &emulator, &mut |at, made| {
        let Some(job) = open.get(at) else { return String::new() };
        let title = format!("{} on {}", job.part, job.labelled.kernel);
        let kept = match made {
            Ok(made) => keep(job, &made, &mut caller.machine).map(|()| made.summary(&title)),
            Err(e) => {
                let why = e.to_string();
                folder::keep_failed(&job.system, &job.part, &why)
                    .map_err(SearchError::from)
                    .map(|()| format!("{title}: failed: {why}"))
            }
        };
        kept.unwrap_or_else(|e| {
            let text = e.to_string();
            broken.get_or_insert(e);
            text
        })
    });
    match (broken, made) {
        (Some(failure), _) => Err(failure),
        (None, Ok(())) => Ok(CampaignEnd::default()),
        // Ended by a signal.
        (None, Err(e)) if e.is_cut_off() => Ok(CampaignEnd::by_signal()),
        (None, Err(e)) => Err(e.into()),
    }
}

/// Those that are not there yet; the end, where something else is in the place of one.
fn open<'a, C: CampaignCaller>(
    request: &CampaignRequest<'_>,
    all: &'a [Job],
    emulator: &Emulator,
    machine: &mut C,
) -> Result<Result<Vec<&'a Job>, CampaignEnd>, SearchError> {
    let mut open = Vec::new();
    for job in all {
        let file = folder::run_file(&job.system, &job.part);
        let there = machine.complete(&file);
        let prepared = job.labelled.cell.prepare(emulator)?;
        let same = |r: &Run| r.header.lab.as_deref() == Some(&prepared.record);
        match there {
            Some(r) if same(&r) => {}
            Some(_) if !request.options.force => {
                return Ok(Err(CampaignEnd::taken(SeriesError::OtherVersion { path: file })));
            }
            _ => open.push(job),
        }
    }
    Ok(Ok(open))
}

/// Writes a run with its console and its report.
fn keep<C: CampaignCaller<Error: Into<SearchError>>>(
    job: &Job,
    made: &Made,
    machine: &mut C,
) -> Result<(), SearchError> {
    folder::forget_failed(&job.system, &job.part);
    let file = folder::run_file(&job.system, &job.part);
    tailbound_lab::keep(&file, &made.run, &made.console, Existing::Replace)?;
    let page = folder::report_file(&job.system, &job.part);
    machine.page(&made.run, &file, &page).map_err(Into::into)
}

impl CampaignRequest<'_> {
    /// What the lab is asked for one part.
    fn of_part(&self, part: &Part) -> Result<Request, SearchError> {
        let mut campaign = self.options.lab_config(&self.chosen.file.name, part);
        let load = campaign.load.take().map_or_else(|| "none".to_owned(), |l| l.join(","));
        if part.only_work {
            (campaign.loops, campaign.duration) = (Some(BESIDE_WORKS), None);
        }
        let rt_cpus = campaign.rt_cpus.take();
        let tune: Vec<String> = campaign.tune.take().into_iter().collect();
        let text = |name: &String| Ok((name.clone(), Recipe::of(&typed::profile(name)?).profile));
        let profiles = tune.iter().map(text).collect::<Result<_, SearchError>>()?;
        Ok(Request {
            tune,
            rt_cpus,
            profiles,
            append: vec![part.append.clone()],
            loads: vec![load],
            smp: self.guests.smp.max(part.smp),
            campaign,
            ..self.guests.clone()
        })
    }

    /// Refuses what would take days, unless somebody says yes.
    fn not_too_long(&self, parts: &[&Part]) -> Result<(), SearchError> {
        let Some(long) = self.options.long_in_lab(&self.chosen.file.name, parts) else {
            return Ok(());
        };
        if self.may_be_long {
            return Ok(());
        }
        Err(SearchError::TooLong { part: long.part, ns: long.ns, scale: long.scale })
    }
}
