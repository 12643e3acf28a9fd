// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a recipe (profile, CPUs, options) to a plan, and back: a plan that was saved is made again
//! and compared before it is applied.
//!
//! So a plan file cannot name a path of its own: whoever applies it writes what the
//! settings' own code plans, on the machine as it is now.

use tailbound_core::CpuSet;
use tailbound_core::cpus::ParseCpusError;
use tailbound_host::Root;

use crate::facts::{Cpu0, Facts, FactsError, machine_id};
use crate::profile::{Profile, ProfileError, Written};
use crate::settings;
use crate::step::{PLAN_FORMAT, Plan, Recipe, Step};
use crate::target::Target;

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A name among what is to be left out.
    #[error(transparent)]
    Setting(#[from] settings::SettingError),
    /// The CPUs, as text.
    #[error("--rt-cpus: {0}")]
    List(#[from] ParseCpusError),
    /// The CPUs, on this machine.
    #[error("--rt-cpus: {0}")]
    Facts(#[from] FactsError),
}

impl PlanError {
    /// Is it this machine that cannot, and not the words that are wrong?
    #[must_use]
    pub fn is_of_machine(&self) -> bool {
        matches!(self, Self::Facts(FactsError::NothingLeft(_) | FactsError::Cpu0))
    }
}

/// Why a saved plan is not applied.
#[derive(Debug, thiserror::Error)]
pub enum StaleError {
    /// Of a later version.
    #[error("the plan has format {0}, and this version reads {PLAN_FORMAT}")]
    Format(u32),
    /// Made elsewhere.
    #[error(
        "the plan was made on another machine, or before it was booted again: make it again with `tailbound tune plan`"
    )]
    Machine,
    /// The machine is no longer as it was.
    #[error(
        "the machine has changed since the plan was made ({0}): make it again with `tailbound tune plan`"
    )]
    Changed(String),
    /// It cannot be made again.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

impl Recipe {
    /// Of a profile.
    #[must_use]
    pub fn of(profile: &Written) -> Self {
        // Strings, numbers, lists and tables of them: every such profile can be written as TOML.
        Self { profile: toml::to_string(profile).unwrap_or_default(), ..Self::default() }
    }

    /// What it comes to on the machine under `root`.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn plan(&self, root: &Root) -> Result<Plan, PlanError> {
        let rt: CpuSet = self.rt_cpus.parse()?;
        for name in &self.without {
            settings::named(name)?;
        }
        let profile = Profile::parse(&self.profile)?;
        let cpu0 = if self.allow_cpu0 { Cpu0::MayBeTaken } else { Cpu0::StaysFree };
        let facts = Facts::read(root, &rt, cpu0)?;
        let mut plan = profile.plan(&facts, self)?;
        plan.recipe = self.clone();
        Ok(plan)
    }
}

/// Makes a saved plan again; what it comes to now, if that is what was saved. Threads come and go:
/// they do not count.
///
/// # Errors
/// [`StaleError`].
pub fn renewed(saved: &Plan, root: &Root) -> Result<Plan, StaleError> {
    if saved.format != PLAN_FORMAT {
        return Err(StaleError::Format(saved.format));
    }
    if saved.machine != machine_id(root) {
        return Err(StaleError::Machine);
    }
    let plan = saved.recipe.plan(root)?;
    let lasting = |step: &&Step| !matches!(step.target, Target::Affinity(_) | Target::Policy(_));
    let (was, is): (Vec<&Step>, Vec<&Step>) =
        (saved.steps.iter().filter(lasting).collect(), plan.steps.iter().filter(lasting).collect());
    let differs =
        was.iter().find(|s| !is.contains(s)).or_else(|| is.iter().find(|s| !was.contains(s)));
    match differs {
        Some(step) => Err(StaleError::Changed(step.target.to_string())),
        None => Ok(plan),
    }
}
