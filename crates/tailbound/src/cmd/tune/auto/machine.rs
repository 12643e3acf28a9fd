// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of changes on this machine: each run applies its own and undoes it, in a process of its own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tailbound_core::plan::RunConfig;
use tailbound_core::units::format_span;
use tailbound_host::Root;
use tailbound_run::{Request, resolve};
use tailbound_series::auto::{Bench, Set, StageRuns};
use tailbound_series::rounds::{self as series, Series, SeriesLine, Variant};
use tailbound_tune::Recipe;
use tailbound_tune::candidates::{Candidate, profile};

use crate::caller::Machine;
use crate::input::{self, Existing};
use crate::say::{self, Failure};

/// This machine.
pub(super) struct Here<'a> {
    pub(super) candidates: &'a [Candidate],
    pub(super) rt_cpus: &'a str,
    pub(super) config: &'a RunConfig,
    pub(super) folder: &'a Path,
    pub(super) seed: u64,
    pub(super) force: bool,
    pub(super) quiet: bool,
    caller: Machine,
}

impl<'a> Here<'a> {
    pub(super) fn new(
        candidates: &'a [Candidate],
        config: (&'a RunConfig, &'a str),
        folder: &'a Path,
        seed: u64,
    ) -> Self {
        let (config, rt_cpus) = config;
        let caller = Machine::default();
        Self { candidates, rt_cpus, config, folder, seed, force: false, quiet: false, caller }
    }

    fn variant(&self, set: &Set) -> Result<Variant, Failure> {
        let members: Vec<&Candidate> =
            set.members.iter().filter_map(|c| self.candidates.get(*c)).collect();
        let mut words = Vec::new();
        let mut config = self.config.clone();
        if let Some(written) = profile(&set.name, &members) {
            let file = self.folder.join(format!("{}.toml", set.name));
            let file = std::path::absolute(&file).map_err(Failure::cannot)?;
            input::write(&file, &Recipe::of(&written).profile, Existing::Replace)?;
            let file = file.display().to_string();
            config.tune = Some(file.clone());
            config.rt_cpus = Some(self.rt_cpus.to_owned());
            words.extend(["--tune".to_owned(), file]);
            words.extend(["--rt-cpus".to_owned(), self.rt_cpus.to_owned()]);
        }
        let plan = resolve(&Request { config, bare: false }, &Root::real())?.plan;
        Ok(Variant { name: set.name.clone(), words, plan })
    }

    /// What all runs have in common, in a file beside them.
    fn common(&self) -> Result<Vec<OsString>, Failure> {
        let file: PathBuf = self.folder.join("measurement.toml");
        let text = self.config.to_toml().map_err(Failure::cannot)?;
        input::write(&file, &text, Existing::Replace)?;
        Ok(vec!["--config".into(), file.into()])
    }
}

impl Bench for Here<'_> {
    type Error = Failure;

    fn measure(&mut self, stage: &str, sets: &[Set], rounds: u32) -> Result<StageRuns, Failure> {
        let variants = sets.iter().map(|s| self.variant(s)).collect::<Result<Vec<_>, _>>()?;
        let folder = self.folder.join(stage);
        let mut series = Series {
            id: format!("{stage}-{}", std::process::id()),
            seed: self.seed,
            rounds,
            folder,
            variants,
        };
        series.settle(Some(self.seed), Existing::replaced_if(self.force))?;
        let names: Vec<&str> = sets.iter().map(|s| s.name.as_str()).collect();
        if !self.quiet {
            say::note(&format!("Stage {stage}: {}", names.join(", ")));
        }
        let mut shown = SeriesLine(say::progress(self.quiet));
        let common = self.common()?;
        let made = series::make(&series, &common, &mut self.caller, &mut shown);
        shown.clear();
        if made? {
            return Ok(StageRuns { runs: Vec::new(), interrupted: true });
        }
        let runs = input::runs(&input::in_folder(&series.folder)?)?;
        let asked =
            |r: &tailbound_core::Run| r.header.round.as_ref().is_some_and(|x| x.round < rounds);
        Ok(StageRuns { runs: runs.into_iter().filter(asked).collect(), interrupted: false })
    }
}

/// The words for the length of one measurement.
pub(super) fn length(run_ns: i64) -> String {
    // Whole milliseconds read better, and lose nothing.
    format_span(run_ns / 1_000_000 * 1_000_000).replace(' ', "")
}
