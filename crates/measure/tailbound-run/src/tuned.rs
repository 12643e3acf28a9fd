// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings for the time of a run: applied before anything is read or started, undone after it,
//! also where the run is killed.
//!
//! Context: SETUP, COLD. Not here: what a profile is (`tailbound-tune`).

use tailbound_core::finding::{Finding, Impact};
use tailbound_core::lab::TuneJob;
use tailbound_core::plan::RunConfig;
use tailbound_host::Root;
use tailbound_tune::typed::profile;
use tailbound_tune::{ForNow, Plan, Profile, Recipe};

use crate::error::RunError;
use crate::option_error::OptionError;
use crate::option_text::usage;

/// What `--tune` and `--rt-cpus` ask for; the CPUs are the measured ones where none are named.
pub(crate) fn wanted(w: &RunConfig, measured: &str) -> Result<Option<TuneJob>, OptionError> {
    let Some(name) = &w.tune else {
        return match w.rt_cpus {
            Some(_) => Err(OptionError::NoProfile),
            None => Ok(None),
        };
    };
    let written = profile(name).map_err(usage("--tune"))?;
    let needs_cpus = Profile::of(written.clone()).map_err(usage("--tune"))?.needs_cpus();
    let rt_cpus = match &w.rt_cpus {
        Some(given) => given.clone(),
        None if needs_cpus => measured.to_owned(),
        None => String::new(),
    };
    let profile = Recipe::of(&written).profile;
    Ok(Some(TuneJob { name: name.clone(), profile, rt_cpus, ..TuneJob::default() }))
}

/// The plan of a job on this machine.
///
/// # Errors
/// Words that are wrong, or a machine that cannot.
pub(crate) fn plan(job: &TuneJob, root: &Root) -> Result<Plan, RunError> {
    let recipe =
        Recipe { profile: job.profile.clone(), rt_cpus: job.rt_cpus.clone(), ..Recipe::default() };
    recipe.plan(root).map_err(RunError::Tune)
}

/// A profile that is in force.
#[derive(Debug)]
pub(crate) struct Tuned {
    held: ForNow,
    applied: Finding,
}

impl Tuned {
    /// Applies what the plan of a run asks for.
    pub(crate) fn apply(job: Option<&TuneJob>, root: &Root) -> Result<Option<Self>, RunError> {
        let Some(job) = job else { return Ok(None) };
        let plan = plan(job, root)?;
        let held = ForNow::apply(&plan).map_err(RunError::Apply)?;
        let (made, skipped) = held.applied().map_or((0, 0), |a| (a.made, a.skipped.len()));
        let missing: Vec<String> = plan
            .left_out
            .iter()
            .filter(|l| !l.harmless)
            .map(|l| format!("{}: {}", l.setting, l.why))
            .collect();
        let applied = job.applied(made, skipped, &missing);
        Ok(Some(Self { held, applied }))
    }

    /// What was applied, for the run file.
    pub(crate) fn finding(&self) -> Finding {
        self.applied.clone()
    }

    /// Undoes it; what a reader must know of that.
    pub(crate) fn end(self) -> Option<Finding> {
        let left = match self.held.end() {
            Ok(report) if report.left() == 0 => return None,
            Ok(report) => format!(
                "{} of the settings, and of the threads that began meanwhile, are not as before: {}",
                report.left(),
                report.remarks().join("; ")
            ),
            Err(e) => format!("the settings are not undone yet: {e}"),
        };
        Some(Finding::listed("tuned-left", Impact::Doubt, left))
    }
}
