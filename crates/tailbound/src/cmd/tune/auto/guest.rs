// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tune auto --lab`: from arguments to a search in the lab.
//!
//! Not here: how guests measure sets of changes (`tailbound_search::changes_runs`).

use std::path::PathBuf;
use std::process::ExitCode;

use tailbound_core::plan::RunConfig;
use tailbound_search::changes_runs::{ChangesCaller, ChangesRequest, changes};
use tailbound_stats::compare::Settings;
use tailbound_tune::candidates::Candidate;

use super::answer::{self, Asked, LAB_LOOPS};
use crate::cli_tune_auto::AutoArgs;
use crate::cmd::lab::bench;
use crate::say::{self, Failure};

/// `tailbound tune auto --lab`
pub(super) fn auto(
    args: &AutoArgs,
    candidates: &[Candidate],
    config: RunConfig,
    folder: PathBuf,
    settings: &Settings,
) -> Result<ExitCode, Failure> {
    let request = ChangesRequest {
        kernel: args.kernel.clone().unwrap_or_default(),
        rt_cpus: args.rt_cpus.clone(),
        smp: args.smp,
        guest: args.host.guest.clone(),
        loads: args.load.clone(),
        config: RunConfig { loops: Some(args.loops.unwrap_or(LAB_LOOPS)), ..config },
        rounds: args.rounds,
        first_seed: u32::try_from(args.judge.seed.unwrap_or(1)).unwrap_or(1),
        folder,
    };
    let note = |text: &str| {
        if !args.host.quiet {
            say::note(text);
        }
    };
    let caller = ChangesCaller { open: &|| Ok(bench::open(&args.host)?), note: &note };
    let (design, found) = changes(&request, candidates, settings, &caller)?;
    let names: Vec<String> = candidates.iter().map(|c| c.name.clone()).collect();
    let asked = Asked {
        args,
        candidates,
        names: &names,
        notes: Vec::new(),
        design,
        settings: *settings,
        folder: &request.folder,
    };
    answer::answer(&asked, &found)
}
