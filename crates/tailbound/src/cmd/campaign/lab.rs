// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of a campaign in the lab's kernels, in virtual time.
//!
//! Context: COLD. A run whose file holds just what would be made is not made again.

use std::path::PathBuf;

use tailbound_core::campaign::Part;
use tailbound_core::plan;
use tailbound_core::units::{format_span, parse_ns};
use tailbound_lab::{Labelled, Request};

use super::folder::{self, Folder};
use super::shipped::Chosen;
use super::{Ended, words};
use crate::cli_campaign::CampaignRunArgs;
use crate::cmd::lab::cells::{self, Bench};
use crate::cmd::lab::run;
use crate::input;
use crate::say::{self, Failure};

/// Virtual time of one guest beyond which somebody has to say yes.
const LONG_NS: i64 = 300_000_000_000;
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
) -> Result<Ended, Failure> {
    let can: Vec<&Part> = parts.iter().filter(|p| p.not_in_lab.is_none()).collect();
    length(args, chosen, &can)?;
    let bench = Bench::open(&args.host)?;
    let emulator = bench.ready(&request(args, chosen, parts.first().ok_or_else(Failure::bug)?))?;
    let mut all = Vec::new();
    for part in can {
        let request = request(args, chosen, part);
        for labelled in request.cells(&mut |name, arch| bench.obtain(name, arch))? {
            let system = folder.system(&format!("lab-{}", labelled.kernel))?;
            all.push(Job { part: part.id.clone(), system, labelled });
        }
    }
    let mut open = Vec::new();
    for job in &all {
        let there = folder::complete(&job.system, &job.part);
        let prepared = job.labelled.cell.prepare(&emulator)?;
        let same = |r: &tailbound_core::Run| r.header.lab.as_deref() == Some(&prepared.record);
        match there {
            Some(r) if same(&r) => {}
            Some(_) if !args.force => {
                return Ok(Ended::taken(format!(
                    "{} holds a run made with different options or by another version: choose another --out, or give --force",
                    folder::run_file(&job.system, &job.part).display()
                )));
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
            Ok(made) => keep(job, &made).map(|()| cells::summary(&title, &made)),
            Err(e) => {
                let why = e.to_string();
                folder::keep_failed(&job.system, &job.part, &why)
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
        (None, Ok(())) => Ok(Ended::default()),
        // Ended by a signal.
        (None, Err(e)) if e.status == 5 => Ok(Ended { interrupted: true, taken: None }),
        (None, Err(e)) => Err(e),
    }
}

/// Writes a run with its console and its report.
fn keep(job: &Job, made: &tailbound_lab::Made) -> Result<(), Failure> {
    folder::forget_failed(&job.system, &job.part);
    let file = folder::run_file(&job.system, &job.part);
    run::keep(&file, &made.run, &made.console, true)?;
    let page = tailbound_report::html(std::slice::from_ref(&made.run), &[input::name(&file)]);
    input::write(&folder::report_file(&job.system, &job.part), &page, true)
}

/// What the lab is asked for one part.
fn request(args: &CampaignRunArgs, chosen: &Chosen, part: &Part) -> Request {
    let mut campaign = words(args, &chosen.file.name, part, true);
    let load = campaign.load.take().map_or_else(|| "none".to_owned(), |l| l.join(","));
    if part.only_work {
        (campaign.loops, campaign.duration) = (Some(BESIDE_WORKS), None);
    }
    let guest = &args.guest;
    Request {
        kernels: args.kernel.clone(),
        append: vec![part.append.clone()],
        targets: guest.target.clone(),
        loads: vec![load],
        arch: guest.arch.clone(),
        machine: guest.machine.clone(),
        smp: guest.smp.max(part.smp),
        memory_mib: guest.memory,
        shift: guest.shift,
        seed: guest.seed,
        kvm: guest.kvm,
        with: guest.with.clone(),
        guest: args.host.guest.clone(),
        campaign,
        ..Request::default()
    }
}

/// Refuses what would take days, unless somebody says yes.
fn length(args: &CampaignRunArgs, chosen: &Chosen, parts: &[&Part]) -> Result<(), Failure> {
    let lengths = parts.iter().map(|p| (p, ns(&words(args, &chosen.file.name, p, true))));
    let Some((part, longest)) = lengths.max_by_key(|(_, ns)| *ns) else { return Ok(()) };
    if longest <= LONG_NS || args.yes || args.guest.kvm {
        return Ok(());
    }
    #[expect(clippy::cast_precision_loss, reason = "a suggestion of one digit")]
    let scale = args.scale * LONG_NS as f64 / longest as f64;
    let digit = 10f64.powf(scale.log10().floor());
    Err(Failure::usage(format!(
        "{} would take {} of virtual time, of which a second costs this machine many: give --scale {} or less, or --yes",
        part.id,
        format_span(longest),
        (scale / digit).floor() * digit
    )))
}

fn ns(words: &plan::RunConfig) -> i64 {
    let time = |text: &Option<String>| text.as_deref().and_then(|t| parse_ns(t).ok());
    let interval = time(&words.interval).unwrap_or(250_000);
    let loops = words.loops.map(|n| i64::try_from(n).unwrap_or(i64::MAX).saturating_mul(interval));
    loops.or_else(|| time(&words.duration)).unwrap_or(0)
}
