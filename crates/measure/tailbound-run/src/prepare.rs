// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a request to a session: everything is checked, nothing is started.
//!
//! Context: SETUP. Units: ns. Not here: the plan (`resolve`), making the run (`run`).

use std::path::PathBuf;

use tailbound_core::instant;
use tailbound_core::plan::Plan;
use tailbound_core::record::Round;
use tailbound_host::Root;
use tailbound_probe::Prepared;

use crate::actions::Actions;
use crate::error::RunError;
use crate::option_error::OptionError;
use crate::resolve::{Request, resolve};
use crate::session::Session;
use crate::view::SamplesTo;

/// How a run stands among others, and in time: what its plan does not say.
#[derive(Clone, Debug, Default)]
pub struct Setting<'a> {
    /// The number of threads that somebody expects there.
    pub threads: Option<u32>,
    /// When it is to begin, as it was written.
    pub begin_at: Option<&'a str>,
    /// Time counts executed instructions, as in the lab.
    pub virtual_time: bool,
    /// Its place among runs made in turn.
    pub round: Option<Round>,
}

impl Session {
    /// A session of `request` on the machine under `root`, and its probe.
    ///
    /// # Errors
    /// A word means nothing, this machine or user cannot, or the path of this program is unknown.
    pub fn prepared(
        request: &Request,
        setting: Setting<'_>,
        root: Root,
    ) -> Result<(Self, Prepared), RunError> {
        let resolved = resolve(request, &root)?;
        are_threads(setting.threads, &resolved.plan)?;
        let begin_at = setting.begin_at.map(instant::parse).transpose();
        let begin_at_ns =
            begin_at.map_err(|e| OptionError::Value { flag: "--begin-at", why: Box::new(e) })?;
        let has_loads = !resolved.plan.loads.is_empty() && !resolved.loads_by_default;
        let exe = match resolved.exe {
            Err(e) if has_loads || resolved.plan.work.is_some() => {
                return Err(RunError::NoProgram(e));
            }
            // Without /proc there is no path, and no default load: the session says so.
            exe => exe.unwrap_or_default(),
        };
        let session = Self {
            findings: resolved.findings,
            loads_optional: resolved.loads_by_default,
            inventory_late: request.bare,
            virtual_time: setting.virtual_time,
            round: setting.round,
            purpose: resolved.purpose,
            begin_at_ns,
            ..Self::of_plan(resolved.plan, root, exe)
        };
        Ok((session, resolved.probe))
    }

    /// A session of this plan and of nothing else.
    #[must_use]
    pub fn of_plan(plan: Plan, root: Root, exe: PathBuf) -> Self {
        Self {
            plan,
            findings: Vec::new(),
            command: std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect(),
            root,
            exe,
            loads_optional: false,
            inventory_late: false,
            virtual_time: false,
            refresh_ms: 0,
            round: None,
            purpose: None,
            machine: None,
            samples: SamplesTo::File,
            begin_at_ns: None,
            actions: Actions::default(),
        }
    }
}

/// Refuses a number of threads that is not the plan's: of cyclictest's users, who write it.
///
/// # Errors
/// It is another.
pub fn are_threads(given: Option<u32>, plan: &Plan) -> Result<(), OptionError> {
    let planned = plan.tasks.map_or(plan.cpus.len() as u64, u64::from);
    match given {
        Some(given) if u64::from(given) != planned => Err(OptionError::Threads { given, planned }),
        _ => Ok(()),
    }
}
