// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiment on machines whose lateness is known: each change multiplies it.

use std::convert::Infallible;

use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::record::{LoadRecord, Round, ThreadRecord};
use tailbound_core::{EndReason, Run};
use tailbound_stats::compare::{Settings, Word};
use tailbound_stats::random::Random;

use super::{Bench, Design, ExperimentResult, Fate, Set, StageRuns, UNTOUCHED, costs, search};

/// A machine: 100 µs late, times the factor of each change that is made.
struct SyntheticMachine {
    factors: Vec<f64>,
    /// Changes that do the same thing: only the first of each group counts.
    same: Vec<Vec<usize>>,
    random: Random,
    /// A change that seems to help in the first stage, and by how much.
    lucky: Option<(usize, f64)>,
    /// A change with which one round is later.
    restless: Option<usize>,
    /// Ended by a signal at the stage of this number.
    until: usize,
    stages: Vec<(String, usize, u32)>,
}

fn known(factors: &[f64]) -> SyntheticMachine {
    SyntheticMachine {
        factors: factors.to_vec(),
        same: Vec::new(),
        lucky: None,
        restless: None,
        random: Random::new(7),
        until: usize::MAX,
        stages: Vec::new(),
    }
}

impl SyntheticMachine {
    fn factor(&self, set: &Set) -> f64 {
        let counts = |c: &&usize| {
            let group = self.same.iter().find(|g| g.contains(c));
            group.and_then(|g| g.iter().find(|m| set.members.contains(m))).is_none_or(|m| m == *c)
        };
        set.members.iter().filter(counts).filter_map(|c| self.factors.get(*c)).product()
    }

    fn run(&mut self, set: &Set, round: u32) -> Run {
        let mut run = crate::testing::run(Some(EndReason::Complete));
        let mut thread = ThreadRecord {
            thread: 0,
            cpu: Some(0),
            context: "user".into(),
            ended: "complete".into(),
            ..ThreadRecord::default()
        };
        let mut factor = self.factor(set);
        factor *= match self.lucky {
            Some((c, f)) if self.stages.len() == 1 && set.members.contains(&c) => f,
            // Later one round in six still is, so that no stage proves that it does nothing.
            Some((c, f)) if round % 6 == 3 && set.members.contains(&c) => f,
            _ => 1.0,
        };
        if self.restless.is_some_and(|c| set.members.contains(&c)) {
            factor *= if round == 3 { 1.3 } else { 1.0 };
        }
        for _ in 0..10_000 {
            // Some noise, the same for every set.
            let noise = 1.0 + self.random.below(1000).real() / 1000.0;
            thread.wakeup.add((100_000.0 * noise * factor).whole_u64().cast_signed());
        }
        run.threads = vec![thread];
        let count = if set.members.contains(&0) { 900 } else { 1000 };
        run.loads = vec![LoadRecord {
            load: 0,
            name: "hackbench".into(),
            t_ns: 0,
            span_ns: 1_000_000_000,
            count,
            unit: "messages".into(),
        }];
        run.header.round = Some(Round {
            series: "s".into(),
            variant: set.name.clone(),
            round,
            rounds: 6,
            place: 0,
            seed: 1,
        });
        run
    }
}

impl Bench for SyntheticMachine {
    type Error = Infallible;
    fn measure(&mut self, stage: &str, sets: &[Set], rounds: u32) -> Result<StageRuns, Infallible> {
        self.stages.push((stage.to_owned(), sets.len(), rounds));
        if self.stages.len() > self.until {
            return Ok(StageRuns { runs: Vec::new(), interrupted: true });
        }
        let mut runs = Vec::new();
        for round in 0..rounds {
            for set in sets {
                runs.push(self.run(set, round));
            }
        }
        Ok(StageRuns { runs, interrupted: false })
    }
}

fn found(machine: &mut SyntheticMachine) -> ExperimentResult {
    let names: Vec<String> = (0..machine.factors.len()).map(|i| format!("c{i}")).collect();
    let quick = Settings { replicates: 200, permutations: 200, ..Settings::default() };
    let Ok(found) = search(&names, &Design::of_rounds(6), &quick, machine);
    found
}

#[test]
fn what_helps_is_kept_and_the_rest_is_not() {
    let mut machine = known(&[0.5, 1.0, 1.5, 1.0, 0.7, 1.0, 1.0, 1.3]);
    let found = found(&mut machine);
    assert_eq!(found.kept(), [0, 4]);
    assert_eq!(found.tried[2].fate, Fate::Worse);
    assert_eq!(found.tried[7].fate, Fate::Worse);
    for same in [1, 3, 5, 6] {
        let fate = found.tried[same].fate;
        assert!(
            [Fate::NoDifference, Fate::Undecided, Fate::NoHelp].contains(&fate),
            "{same}: {fate:?}"
        );
    }
    let kept = found.confirmed().expect("a last stage");
    assert_eq!((kept.word(), kept.set.members.as_slice()), (Some(Word::Improvement), &[0, 4][..]));
    assert_eq!(kept.costs[0].load, "hackbench");
    assert!((kept.costs[0].ratio - 0.9).abs() < 1e-9, "what it costs is told");
    assert_eq!(found.without(0).and_then(|a| a.word()), Some(Word::Regression));
    let names: Vec<&str> = found.stages.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["1-alone", "2-together", "3-kept"]);
    assert_eq!(machine.stages[0], ("1-alone".to_owned(), 9, 6));
}

#[test]
fn of_many_the_better_half_goes_on_with_more_rounds() {
    let mut factors = vec![1.0; 15];
    factors[9] = 0.6;
    let mut machine = known(&factors);
    let found = found(&mut machine);
    assert_eq!(found.kept(), [9]);
    assert!(machine.stages.len() <= 5 && machine.stages.iter().all(|s| s.1 <= 16));
}

#[test]
fn two_that_do_the_same_are_one() {
    let mut machine = known(&[0.5, 0.5]);
    machine.same = vec![vec![0, 1]];
    let found = found(&mut machine);
    assert_eq!(found.kept().len(), 1, "{:?}", found.tried);
}

#[test]
fn where_nothing_helps_nothing_is_kept() {
    let mut machine = known(&[1.0, 1.0, 1.2]);
    let found = found(&mut machine);
    assert!(found.kept().is_empty());
    assert!(found.tried.iter().all(|t| t.fate != Fate::Open), "{:?}", found.tried);
}

#[test]
fn an_interrupted_experiment_keeps_nothing() {
    for until in 0..3 {
        let mut machine = known(&[0.5, 0.7]);
        machine.until = until;
        let found = found(&mut machine);
        assert!(found.interrupted && found.kept().is_empty(), "{until}");
        assert_eq!(found.stages.len(), until);
    }
}

#[test]
fn costs_are_of_the_same_round() {
    let mut machine = known(&[0.5]);
    let untouched = Set { name: UNTOUCHED.into(), members: Vec::new() };
    let one = Set { name: "c0".into(), members: vec![0] };
    let runs = vec![machine.run(&untouched, 0), machine.run(&one, 1)];
    assert!(costs(&runs, UNTOUCHED, "c0").is_empty());
}

#[test]
fn only_those_that_were_left_have_an_answer_without_them() {
    let found = found(&mut known(&[0.5, 0.6, 1.5]));
    assert_eq!(found.kept(), [0, 1]);
    assert!(found.without(2).is_none() && found.without(1).is_some());
}

#[test]
fn one_stage_of_luck_keeps_nothing() {
    // The second changes nothing; the noise of the first stage makes it look as if it did.
    let mut machine = known(&[0.5, 1.0]);
    machine.lucky = Some((1, 0.8));
    let found = found(&mut machine);
    assert_eq!(found.alone(1).and_then(|(_, a)| a.word()), Some(Word::Improvement));
    assert_eq!(found.kept(), [0], "{:?}", found.tried);
    assert_eq!(found.tried[1].fate, Fate::Undecided);
    assert!(found.stages.iter().any(|s| s.name == "3-open"));
}

#[test]
fn what_its_runs_cannot_say_is_undecided() {
    let mut machine = known(&[1.0, 0.5]);
    machine.restless = Some(0);
    let found = found(&mut machine);
    assert_eq!(found.alone(0).and_then(|(_, a)| a.word()), Some(Word::Inconclusive));
    assert_eq!(found.tried[0].fate, Fate::Undecided);
    assert_eq!(found.kept(), [1]);
}
