// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of changes in the lab: settings in the guest, boot parameters, other kernels. A round is a
//! seed; the runs of a stage are made in parallel, for no figure depends on it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tailbound_core::Run;
use tailbound_core::plan::RunConfig;
use tailbound_core::record::Round;
use tailbound_lab::{Cell, Request, System, keep};
use tailbound_series::auto::{Bench, Design, DesignError, Set, StageRuns, search};
use tailbound_series::rounds::ROUNDS_MAX;
use tailbound_sys::new_file::Existing;
use tailbound_tune::Recipe;
use tailbound_tune::candidates::{Candidate, profile};

use super::answer::{self, Asked};
use super::{LAB_LOOPS, made, too_short};
use crate::cli_tune_auto::AutoArgs;
use crate::cmd::lab::bench;
use crate::say::{self, Failure};

/// Where nobody says how many: the fewest that `compare` gives intervals for.
const LAB_ROUNDS: u32 = 6;

/// The lab.
pub(super) struct Lab<'a> {
    pub(super) candidates: &'a [Candidate],
    pub(super) args: &'a AutoArgs,
    pub(super) config: RunConfig,
    pub(super) folder: &'a Path,
    pub(super) first_seed: u32,
    pub(super) bench: tailbound_lab::Bench<'a>,
}

impl Lab<'_> {
    /// What the lab is asked for: one system for each set.
    fn request(&self, sets: &[Set], seed: u32) -> Request {
        let base = self.args.kernel.clone().unwrap_or_default();
        let mut request = Request {
            rt_cpus: self.args.rt_cpus.clone(),
            smp: self.args.smp,
            seed: Some(seed),
            guest: self.args.host.guest.clone(),
            campaign: self.config.clone(),
            ..Request::default()
        };
        if !self.args.load.is_empty() {
            request.loads = vec![self.args.load.join(",")];
        }
        for set in sets {
            let members: Vec<&Candidate> =
                set.members.iter().filter_map(|c| self.candidates.get(*c)).collect();
            let append: Vec<&str> =
                members.iter().map(|c| c.append.as_str()).filter(|a| !a.is_empty()).collect();
            let tune = profile(&set.name, &members).map(|written| {
                request.profiles.insert(set.name.clone(), Recipe::of(&written).profile);
                set.name.clone()
            });
            // Of two kernels only one can boot: the last that was named.
            let kernel = members.iter().rev().find_map(|c| c.kernel.clone());
            request.systems.push(System {
                kernel: kernel.unwrap_or_else(|| base.clone()),
                append: append.join(" "),
                tune,
                name: Some(set.name.clone()),
                ..System::default()
            });
        }
        request
    }

    fn cells(&self, sets: &[Set], seed: u32) -> Result<Vec<Cell>, Failure> {
        let request = self.request(sets, seed);
        let labelled = request.cells(&mut |name, arch| self.bench.obtain(name, arch))?;
        Ok(labelled.into_iter().map(|l| l.cell).collect())
    }
}

impl Bench for Lab<'_> {
    type Error = Failure;

    fn measure(&mut self, stage: &str, sets: &[Set], rounds: u32) -> Result<StageRuns, Failure> {
        let names: Vec<&str> = sets.iter().map(|s| s.name.as_str()).collect();
        if !self.args.host.quiet {
            say::note(&format!("Stage {stage}, {rounds} rounds: {}", names.join(", ")));
        }
        let emulator = self.bench.ready(&self.request(sets, self.first_seed))?;
        let mut all = Vec::new();
        for round in 0..rounds {
            // Every stage has seeds of its own: what is kept is not judged by the runs that chose it.
            all.extend(self.cells(sets, self.first_seed + round)?);
        }
        self.first_seed += rounds;
        let mut runs: Vec<(usize, Run)> = Vec::new();
        let mut broken = None;
        let folder = self.folder.join(stage);
        let made = self.bench.make(&all, &emulator, &mut |at, made| {
            let (round, place) = (at / sets.len(), at % sets.len());
            let name = names.get(place).copied().unwrap_or_default();
            match made {
                Ok(mut made) => {
                    made.run.header.round = Some(Round {
                        series: stage.to_owned(),
                        variant: name.to_owned(),
                        round: u32::try_from(round).unwrap_or(u32::MAX),
                        rounds,
                        place: u32::try_from(place).unwrap_or(u32::MAX),
                        seed: 0,
                    });
                    let file = folder.join(format!("{:03}-{name}.tailbound.jsonl", round + 1));
                    let kept = keep(&file, &made.run, &made.console, Existing::Replace);
                    if let Err(e) = kept.map_err(Failure::from) {
                        broken.get_or_insert(e);
                    }
                    let note = made.summary(&format!("round {}, {name}", round + 1));
                    runs.push((at, made.run));
                    note
                }
                Err(e) => {
                    let note = format!("round {}, {name}: {e}", round + 1);
                    broken.get_or_insert_with(|| Failure::cannot(&note));
                    note
                }
            }
        });
        match made {
            Err(e) if e.is_cut_off() => {
                return Ok(StageRuns { runs: Vec::new(), interrupted: true });
            }
            made => made?,
        }
        if let Some(failure) = broken {
            return Err(failure);
        }
        runs.sort_by_key(|(at, _)| *at);
        Ok(StageRuns { runs: runs.into_iter().map(|(_, r)| r).collect(), interrupted: false })
    }
}

/// `tailbound tune auto --lab`
pub(super) fn auto(
    args: &AutoArgs,
    candidates: Vec<Candidate>,
    config: RunConfig,
    folder: PathBuf,
    settings: &tailbound_stats::compare::Settings,
) -> Result<ExitCode, Failure> {
    if candidates.is_empty() {
        return Err(too_short(DesignError::Nothing));
    }
    let rounds = args.rounds.unwrap_or(LAB_ROUNDS);
    if !(LAB_ROUNDS..=ROUNDS_MAX).contains(&rounds) {
        return Err(Failure::usage(format!(
            "--rounds {rounds}: write {LAB_ROUNDS} or more: fewer give no intervals"
        )));
    }
    let design = Design::of_rounds(rounds);
    let config = RunConfig { loops: Some(args.loops.unwrap_or(LAB_LOOPS)), ..config };
    let folder = made(folder)?;
    let names: Vec<String> = candidates.iter().map(|c| c.name.clone()).collect();
    let mut lab = Lab {
        candidates: &candidates,
        args,
        config,
        folder: &folder,
        first_seed: u32::try_from(args.judge.seed.unwrap_or(1)).unwrap_or(1),
        bench: bench(&args.host)?,
    };
    let found = search(&names, &design, settings, &mut lab)?;
    let (notes, settings) = (Vec::new(), *settings);
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
