// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stage by stage: what is measured, and who goes on.
//!
//! | stage | sets in each round | who goes on |
//! |---|---|---|
//! | `alone` | untouched, each candidate | the better half; each improvement too, where no more than 6 go on; a regression never |
//! | `again` (while more than 6 are left) | untouched, each that is left, twice the rounds | as above |
//! | `together` | untouched, all that are left, all but each | whose absence is a regression |
//! | `open` (for those undecided that improved alone) | untouched, these and those whose absence is a regression, all but each undecided one, twice the rounds | as above |
//! | `kept` | untouched, what is kept, twice the rounds | all, if that is an improvement; else nobody |

use tailbound_core::Run;
use tailbound_stats::compare::{Settings, Systems, Word};

use super::cost::costs;
use super::design::{Design, TOGETHER_MAX, half};
use super::found::{Answered, CandidateRecord, ExperimentResult, Fate, Stage};
use super::{Bench, Set};

/// The name of the set without changes.
pub const UNTOUCHED: &str = "untouched";
/// The name of the set of all that are left.
const ALL: &str = "all";

/// Runs the experiment over candidates of these names.
///
/// # Errors
/// When a run cannot be made.
pub fn search<B: Bench>(
    names: &[String],
    design: &Design,
    settings: &Settings,
    bench: &mut B,
) -> Result<ExperimentResult, B::Error> {
    let tried = (0..names.len()).map(|candidate| CandidateRecord { candidate, fate: Fate::Open });
    let found = ExperimentResult { tried: tried.collect(), ..ExperimentResult::default() };
    let mut search = Search { names, settings, bench, found };
    search.all(design)?;
    Ok(search.found)
}

struct Search<'a, B> {
    names: &'a [String],
    settings: &'a Settings,
    bench: &'a mut B,
    found: ExperimentResult,
}

impl<B: Bench> Search<'_, B> {
    fn all(&mut self, design: &Design) -> Result<(), B::Error> {
        let mut left: Vec<usize> = (0..self.names.len()).collect();
        let mut rounds = design.rounds;
        let mut name = "alone";
        loop {
            let sets = left.iter().map(|c| self.single(*c)).collect();
            let Some(stage) = self.stage(name, sets, rounds, UNTOUCHED)? else { return Ok(()) };
            left = self.better_half(stage, &left);
            if left.len() <= TOGETHER_MAX {
                break;
            }
            (rounds, name) = (rounds.saturating_mul(2), "again");
        }
        if left.len() > 1 {
            let Some(helping) = self.together(&left, design.rounds)? else { return Ok(()) };
            left = helping;
        }
        // A single one that is no improvement has no chance, and is not measured again.
        if left.is_empty() || (left.len() == 1 && !left.iter().any(|c| self.has_improved(*c))) {
            for candidate in left {
                let fate = idle(self.word_alone(candidate), Fate::NoHelp);
                set(&mut self.found, candidate, fate);
            }
            return Ok(());
        }
        let kept = Set { name: "kept".to_owned(), members: left.clone() };
        let Some(stage) = self.stage("kept", vec![kept], design.last_rounds, UNTOUCHED)? else {
            return Ok(());
        };
        let word = self.found.stages.get(stage).and_then(|s| s.answers.first()?.word());
        let fate = if word == Some(Word::Improvement) { Fate::Kept } else { Fate::NotConfirmed };
        left.iter().for_each(|c| set(&mut self.found, *c, fate));
        Ok(())
    }

    fn single(&self, candidate: usize) -> Set {
        let name = self.names.get(candidate).cloned().unwrap_or_default();
        Set { name, members: vec![candidate] }
    }

    fn word_alone(&self, candidate: usize) -> Option<Word> {
        self.found.alone(candidate).and_then(|(_, a)| a.word())
    }

    /// Measures the untouched system and `sets` in turn; its place among the stages, or `None` if it was
    /// interrupted.
    fn stage(
        &mut self,
        name: &str,
        mut sets: Vec<Set>,
        rounds: u32,
        reference: &str,
    ) -> Result<Option<usize>, B::Error> {
        sets.insert(0, Set { name: UNTOUCHED.to_owned(), members: Vec::new() });
        let name = format!("{}-{name}", self.found.stages.len() + 1);
        let measured = self.bench.measure(&name, &sets, rounds)?;
        if measured.interrupted {
            self.found.interrupted = true;
            return Ok(None);
        }
        let answers = self.judged(&sets, measured.runs, reference);
        let all = sets.into_iter().find(|s| s.name == reference).map(|s| s.members);
        self.found.stages.push(Stage {
            name,
            rounds,
            reference: reference.to_owned(),
            all: all.unwrap_or_default(),
            answers,
        });
        Ok(Some(self.found.stages.len() - 1))
    }

    fn judged(&self, sets: &[Set], runs: Vec<Run>, reference: &str) -> Vec<Answered> {
        let others: Vec<&Set> = sets.iter().filter(|s| s.name != reference).collect();
        let cost: Vec<_> = others.iter().map(|s| costs(&runs, reference, &s.name)).collect();
        let mut order = vec![reference.to_owned()];
        order.extend(others.iter().map(|s| s.name.clone()));
        let differences = match Systems::of(&[(String::new(), runs)], &order) {
            Ok(systems) => systems.differences(self.settings),
            Err(e) => vec![Err(e); others.len()],
        };
        let answer = |((set, difference), costs): ((&&Set, _), _)| Answered {
            set: (*set).clone(),
            difference,
            costs,
        };
        others.iter().zip(differences).zip(cost).map(answer).collect()
    }

    fn better_half(&mut self, stage: usize, left: &[usize]) -> Vec<usize> {
        let answers =
            self.found.stages.get(stage).map(|s| s.answers.as_slice()).unwrap_or_default();
        let mut ranked: Vec<(usize, f64, Option<Word>)> = answers
            .iter()
            .filter_map(|a| Some((*a.set.members.first()?, a.score(), a.word())))
            .collect();
        ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut on = Vec::new();
        let mut fates = Vec::new();
        for (place, (candidate, score, word)) in ranked.into_iter().enumerate() {
            match word {
                Some(Word::Regression) => fates.push((candidate, Fate::Worse)),
                Some(Word::Improvement) => on.push(candidate),
                _ if place < half(left.len()) && score < 0.0 => on.push(candidate),
                _ => fates.push((candidate, idle(word, Fate::NoDifference))),
            }
        }
        if on.len() > TOGETHER_MAX {
            let least = on.split_off(half(left.len()).min(on.len()));
            fates.extend(least.into_iter().map(|c| (c, Fate::OthersHelpMore)));
        }
        fates.into_iter().for_each(|(c, fate)| set(&mut self.found, c, fate));
        on
    }

    /// Those whose absence is felt; `None` if it was interrupted.
    fn together(&mut self, left: &[usize], rounds: u32) -> Result<Option<Vec<usize>>, B::Error> {
        let Some(_) = self.left_out("together", left, left, rounds)? else { return Ok(None) };
        let (mut helping, mut open) = (Vec::new(), Vec::new());
        for candidate in left {
            match self.word_without(*candidate) {
                Some(Word::Regression) => helping.push(*candidate),
                // One stage of luck would be enough for it to be kept.
                Some(Word::Inconclusive) if self.has_improved(*candidate) => open.push(*candidate),
                word => set(&mut self.found, *candidate, idle(word, Fate::NoHelp)),
            }
        }
        let all: Vec<usize> =
            left.iter().copied().filter(|c| helping.contains(c) || open.contains(c)).collect();
        if all.len() == 1 {
            // The last stage asks the same.
            helping = all;
        } else if !open.is_empty() {
            let twice = rounds.saturating_mul(2);
            let Some(_) = self.left_out("open", &all, &open, twice)? else { return Ok(None) };
            for candidate in open {
                match self.word_without(candidate) {
                    Some(Word::Regression) => helping.push(candidate),
                    word => set(&mut self.found, candidate, idle(word, Fate::NoHelp)),
                }
            }
            helping.sort_unstable();
        }
        // Each can stand in for another: then the one that does most alone is enough.
        if helping.is_empty() {
            let score = |c: &usize| self.found.alone(*c).map_or(0.0, |(_, a)| a.score());
            let improved = left.iter().filter(|c| self.has_improved(**c));
            let best = improved.min_by(|a, b| score(a).total_cmp(&score(b)));
            if let Some(best) = best.copied() {
                set(&mut self.found, best, Fate::Open);
                helping.push(best);
            }
        }
        Ok(Some(helping))
    }

    /// Measures `all` together, and all but each of `out`.
    fn left_out(
        &mut self,
        name: &str,
        all: &[usize],
        out: &[usize],
        rounds: u32,
    ) -> Result<Option<usize>, B::Error> {
        let mut sets = vec![Set { name: ALL.to_owned(), members: all.to_vec() }];
        for candidate in out {
            let members = all.iter().copied().filter(|c| c != candidate).collect();
            let name = self.names.get(*candidate).map_or("", String::as_str);
            sets.push(Set { name: format!("no-{name}"), members });
        }
        self.stage(name, sets, rounds, ALL)
    }

    fn word_without(&self, candidate: usize) -> Option<Word> {
        self.found.without(candidate).and_then(Answered::word)
    }

    fn has_improved(&self, candidate: usize) -> bool {
        self.word_alone(candidate) == Some(Word::Improvement)
    }
}

/// The fate of one that goes on no further and is not worse: `equivalent` if its runs say so.
fn idle(word: Option<Word>, equivalent: Fate) -> Fate {
    match word {
        Some(Word::Inconclusive) | None => Fate::Undecided,
        _ => equivalent,
    }
}

fn set(found: &mut ExperimentResult, candidate: usize, fate: Fate) {
    if let Some(tried) = found.tried.iter_mut().find(|t| t.candidate == candidate) {
        tried.fate = fate;
    }
}
