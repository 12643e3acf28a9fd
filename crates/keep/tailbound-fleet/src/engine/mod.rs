// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engines: where a campaign can run, over one trait.
//!
//! Blocking code: programs of the machine (`sh`, `ssh`, `tar`) are started and waited for.
//! Not here: how campaigns are made into runs (`tailbound-series`), words and pages (`tailbound`).
//!
//! ```text
//! target.rs  TARGETS.toml             lease.rs  one machine held, by a lock on the machine itself
//! shell.rs   the way to a shell       shells.rs the engines that are such a way: local, ssh, lab
//! slurm.rs   nodes that Slurm gives   labgrid/  boards that labgrid has
//! reservation.rs what a target asks these two for; keeper.rs gives back what they gave
//! strategy.rs boots a board of labgrid    console.rs reads its console (telnet.rs)
//! agent.rs   machines that ask a server for work
//! fleet.rs   all targets at once      kept.rs   what lies in the folder of before
//! aligned.rs runs that begin at one instant on all machines
//! survey.rs  which targets, and what they are    results.rs what became of each run
//! ```

mod agent;
pub mod aligned;
mod console;
pub mod fleet;
mod keeper;
mod kept;
mod labgrid;
pub mod lease;
pub mod reservation;
pub mod results;
mod shell;
mod shells;
mod slurm;
mod strategy;
pub mod survey;
pub mod target;
mod target_entry;
mod telnet;

use std::path::{Path, PathBuf};

pub use target::{EngineName, Target, Targets};

use shell::ShellLauncher;
use target::Reach;

/// The engine of `target`.
#[must_use]
pub fn of(target: &Target) -> Box<dyn Engine> {
    match &target.reach {
        Reach::Agent { server, system } => Box::new(agent::Agent::of(target, server, system)),
        Reach::Local | Reach::Lab { .. } => {
            Box::new(shells::Shell::of(target, ShellLauncher::here()))
        }
        Reach::Ssh { host, config } => {
            Box::new(shells::Shell::of(target, ShellLauncher::ssh(host, config.as_deref(), &[])))
        }
        Reach::Labgrid(place) => Box::new(labgrid::Labgrid::of(target, place)),
        Reach::Slurm(job) => Box::new(slurm::Slurm::of(target, job)),
    }
}

/// The targets, one for each machine where one asks for each of several.
///
/// # Errors
/// When nobody says which they are, or one is called as another target.
pub fn spread(targets: &[Target]) -> Result<Vec<Target>, EngineError> {
    let mut all: Vec<Target> = Vec::new();
    for target in targets {
        for one in slurm::spread(target)? {
            if all.iter().any(|t| t.name == one.name) {
                let why = format!("two targets are called `{}`: rename one", one.name);
                return Err(EngineError::failed("a target for each node", why));
            }
            all.push(one);
        }
    }
    Ok(all)
}

/// A machine, taken.
#[derive(Debug)]
pub enum Lease {
    /// By a lock on the machine itself, which a shell there holds.
    Shell(lease::Lease),
    /// Run by run, by its own agent: what is handed out waits until the machine is free.
    Agent,
}

/// What a machine says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// As uname(1) -m has it.
    pub architecture: String,
    /// As uname(1) -r has it.
    pub kernel: String,
    /// CPUs that are online.
    pub cpus: u32,
    /// Home folder of the user who logs in; empty where nobody does.
    pub home: String,
    /// Who holds it, if anybody does.
    pub held: Option<String>,
}

/// What lies on a machine, ready to be run.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The program there; none: the machine has its own.
    pub program: Option<String>,
    /// The campaign's file there.
    pub campaign: String,
    /// The folder of results there.
    pub folder: String,
}

/// A run that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// What was put there.
    pub placed: &'a Placed,
    /// And from here.
    pub load: &'a Load<'a>,
    /// Which run of the campaign.
    pub part: &'a str,
    /// Which of all that are made on this target, from 1.
    pub at: u32,
    /// Of how many.
    pub of: u32,
    /// Share of the campaign's lengths.
    pub scale: f64,
    /// When it is to begin, on the machine's CLOCK_REALTIME; none: as soon as it is ready.
    pub begin_at_ns: Option<i64>,
}

/// What is to be put on a machine.
#[derive(Clone, Debug)]
pub struct Load<'a> {
    /// This program.
    pub own: &'a Path,
    /// Static programs for other architectures.
    pub programs: &'a [(String, PathBuf)],
    /// The campaign's text.
    pub campaign: &'a str,
    /// Names the results of this fleet run there: letters and digits.
    pub identity: &'a str,
    /// The folder of results here, which holds nothing else.
    pub folder: &'a Path,
    /// A folder for what is noted of this target.
    pub notes: &'a Path,
}

/// What is done to a machine's power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// Off, and on again.
    Cycle,
}

/// A way to measure on one machine.
pub trait Engine: Send + Sync {
    /// What the machine is, and whether it is free. Under a lease: the machine that it holds.
    ///
    /// # Errors
    /// When it does not answer.
    fn list(&self, under: Option<&Lease>) -> Result<Facts, EngineError>;
    /// Takes the machine for itself; `heard` gets what is said while it waits.
    ///
    /// # Errors
    /// When somebody has it, or it does not answer.
    fn reserve(&self, heard: &mut dyn FnMut(&str)) -> Result<Lease, EngineError>;
    /// Puts program and campaign there.
    ///
    /// # Errors
    /// When there is no program for it, or the program does not start there.
    fn put(&self, lease: &Lease, facts: &Facts, load: &Load<'_>) -> Result<Placed, EngineError>;
    /// Makes a run under the lease; `heard` gets each line that is said. The exit status.
    ///
    /// # Errors
    /// [`EngineError::Lost`] when the lease ended before the run did.
    fn run(
        &self,
        lease: &mut Lease,
        task: &Task<'_>,
        heard: &mut dyn FnMut(&str),
    ) -> Result<i32, EngineError>;
    /// Brings the results here, whatever is there of them.
    ///
    /// # Errors
    /// When they cannot be read or written.
    fn get(&self, lease: &Lease, placed: &Placed, load: &Load<'_>) -> Result<(), EngineError>;
    /// Removes the results there, which are here by now, byte for byte.
    ///
    /// # Errors
    /// When they are not the same, or cannot be removed.
    fn forget(
        &self,
        _lease: &Lease,
        _placed: &Placed,
        _load: &Load<'_>,
    ) -> Result<(), EngineError> {
        // There are none elsewhere.
        Ok(())
    }
    /// Gives the machine back.
    fn release(&self, lease: Lease) {
        drop(lease);
    }
    /// Changes the power of a machine that nobody has, and waits until it answers again.
    ///
    /// # Errors
    /// When this engine cannot, somebody has it, or it does not answer.
    fn power(&self, what: Power, heard: &mut dyn FnMut(&str)) -> Result<(), EngineError>;
}

/// Why a target did not do it.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A person, or another fleet, has it.
    #[error("held: {0}")]
    Held(String),
    /// Its owner does not allow it.
    #[error("the machine's owner does not allow it: {0}")]
    Refused(String),
    /// The lease ended while a run was made.
    #[error("the lease was lost during the run, which is therefore invalid: {0}")]
    Lost(String),
    /// It cannot be reached, or what it says is of no use.
    #[error("{what}: {why}")]
    Failed {
        /// What was to be done.
        what: &'static str,
        /// Its own words.
        why: String,
    },
    /// Runs of two campaigns would be mixed.
    #[error(
        "{folder} holds runs of another campaign, or of another text of this one ({campaign}): give another --out"
    )]
    OtherCampaign {
        /// The fleet's folder.
        folder: PathBuf,
        /// The campaign it began with.
        campaign: PathBuf,
    },
    /// Some of the runs are of another time.
    #[error(
        "--aligned: {part} of {here} is there, and that of {open} is not: they would not have begun together; give another --out"
    )]
    NotTogether {
        /// The run.
        part: String,
        /// A target that has it.
        here: String,
        /// One that has not.
        open: String,
    },
    /// Nothing that runs there.
    #[error(
        "there is no program for {architecture}: name a static one in the table `programs` of the file of targets, {architecture} = \"FILE\""
    )]
    NoProgram {
        /// As uname(1) -m has it.
        architecture: String,
    },
    /// The engine has no such thing.
    #[error("an engine `{engine}` has no {what}")]
    Cannot {
        /// Which.
        engine: EngineName,
        /// What it lacks.
        what: &'static str,
    },
    /// A file here.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl EngineError {
    pub(crate) fn failed(what: &'static str, why: impl std::fmt::Display) -> Self {
        Self::Failed { what, why: why.to_string() }
    }

    pub(crate) fn file(path: &Path, source: std::io::Error) -> Self {
        Self::File { path: path.to_owned(), source }
    }
}
