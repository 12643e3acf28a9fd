// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of a campaign in the lab's kernels, in virtual time.
//!
//! A run whose file holds just what would be made is not made again.

use std::path::PathBuf;

use tailbound_core::campaign::Part;
use tailbound_core::units::format_span;
use tailbound_lab::{Labelled, Request};
use tailbound_series::campaign::{CampaignEnd, Chosen, Folder, folder};
use tailbound_series::{Caller as _, SeriesError};
use tailbound_stats::Analysis;
use tailbound_sys::new_file::Existing;

use super::options;
use crate::caller::Machine;
use crate::cli_campaign::CampaignRunArgs;
use crate::cmd::lab::bench;
use crate::input;
use crate::say::{self, Failure};

/// Activations beside benchmarks, which a guest cannot be without.
const BESIDE_WORKS: u64 = 100;

/// A cell and where its run belongs.
struct Job {
    part: String,
    system: PathBuf,
    labelled: Labelled,
}

/// Makes every one of `parts` in every kernel, as far as it is not there yet.
pub(super) fn make(
    args: &CampaignRunArgs,
    chosen: &Chosen,
    parts: &[Part],
    folder: &Folder,
) -> Result<CampaignEnd, Failure> {
    let can: Vec<&Part> = parts.iter().filter(|p| p.not_in_lab.is_none()).collect();
    length(args, chosen, &can)?;
    let bench = bench(&args.host)?;
    let emulator = bench.ready(&request(args, chosen, parts.first().ok_or_else(Failure::bug)?)?)?;
    let mut all = Vec::new();
    for part in can {
        let request = request(args, chosen, part)?;
        for labelled in request.cells(&mut |name, arch| bench.obtain(name, arch))? {
            let system = folder.system(&format!("lab-{}", labelled.kernel))?;
            all.push(Job { part: part.id.clone(), system, labelled });
        }
    }
    let mut open = Vec::new();
    for job in &all {
        let file = folder::run_file(&job.system, &job.part);
        let there = Machine::default().complete(&file);
        let prepared = job.labelled.cell.prepare(&emulator)?;
        let same = |r: &tailbound_core::Run| r.header.lab.as_deref() == Some(&prepared.record);
        match there {
            Some(r) if same(&r) => {}
            Some(_) if !args.force => {
                return Ok(CampaignEnd::taken(SeriesError::OtherVersion { path: file }));
            }
            _ => open.push(job),
        }
    }
    if open.len() < all.len() && !args.host.quiet {
        say::note(&format!(
            "{} of {} runs are complete already",
            all.len() - open.len(),
            all.len()
        ));
    }
    let mut broken = None;
    let guests: Vec<_> = open.iter().map(|j| j.labelled.cell.clone()).collect();
    let made = bench.make(&guests, &emulator, &mut |at, made| {
        let Some(job) = open.get(at) else { return String::new() };
        let title = format!("{} on {}", job.part, job.labelled.kernel);
        let kept = match made {
            Ok(made) => keep(job, &made).map(|()| made.summary(&title)),
            Err(e) => {
                let why = e.to_string();
                folder::keep_failed(&job.system, &job.part, &why)
                    .map_err(Failure::from)
                    .map(|()| format!("{title}: failed: {why}"))
            }
        };
        kept.unwrap_or_else(|e| {
            let text = e.text.clone();
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

/// Writes a run with its console and its report.
fn keep(job: &Job, made: &tailbound_lab::Made) -> Result<(), Failure> {
    folder::forget_failed(&job.system, &job.part);
    let file = folder::run_file(&job.system, &job.part);
    tailbound_lab::keep(&file, &made.run, &made.console, Existing::Replace)?;
    let page = tailbound_report::html(&[Analysis::of(&made.run)], &[input::name(&file)]);
    input::write(&folder::report_file(&job.system, &job.part), &page, true)
}

/// What the lab is asked for one part.
fn request(args: &CampaignRunArgs, chosen: &Chosen, part: &Part) -> Result<Request, Failure> {
    let mut campaign = options(args).config(&chosen.file.name, part, true);
    let load = campaign.load.take().map_or_else(|| "none".to_owned(), |l| l.join(","));
    if part.only_work {
        (campaign.loops, campaign.duration) = (Some(BESIDE_WORKS), None);
    }
    let guest = &args.guest;
    let rt_cpus = campaign.rt_cpus.take();
    let tune: Vec<String> = campaign.tune.take().into_iter().collect();
    let text = |name: &String| Ok((name.clone(), crate::cmd::tune::profile_text(name)?));
    let profiles = tune.iter().map(text).collect::<Result<_, Failure>>()?;
    Ok(Request {
        tune,
        rt_cpus,
        profiles,
        kernels: args.kernel.clone(),
        append: vec![part.append.clone()],
        targets: guest.target.clone(),
        loads: vec![load],
        arch: guest.arch.clone(),
        machine: guest.machine.clone(),
        smp: guest.smp.max(part.smp),
        slice: guest.slice.clone(),
        memory_mib: guest.memory,
        shift: guest.shift,
        seed: guest.seed,
        kvm: guest.kvm,
        with: guest.with.clone(),
        guest: args.host.guest.clone(),
        campaign,
        ..Request::default()
    })
}

/// Refuses what would take days, unless somebody says yes.
fn length(args: &CampaignRunArgs, chosen: &Chosen, parts: &[&Part]) -> Result<(), Failure> {
    let Some(long) = options(args).long_in_lab(&chosen.file.name, parts) else { return Ok(()) };
    if args.yes || args.guest.kvm {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{} would take {} of virtual time, of which a second costs this machine many: give --scale {} or less, or --yes",
        long.part,
        format_span(long.ns),
        long.scale
    )))
}
