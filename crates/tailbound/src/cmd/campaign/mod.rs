// SPDX-License-Identifier: MIT OR Apache-2.0
//! `campaign`: published measurements done again, and their figures beside ours.
//!
//! Context: COLD.
//!
//! ```text
//! shipped.rs  campaigns in the program, or a file      folder.rs  runs and their state, from files alone
//! here.rs     runs on this machine, one child each      lab.rs     runs in the lab's kernels
//! show.rs     list and show                             page.rs    the page of a folder
//! ```

mod folder;
mod follow;
mod here;
mod lab;
mod page;
mod shipped;
mod show;

pub(crate) use self::shipped::shipped_names;

use std::path::Path;
use std::process::ExitCode;

use tailbound_core::campaign::{Part, scaled};
use tailbound_core::plan;

use self::folder::Folder;
use self::shipped::Chosen;
use crate::cli_campaign::{Campaign, CampaignRunArgs};
use crate::consent;
use crate::input;
use crate::names;
use crate::say::{self, Failure};

/// `tailbound campaign`
pub(crate) fn campaign(what: &Campaign) -> Result<ExitCode, Failure> {
    match what {
        Campaign::List { json } => show::list(*json),
        Campaign::Show(args) => show::show(args),
        Campaign::Run(args) => run(args),
        Campaign::Page(args) => page::page(args),
    }
}

/// How a campaign's runs ended.
#[derive(Debug, Default)]
struct Ended {
    /// By a signal, before all were made.
    interrupted: bool,
    /// The folder holds runs made with different options: nothing was made.
    taken: Option<String>,
}

impl Ended {
    fn taken(why: String) -> Self {
        Self { interrupted: false, taken: Some(why) }
    }
}

fn run(args: &CampaignRunArgs) -> Result<ExitCode, Failure> {
    if !(args.scale > 0.0 && args.scale <= 1.0) {
        return Err(Failure::usage(format!(
            "--scale {}: write a share above 0 and up to 1, for example 0.01",
            args.scale
        )));
    }
    let chosen = shipped::find(&args.name)?;
    let parts = wanted(&chosen, &args.only)?;
    match &args.out {
        Some(out) => run_in(args, &chosen, &parts, out)?.map_err(Failure::usage),
        // The first folder that is free or holds the beginning of this very campaign.
        None => {
            let name = format!("{}.campaign", names::plain(&chosen.file.name));
            for out in names::numbered(Path::new(&name)) {
                if let Ok(status) = run_in(args, &chosen, &parts, &out)? {
                    return Ok(status);
                }
            }
            Err(Failure::bug())
        }
    }
}

/// Makes it in this folder, or says why it is taken.
fn run_in(
    args: &CampaignRunArgs,
    chosen: &Chosen,
    parts: &[Part],
    out: &Path,
) -> Result<Result<ExitCode, String>, Failure> {
    if args.resume && !out.is_dir() {
        return Err(Failure::usage(format!(
            "--resume: {} is no folder; leave out --resume to start a new one",
            out.display()
        )));
    }
    let in_lab = !args.kernel.is_empty() || !args.guest.target.is_empty();
    if !in_lab && !chosen.shipped {
        let words: Vec<&plan::RunConfig> = parts.iter().map(|p| &p.run).collect();
        consent::ask(&args.name, &words, args.yes)?;
    }
    input::may_write(&page::default_page(out), true)?;
    let folder = match Folder::settle(out, chosen, args.force)? {
        Ok(folder) => folder,
        Err(taken) => return Ok(Err(taken)),
    };
    let ended = if in_lab {
        lab::make(args, chosen, parts, &folder)?
    } else {
        here::make(args, chosen, parts, &folder)?
    };
    if let Some(taken) = ended.taken {
        return Ok(Err(taken));
    }
    if ended.interrupted && !args.host.quiet {
        say::note("Ended by a signal: the page shows the runs so far; the same command resumes.");
    }
    let (folders, file) = ([out.to_owned()], chosen.file.clone());
    page::finish(&folders, file, None, args.host.json, &args.host.color.when).map(Ok)
}

/// The parts to be made.
fn wanted(chosen: &Chosen, only: &[String]) -> Result<Vec<Part>, Failure> {
    let all = chosen.file.parts();
    let step = |p: &Part| chosen.file.steps.get(p.step).map_or("", |s| s.id.as_str());
    for name in only {
        if !all.iter().any(|p| p.id == *name || step(p) == name) {
            let names: Vec<&str> = all.iter().map(|p| p.id.as_str()).collect();
            return Err(Failure::usage(format!(
                "--only {name}: no such run or step; there are {}",
                names.join(", ")
            )));
        }
    }
    let chosen = |p: &Part| only.is_empty() || only.iter().any(|n| p.id == *n || step(p) == n);
    Ok(all.iter().filter(|p| chosen(p)).cloned().collect())
}

/// The words of `part`, as long as asked for.
fn words(args: &CampaignRunArgs, name: &str, part: &Part, lab: bool) -> plan::RunConfig {
    let (mut words, _) = scaled(if lab { &part.lab } else { &part.run }, args.scale);
    words.name = Some(format!("{name}/{}", part.id));
    if let Some(cpus) = &args.cpus {
        words.cpus = Some(cpus.clone());
    }
    words
}
