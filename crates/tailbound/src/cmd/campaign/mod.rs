// SPDX-License-Identifier: MIT OR Apache-2.0
//! `campaign`: published measurements done again, and their figures beside ours.
//!
//! ```text
//! here.rs  progress of runs on this machine     lab.rs   runs in the lab's kernels
//! show.rs  list and show                        page.rs  the page of a folder
//! ```
//! Not here: which runs, how long, and where they lie (`tailbound_series::campaign`).

mod here;
#[cfg(feature = "lab")]
mod lab;
mod page;
mod show;

use std::path::Path;
use std::process::ExitCode;

use tailbound_core::campaign::Part;
use tailbound_core::plan::RunConfig;
use tailbound_series::SeriesError;
use tailbound_series::campaign::{self as series, CampaignEnd, Chosen, Folder};

use crate::cli_campaign::{Campaign, CampaignRunArgs};
use crate::cli_color::ColorChoice;
use crate::consent::{self, Agreement};
use crate::input::{self, Existing};
use crate::machine::{self, WhileHeld};
use crate::names;
use crate::say::{self, Failure, Form};

/// `tailbound campaign`
pub(crate) fn campaign(what: &Campaign) -> Result<ExitCode, Failure> {
    match what {
        Campaign::List { json } => show::list(Form::of(*json, ColorChoice::Never)),
        Campaign::Show(args) => show::show(args),
        Campaign::Run(args) => run(args),
        Campaign::Page(args) => page::page(args),
    }
}

fn run(args: &CampaignRunArgs) -> Result<ExitCode, Failure> {
    if !(args.scale > 0.0 && args.scale <= 1.0) {
        return Err(Failure::usage(format!(
            "--scale {}: write a share above 0 and up to 1, for example 0.01",
            args.scale
        )));
    }
    let chosen = series::find(&args.name)?;
    let parts = series::wanted(&chosen, &args.only)?;
    if args.begin_at.is_some() && !matches!(parts.as_slice(), [one] if !one.only_work) {
        return Err(Failure::usage(
            "--begin-at is for one run of a latency: name it with --only (`campaign show` lists them)",
        ));
    }
    // Until all is made: no fleet comes between two runs. Its runs, which are processes of their own, have it from this one.
    let _machine = match in_lab(args) {
        true => None,
        false => Some(machine::share(WhileHeld::wait_if(args.wait_for_machine))?),
    };
    match &args.out {
        Some(out) => run_in(args, &chosen, &parts, out)?.map_err(Failure::from),
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

fn in_lab(args: &CampaignRunArgs) -> bool {
    !args.kernel.is_empty() || !args.guest.target.is_empty()
}

/// Makes it in this folder, or says why it is taken.
fn run_in(
    args: &CampaignRunArgs,
    chosen: &Chosen,
    parts: &[Part],
    out: &Path,
) -> Result<Result<ExitCode, SeriesError>, Failure> {
    if args.resume && !out.is_dir() {
        return Err(Failure::usage(format!(
            "--resume: {} is no folder; leave out --resume to start a new one",
            out.display()
        )));
    }
    let in_lab = in_lab(args);
    if !in_lab && !chosen.shipped {
        let words: Vec<&RunConfig> = parts.iter().map(|p| &p.run).collect();
        consent::ask(&args.name, &words, Agreement::given_if(args.yes))?;
    }
    input::may_write(&page::default_page(out), Existing::Replace)?;
    let folder = match Folder::settle(out, chosen, Existing::replaced_if(args.force)) {
        Ok(folder) => folder,
        Err(taken) if taken.is_taken() => return Ok(Err(taken)),
        Err(e) => return Err(e.into()),
    };
    let ended: CampaignEnd = if in_lab {
        #[cfg(not(feature = "lab"))]
        return Err(super::without_lab::told("campaign run --kernel"));
        #[cfg(feature = "lab")]
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
    let form = Form::of(args.host.json, args.host.color.when);
    page::finish(&folders, file, None, form).map(Ok)
}
