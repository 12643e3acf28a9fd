// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound tune auto`: which changes make this machine less late, found out by measurement.
//!
//! ```text
//! machine.rs  measured on this machine     guest.rs  measured in the lab
//! answer.rs   what came of it
//! ```
//! Not here: what is tried (`tailbound_tune::candidates`), which sets are measured and who is kept
//! (`tailbound_series::auto`).

mod answer;
#[cfg(feature = "lab")]
mod guest;
mod machine;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tailbound_core::plan::RunConfig;
use tailbound_core::utc;
use tailbound_series::auto::{Design, DesignError, search};
use tailbound_series::rounds::is_name;
use tailbound_sys::clock;
use tailbound_tune::candidates;

use crate::cli_config;
use crate::cli_tune_auto::AutoArgs;
use crate::cmd::compare;
use crate::flags;
use crate::names;
use crate::say::{self, Failure};

use answer::Asked;

/// What a run takes besides its measurement: warm-up, apply, undo, start.
const OVERHEAD_NS: i64 = 1_200_000_000;
const WARM_UP: &str = "300ms";

/// `tailbound tune auto`
pub(super) fn auto(args: &AutoArgs) -> Result<ExitCode, Failure> {
    let settings = compare::settings(&args.judge)?;
    if args.judge.require_equivalent {
        return Err(Failure::usage("--require-equivalent: nothing here has to be equivalent"));
    }
    let all = candidates::asked(&args.candidates(), &is_name)?;
    let now = clock::now_ns(clock::CLOCK_REALTIME);
    let folder = || {
        let stamp: String = utc::from_ns(now).chars().filter(char::is_ascii_alphanumeric).collect();
        args.out
            .clone()
            .unwrap_or_else(|| names::free(Path::new(&format!("tailbound-{stamp}.auto")), &[]))
    };
    let config = config(args)?;
    if args.lab {
        #[cfg(not(feature = "lab"))]
        return Err(crate::cmd::without_lab::told("tune auto --lab"));
        #[cfg(feature = "lab")]
        return guest::auto(args, &all, config, folder(), &settings);
    }
    tailbound_tune::needs_root().map_err(Failure::cannot)?;
    let rt_cpus = args.rt_cpus.clone().unwrap_or_default();
    let (candidates, notes) = candidates::possible(all, &rt_cpus)?;
    let budget_ns = flags::time("--budget", &args.budget)?;
    let design = Design::for_budget(candidates.len(), budget_ns, OVERHEAD_NS).map_err(too_short)?;
    let config = RunConfig {
        duration: Some(machine::length(design.run_ns)),
        warm_up: config.warm_up.or_else(|| Some(WARM_UP.to_owned())),
        cpus: config.cpus.or_else(|| args.rt_cpus.clone()),
        loops: None,
        ..config
    };
    let folder = made(folder())?;
    let seed = args.judge.seed.unwrap_or(1);
    let mut here = machine::Here::new(&candidates, (&config, &rt_cpus), &folder, seed);
    (here.force, here.quiet) = (args.force, args.host.quiet);
    let names: Vec<String> = candidates.iter().map(|c| c.name.clone()).collect();
    if !args.host.quiet {
        say::note(&format!(
            "{} changes are tried: about {}; {}",
            names.len(),
            tailbound_core::units::format_span(design.expected_ns),
            folder.display()
        ));
    }
    let found = search(&names, &design, &settings, &mut here)?;
    let asked = Asked {
        args,
        candidates: &candidates,
        names: &names,
        notes,
        design,
        settings,
        folder: &folder,
    };
    answer::answer(&asked, &found)
}

fn too_short(e: DesignError) -> Failure {
    match e {
        DesignError::Budget { .. } => Failure::usage(format!("--budget: {e}")),
        DesignError::Nothing => Failure::usage(e),
    }
}

/// What every run has in common.
fn config(args: &AutoArgs) -> Result<RunConfig, Failure> {
    let file = match &args.config {
        None => RunConfig::default(),
        Some(path) => cli_config::in_file(path)?,
    };
    let given = RunConfig {
        deadline: args.deadline.clone(),
        interval: args.interval.clone(),
        load: (!args.load.is_empty() && !args.lab).then(|| args.load.clone()),
        load_cmd: args.load_cmd.clone(),
        ..RunConfig::default()
    };
    let config = file.over(&given);
    tailbound_run::check_options(&config)?;
    Ok(config)
}

fn made(folder: PathBuf) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(&folder)
        .map_err(|e| Failure::cannot(format!("{}: {e}", folder.display())))?;
    Ok(folder)
}
