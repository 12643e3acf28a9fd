// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of many changes make a kernel less late, asked in the lab: settings in the guest, boot parameters, other kernels. A
//! round is a seed; the runs of a stage are made in parallel, for no figure depends on it.
//!
//! Not here: which sets of changes are measured, and who is kept (`tailbound_series::auto`).

use std::path::{Path, PathBuf};
use tailbound_core::order;

use tailbound_core::Run;
use tailbound_core::plan::RunConfig;
use tailbound_core::record::Round;
use tailbound_lab::{Bench, Cell, LabError, Request, System, keep};
use tailbound_series::auto::{self, Design, DesignError, ExperimentResult, Set, StageRuns};
use tailbound_series::rounds::ROUNDS_MAX;
use tailbound_stats::compare::Settings;
use tailbound_sys::new_file::Existing;
use tailbound_tune::candidates::{Candidate, profile};
use tailbound_tune::{Recipe, Written};

use crate::error::SearchError;

/// Where nobody says how many: the fewest that `compare` gives intervals for.
const ROUNDS: u32 = 6;

/// What is measured, and how.
#[derive(Clone, Debug)]
pub struct ChangesRequest {
    /// The kernel of sets that name none.
    pub kernel: String,
    /// CPUs of the guest for real-time work, as a list.
    pub rt_cpus: Option<String>,
    /// CPUs of the guest.
    pub smp: Option<u32>,
    /// The program of the guest.
    pub guest: Option<PathBuf>,
    /// What runs beside; none: the lab's own.
    pub loads: Vec<String>,
    /// The measurement.
    pub config: RunConfig,
    /// Rounds of the first stage.
    pub rounds: Option<u32>,
    /// Of the first round.
    pub first_seed: u32,
    /// Where files go.
    pub folder: PathBuf,
}

/// What a search for changes needs from the program that makes it.
pub struct ChangesCaller<'a> {
    /// Opens the lab.
    pub open: &'a dyn Fn() -> Result<Bench<'a>, LabError>,
    /// Hears what is worth knowing.
    pub note: &'a dyn Fn(&str),
}

impl std::fmt::Debug for ChangesCaller<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangesCaller").finish_non_exhaustive()
    }
}

/// Searches among `candidates`, whose runs are judged by `settings`.
///
/// # Errors
/// Words that are wrong; a guest that was not measured.
pub fn changes(
    request: &ChangesRequest,
    candidates: &[Candidate],
    settings: &Settings,
    caller: &ChangesCaller<'_>,
) -> Result<(Design, ExperimentResult), SearchError> {
    if candidates.is_empty() {
        return Err(DesignError::Nothing.into());
    }
    let rounds = request.rounds.unwrap_or(ROUNDS);
    if !(ROUNDS..=ROUNDS_MAX).contains(&rounds) {
        return Err(SearchError::TooFewRounds { rounds, least: ROUNDS });
    }
    let design = Design::of_rounds(rounds);
    let folder = &request.folder;
    std::fs::create_dir_all(folder).map_err(|e| LabError::file(folder, e))?;
    let names: Vec<String> = candidates.iter().map(|c| c.name.clone()).collect();
    let mut stages = Stages {
        request,
        candidates,
        next_seed: request.first_seed,
        bench: (caller.open)()?,
        note: caller.note,
    };
    let found = auto::search(&names, &design, settings, &mut stages)?;
    Ok((design, found))
}

/// The stages in the lab, one after the other.
struct Stages<'a> {
    request: &'a ChangesRequest,
    candidates: &'a [Candidate],
    next_seed: u32,
    bench: Bench<'a>,
    note: &'a dyn Fn(&str),
}

/// What the lab is asked for: one system for each set.
fn lab_request(
    asked: &ChangesRequest,
    candidates: &[Candidate],
    sets: &[Set],
    seed: u32,
) -> Request {
    let mut request = Request {
        rt_cpus: asked.rt_cpus.clone(),
        smp: asked.smp,
        seed: Some(seed),
        guest: asked.guest.clone(),
        campaign: asked.config.clone(),
        ..Request::default()
    };
    if !asked.loads.is_empty() {
        request.loads = vec![asked.loads.join(",")];
    }
    // To apply a profile takes time and memory of a guest, and shows in what it measures. So where some change is a setting,
    // a set without settings applies a profile without any.
    let is_set = candidates.iter().any(|c| !c.settings.settings.is_empty());
    for set in sets {
        let members: Vec<&Candidate> =
            set.members.iter().filter_map(|c| candidates.get(*c)).collect();
        let append: Vec<&str> =
            members.iter().map(|c| c.append.as_str()).filter(|a| !a.is_empty()).collect();
        let none = is_set.then(|| Written { name: set.name.clone(), ..Written::default() });
        let tune = profile(&set.name, &members).or(none).map(|written| {
            request.profiles.insert(set.name.clone(), Recipe::of(&written).profile);
            set.name.clone()
        });
        // Of two kernels only one can boot: the last that was named.
        let kernel = members.iter().rev().find_map(|c| c.kernel.clone());
        request.systems.push(System {
            kernel: kernel.unwrap_or_else(|| asked.kernel.clone()),
            append: append.join(" "),
            tune,
            name: Some(set.name.clone()),
            ..System::default()
        });
    }
    request
}

impl Stages<'_> {
    fn lab_request(&self, sets: &[Set], seed: u32) -> Request {
        lab_request(self.request, self.candidates, sets, seed)
    }

    fn cells(&self, sets: &[Set], seed: u32) -> Result<Vec<Cell>, LabError> {
        let request = self.lab_request(sets, seed);
        let labelled = request.cells(&mut |name, arch| self.bench.obtain(name, arch))?;
        Ok(labelled.into_iter().map(|l| l.cell).collect())
    }
}

impl auto::Bench for Stages<'_> {
    type Error = SearchError;

    fn measure(
        &mut self,
        stage: &str,
        sets: &[Set],
        rounds: u32,
    ) -> Result<StageRuns, SearchError> {
        let names: Vec<&str> = sets.iter().map(|s| s.name.as_str()).collect();
        (self.note)(&format!("Stage {stage}, {rounds} rounds: {}", names.join(", ")));
        let emulator = self.bench.ready(&self.lab_request(sets, self.next_seed))?;
        let mut all = Vec::new();
        for round in 0..rounds {
            // Every stage has seeds of its own: what is kept is not judged by the runs that chose it.
            all.extend(self.cells(sets, self.next_seed + round)?);
        }
        self.next_seed += rounds;
        let mut runs: Vec<(usize, Run)> = Vec::new();
        let mut broken = None;
        let folder = self.request.folder.join(stage);
        let made = self.bench.make(&all, &emulator, &mut |at, made| {
            let (round, place) = (at / sets.len(), at % sets.len());
            let name = names.get(place).copied().unwrap_or_default();
            match made {
                Ok(mut made) => {
                    made.run.header.round = Some(round_of(stage, name, (round, rounds), place));
                    let file = run_file(&folder, round, name);
                    let kept = keep(&file, &made.run, &made.console, Existing::Replace);
                    if let Err(e) = kept.map_err(SearchError::from) {
                        broken.get_or_insert(e);
                    }
                    let note = made.summary(&format!("round {}, {name}", round + 1));
                    runs.push((at, made.run));
                    note
                }
                Err(e) => {
                    let (set, why) = (name.to_owned(), e.to_string());
                    let failed = SearchError::RoundFailed { round: round + 1, set, why };
                    let note = failed.to_string();
                    broken.get_or_insert(failed);
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
        order::by_key(&mut runs, |(at, _)| *at);
        Ok(StageRuns { runs: runs.into_iter().map(|(_, r)| r).collect(), interrupted: false })
    }
}

fn run_file(folder: &Path, round: usize, name: &str) -> PathBuf {
    folder.join(format!("{:03}-{name}.tailbound.jsonl", round + 1))
}

/// The place of a run among those of its stage; `round` is which of how many.
fn round_of(stage: &str, name: &str, (round, rounds): (usize, u32), place: usize) -> Round {
    Round {
        series: stage.to_owned(),
        variant: name.to_owned(),
        round: u32::try_from(round).unwrap_or(u32::MAX),
        rounds,
        place: u32::try_from(place).unwrap_or(u32::MAX),
        seed: 0,
    }
}

#[cfg(test)]
mod tests {
    use tailbound_core::FailureKind;
    use tailbound_tune::candidates::{CandidateWords, asked};

    use super::*;

    fn request() -> ChangesRequest {
        ChangesRequest {
            kernel: "debian:6.12-rt".to_owned(),
            rt_cpus: Some("1".to_owned()),
            smp: Some(2),
            guest: None,
            loads: vec!["hackbench".to_owned(), "memory".to_owned()],
            config: RunConfig::default(),
            rounds: None,
            first_seed: 7,
            folder: PathBuf::from("/nowhere"),
        }
    }

    fn candidates() -> Vec<Candidate> {
        let words = CandidateWords {
            append: vec!["nosmt".to_owned(), "idle=poll".to_owned()],
            kernel: vec!["debian:6.1-rt".to_owned()],
            ..CandidateWords::default()
        };
        asked(&words, &|_| true).expect("candidates")
    }

    #[test]
    fn a_set_is_a_system_with_all_its_boot_parameters_and_its_last_kernel() {
        let candidates = candidates();
        let at = |append: &str| candidates.iter().position(|c| c.append == append).expect(append);
        let kernel = candidates.iter().position(|c| c.kernel.is_some()).expect("a kernel");
        let set = |name: &str, members| Set { name: name.to_owned(), members };
        let both = set("both", vec![at("nosmt"), at("idle=poll"), kernel]);
        let got = lab_request(&request(), &candidates, &[set("untouched", vec![]), both], 9);
        assert_eq!(
            (got.seed, got.smp, got.loads),
            (Some(9), Some(2), vec!["hackbench,memory".to_owned()])
        );
        let [untouched, both] = &got.systems[..] else { panic!("{:?}", got.systems) };
        assert_eq!((untouched.kernel.as_str(), untouched.append.as_str()), ("debian:6.12-rt", ""));
        assert_eq!(
            (both.kernel.as_str(), both.append.as_str()),
            ("debian:6.1-rt", "nosmt idle=poll")
        );
        assert_eq!(both.name.as_deref(), Some("both"));
        assert_eq!((untouched.tune.as_deref(), both.tune.as_deref()), (None, None));
    }

    #[test]
    fn where_a_change_is_a_setting_every_set_applies_a_profile() {
        let words = CandidateWords {
            append: vec!["nosmt".to_owned()],
            set: vec!["swappiness=9".to_owned()],
            ..CandidateWords::default()
        };
        let candidates = asked(&words, &|_| true).expect("candidates");
        let sets = ["untouched", "0", "1"]
            .map(|name| Set { name: name.to_owned(), members: name.parse().into_iter().collect() });
        let got = lab_request(&request(), &candidates, &sets, 9);
        for system in &got.systems {
            let profile = system.tune.as_ref().and_then(|name| got.profiles.get(name));
            let members = system.name.as_deref().and_then(|n| n.parse::<usize>().ok());
            let is_set = members.is_some_and(|c| candidates[c].append.is_empty());
            let text = profile.expect("a profile");
            assert_eq!(text.contains("swappiness"), is_set, "{system:?}");
        }
    }

    #[test]
    fn too_few_rounds_and_no_changes_are_refused_before_anything_is_opened() {
        let open = || panic!("the lab is opened");
        let caller = ChangesCaller { open: &open, note: &|_| {} };
        let settings = Settings::default();
        let few = ChangesRequest { rounds: Some(5), ..request() };
        for (request, candidates) in [(few, candidates()), (request(), Vec::new())] {
            let e = changes(&request, &candidates, &settings, &caller).expect_err("refused");
            assert_eq!(e.kind(), FailureKind::Usage, "{e}");
        }
    }
}
