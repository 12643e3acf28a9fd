// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which candidates are tried next.
//!
//! Candidates come in generations of a fixed size: each is made when all results of the one before
//! are known, so that neither the number of cores nor the order in which guests end matters. Parents are the
//! latest, those with the longest sections, and those that showed sections which no earlier one had: a path that
//! was never seen may be the way to a late one without being late itself. Of one set of loads there are few parents.
//! Where it is known which code of the kernel each executed, those that were the first to reach some are parents too, and
//! half of all candidates are sequences of system calls made of such: each condition that a call meets shows.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use tailbound_core::order;

use crate::hunt::candidate::{Candidate, Entry, Figures, Origin, Outcome};
use crate::hunt::code::Code;
use crate::hunt::random::Random;
use crate::hunt::reached::{Among, Reached};
use crate::hunt::space::Space;
use crate::hunt::vary;

/// Candidates of a generation.
pub const GENERATION: usize = 16;
/// Parents that are kept: the latest, those with the longest sections, those that brought new pairs.
const LATEST: usize = 12;
const LONGEST: usize = 6;
const NEW: usize = 24;
/// Most parents of one set of loads: the twelve latest would soon be one and the same with another interval.
const ALIKE: usize = 3;
/// Of a hundred choices of a parent, those that fall on the latest whatever else there is.
const FIRST: u64 = 30;
/// Of a hundred candidates: drawn, and crossed.
const DRAWN: u64 = 15;
const CROSSED: u64 = 30;
/// And sequences of system calls alone. There are more of them than of everything else, each takes little time, and beside a load that
/// keeps the kernel busy most of what they do is not seen.
const SEQUENCES: u64 = 25;
/// The same where it is known which code each reached; and of those, drawn and made of two.
const SEQUENCES_LED: u64 = 50;
const SEQUENCES_DRAWN: u64 = 25;
const SEQUENCES_CROSSED: u64 = 25;
/// Of a hundred candidates: changes of any that was the first to reach some code.
const REACHED: u64 = 10;
/// How often another one is made where one was tried before.
const TRIES: usize = 200;

/// Runs candidates.
pub trait Evaluator {
    /// Runs them, in any order, and tells the results in theirs. May end early: then those told are the first ones.
    fn evaluate(&mut self, batch: &[Candidate], told: &mut dyn FnMut(Outcome)) -> End;
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Everything asked for was done.
    Done,
    /// The evaluator ended before that.
    Early,
}

/// A line of a corpus that this search would not have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Its number, from 0.
    pub nr: u64,
    /// What it contradicts.
    pub why: &'static str,
}

/// A candidate that is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Where it came from.
    pub origin: Origin,
    /// The candidate.
    pub candidate: Candidate,
}

/// What the next candidate follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guidance {
    /// What earlier ones showed.
    Results,
    /// Chance alone: what a search is to be compared with.
    Chance,
}

impl Guidance {
    /// As `--random` says it.
    #[must_use]
    pub fn chance_if(random: bool) -> Self {
        if random { Self::Chance } else { Self::Results }
    }
}

/// A search: everything that it knows follows from its seed and the results it was told.
#[derive(Clone, Debug)]
pub struct Search {
    space: Space,
    random: Random,
    guidance: Guidance,
    tried: HashSet<String>,
    pairs: BTreeSet<String>,
    reached: Reached,
    entries: Vec<Entry>,
}

impl Search {
    /// One that knows nothing yet.
    #[must_use]
    pub fn new(space: Space, seed: u64, guidance: Guidance) -> Self {
        Self {
            space,
            random: Random::new(seed),
            guidance,
            tried: HashSet::new(),
            pairs: BTreeSet::new(),
            reached: Reached::default(),
            entries: Vec::new(),
        }
    }

    /// Everything tried so far.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How many pairs of sections were seen.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// The code of the kernel that was executed, and how many behind the base line were the first to reach some; none where
    /// it is known of no candidate.
    #[must_use]
    pub fn reached(&self) -> Option<(&Code, usize)> {
        self.reached.known().then(|| (self.reached.code(), self.reached.firsts()))
    }

    fn entry(&self, nr: u64) -> Option<&Entry> {
        nth(&self.entries, nr)
    }

    /// The latest of all; the first of several.
    #[must_use]
    pub fn worst(&self) -> Option<&Entry> {
        latest(self.entries.iter())
    }

    /// The latest of the single built-in loads.
    #[must_use]
    pub fn worst_of_base(&self) -> Option<&Entry> {
        latest(self.entries.iter().filter(|e| e.origin == Origin::Base))
    }

    /// The next generation; the results of the last one have been told.
    pub fn generation(&mut self) -> Vec<Proposal> {
        if self.entries.is_empty() {
            let base = vary::base(&self.space);
            self.tried.extend(base.iter().map(Candidate::key));
            let of = |candidate| Proposal { origin: Origin::Base, candidate };
            return base.into_iter().map(of).collect();
        }
        let base = self.entries.iter().filter(|e| e.origin == Origin::Base).count();
        if self.entries.len() == base && self.guidance == Guidance::Results {
            let mut corners = vary::corners(&self.space, &mut self.random);
            corners.retain(|c| self.tried.insert(c.key()));
            let of = |candidate| Proposal { origin: Origin::Corner, candidate };
            return corners.into_iter().map(of).collect();
        }
        let (parents, sequences) = (self.parents(), self.sequences());
        (0..GENERATION).map(|_| self.propose(&parents, &sequences)).collect()
    }

    fn propose(&mut self, parents: &[u64], sequences: &[u64]) -> Proposal {
        let mut proposal = self.one(parents, sequences);
        for _ in 0..TRIES {
            if self.tried.insert(proposal.candidate.key()) {
                break;
            }
            proposal = self.one(parents, sequences);
        }
        proposal
    }

    fn one(&mut self, parents: &[u64], sequences: &[u64]) -> Proposal {
        if self.guidance == Guidance::Results
            && self.reached.known()
            && let Some(proposal) = self.led()
        {
            return proposal;
        }
        let random = &mut self.random;
        let entries = &self.entries;
        let find = |nr: &u64| nth(entries, *nr).map(|e| &e.candidate);
        // What stands first is chosen more often, and the latest most of all.
        let mut parent = || {
            let one = random.below(parents.len());
            let other = random.below(parents.len());
            let at = if random.happens(FIRST) { 0 } else { one.min(other) };
            parents.get(at).and_then(|nr| Some((*nr, find(nr)?)))
        };
        let (one, other) = (parent(), parent());
        if self.guidance == Guidance::Results && !self.reached.known() && random.happens(SEQUENCES)
        {
            let parent = random.pick(sequences).copied().filter(|_| random.happens(60));
            let from = parent.and_then(|nr| Some((nr, find(&nr)?)));
            if let Some(candidate) =
                vary::sequence(from.map(|(_, it)| it), None, &self.space, random)
            {
                let origin = from.map_or(Origin::Drawn, |(nr, _)| Origin::Changed(nr));
                return Proposal { origin, candidate };
            }
        }
        if self.guidance == Guidance::Results && !random.happens(DRAWN) {
            if let (Some((a, one)), Some((b, other))) = (one, other)
                && a != b
                && random.happens(CROSSED)
            {
                let candidate = vary::cross(one, other, &self.space, random);
                return Proposal { origin: Origin::Crossed(a, b), candidate };
            }
            if let Some((nr, one)) = one {
                let candidate = vary::change(one, &self.space, random);
                return Proposal { origin: Origin::Changed(nr), candidate };
            }
        }
        Proposal { origin: Origin::Drawn, candidate: vary::draw(&self.space, random) }
    }

    /// One that is led by the code that others reached first; none: let others lead.
    fn led(&mut self) -> Option<Proposal> {
        let random = &mut self.random;
        let entries = &self.entries;
        let find = |nr: u64| nth(entries, nr).map(|e| &e.candidate);
        if random.happens(SEQUENCES_LED) {
            let mut pick = || {
                let nr = self.reached.pick(Among::Sequences, random)?;
                Some((nr, find(nr)?))
            };
            let (one, other) = (pick(), pick());
            let (from, with, origin) = match (one, other) {
                _ if random.happens(SEQUENCES_DRAWN) => (None, None, Origin::Drawn),
                (Some((a, one)), Some((b, other)))
                    if a != b && random.happens(SEQUENCES_CROSSED) =>
                {
                    (Some(one), Some(other), Origin::Crossed(a, b))
                }
                (Some((a, one)), _) => (Some(one), None, Origin::Changed(a)),
                (None, _) => (None, None, Origin::Drawn),
            };
            let candidate = vary::sequence(from, with, &self.space, random)?;
            return Some(Proposal { origin, candidate });
        }
        if !random.happens(REACHED) {
            return None;
        }
        let nr = self.reached.pick(Among::All, random)?;
        let candidate = vary::change(find(nr)?, &self.space, random);
        Some(Proposal { origin: Origin::Changed(nr), candidate })
    }

    /// Numbers of the sequences of system calls alone that showed a new pair.
    fn sequences(&self) -> Vec<u64> {
        let alone = |e: &&Entry| vary::is_sequence(&e.candidate, &self.space);
        self.entries.iter().filter(brought).filter(alone).map(|e| e.nr).collect()
    }

    /// Numbers of those that others are made of: of each way of being good the best in turn.
    fn parents(&self) -> Vec<u64> {
        let by = |value: fn(&Figures) -> i64, most: usize| {
            let mut all: Vec<(i64, u64)> = self
                .entries
                .iter()
                .filter_map(|e| Some((value(e.outcome.figures()?), e.nr)))
                .filter(|(value, _)| *value > 0)
                .collect();
            order::by_key(&mut all, |(value, nr)| (std::cmp::Reverse(*value), *nr));
            let mut alike: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
            let mut first_of_its_kind = |nr: &u64| {
                let of = self.entry(*nr).map(|e| e.candidate.names()).unwrap_or_default();
                let n = alike.entry(of).or_default();
                *n += 1;
                *n <= ALIKE
            };
            let all = all.into_iter().map(|(_, nr)| nr);
            all.filter(|nr| first_of_its_kind(nr)).take(most).collect::<Vec<u64>>()
        };
        let latest = by(|f| f.latest_ns, LATEST);
        let longest = by(Figures::longest_ns, LONGEST);
        // The last ones: what the first ones brought was new to a search that knew nothing.
        let new: Vec<u64> =
            self.entries.iter().rev().filter(brought).take(NEW).map(|e| e.nr).collect();
        let mut parents: Vec<u64> = Vec::new();
        for at in 0..LATEST.max(LONGEST).max(NEW) {
            for nr in [latest.get(at), longest.get(at), new.get(at)].into_iter().flatten() {
                if !parents.contains(nr) {
                    parents.push(*nr);
                }
            }
        }
        parents
    }

    /// Takes the result of the next proposal; yields the line of the corpus.
    pub fn tell(&mut self, proposal: Proposal, mut outcome: Outcome) -> &Entry {
        if let Outcome::Ran(figures) = &mut outcome {
            self.reached.reduce(figures);
        }
        self.recall(proposal, outcome)
    }

    /// Why a line of a corpus is not that of the next proposal, if so: what it says of earlier ones is held against them.
    fn contradicts(&self, proposal: &Proposal, entry: &Entry) -> Option<&'static str> {
        if entry.candidate != proposal.candidate || entry.origin != proposal.origin {
            return Some("it is not the one that this version would try");
        }
        if entry.nr != self.entries.len() as u64 {
            return Some("its number is another");
        }
        let figures = entry.outcome.figures()?;
        if figures.pairs.iter().any(|pair| self.pairs.contains(pair)) {
            return Some("it has a pair as new that an earlier one showed");
        }
        self.reached.contradicts(figures)
    }

    /// Takes a line of the corpus: of its code only what was new is there.
    fn recall(&mut self, proposal: Proposal, mut outcome: Outcome) -> &Entry {
        let nr = self.entries.len();
        if let Outcome::Ran(figures) = &mut outcome {
            figures.pairs.retain(|pair| self.pairs.insert(pair.clone()));
            let among = match vary::is_sequence(&proposal.candidate, &self.space) {
                true => Among::Sequences,
                false => Among::All,
            };
            self.reached.add(nr as u64, &proposal.origin, figures, among);
        }
        let Proposal { origin, candidate } = proposal;
        self.entries.push(Entry { nr: nr as u64, origin, candidate, outcome });
        #[expect(clippy::indexing_slicing, reason = "it was pushed on the line above")]
        &self.entries[nr]
    }

    /// Of the entries that ran, those that were later than every one before.
    #[must_use]
    pub fn records(&self) -> Vec<&Entry> {
        let mut most = i64::MIN;
        let later = |e: &&Entry| {
            let later = e.latest_ns().is_some_and(|ns| ns > most);
            if later {
                most = e.latest_ns().unwrap_or(most);
            }
            later
        };
        self.entries.iter().filter(later).collect()
    }

    /// The latest of each set of loads by name, the latest first.
    #[must_use]
    pub fn latest_by_loads(&self) -> Vec<&Entry> {
        let mut by: BTreeMap<Vec<&str>, &Entry> = BTreeMap::new();
        for entry in self.entries.iter().filter(|e| e.latest_ns().is_some()) {
            let place = by.entry(entry.candidate.names()).or_insert(entry);
            if entry.latest_ns() > place.latest_ns() {
                *place = entry;
            }
        }
        let mut all: Vec<&Entry> = by.into_values().collect();
        order::by_key(&mut all, |e| (std::cmp::Reverse(e.latest_ns()), e.nr));
        all
    }
}

/// Did it show a pair that no earlier one had?
fn brought(entry: &&Entry) -> bool {
    entry.outcome.figures().is_some_and(|f| !f.pairs.is_empty())
}

fn nth(entries: &[Entry], nr: u64) -> Option<&Entry> {
    entries.get(usize::try_from(nr).unwrap_or(usize::MAX))
}

fn latest<'a>(entries: impl Iterator<Item = &'a Entry>) -> Option<&'a Entry> {
    entries
        .filter(|e| e.latest_ns().is_some())
        .min_by_key(|e| (std::cmp::Reverse(e.latest_ns()), e.nr))
}

/// Hunts until `most` candidates were tried, or the evaluator ends early. `known` are the lines of a corpus: a
/// candidate that is the next of them is not run again. `keep` is given each line that is new.
///
/// # Errors
/// The first line that this search would not have made.
pub fn hunt(
    search: &mut Search,
    known: Vec<Entry>,
    most: u64,
    evaluator: &mut dyn Evaluator,
    keep: &mut dyn FnMut(&Search, &Entry),
) -> Result<End, Foreign> {
    let mut known = known.into_iter();
    loop {
        let mut open = search.generation().into_iter();
        let mut left: Vec<Proposal> = Vec::new();
        for proposal in open.by_ref() {
            if search.entries.len() as u64 >= most {
                return Ok(End::Done);
            }
            let Some(e) = known.next() else {
                left.push(proposal);
                break;
            };
            if let Some(why) = search.contradicts(&proposal, &e) {
                return Err(Foreign { nr: search.entries.len() as u64, why });
            }
            search.recall(proposal, e.outcome);
        }
        left.extend(open);
        let room = most.saturating_sub(search.entries.len() as u64);
        left.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        if left.is_empty() {
            if room == 0 {
                return Ok(End::Done);
            }
            continue;
        }
        let batch: Vec<Candidate> = left.iter().map(|p| p.candidate.clone()).collect();
        let mut left = left.into_iter();
        let end = evaluator.evaluate(&batch, &mut |outcome| {
            if let Some(proposal) = left.next() {
                let nr = search.tell(proposal, outcome).nr;
                let entry = search.entry(nr).cloned();
                entry.iter().for_each(|entry| keep(search, entry));
            }
        });
        if end == End::Early {
            return Ok(End::Early);
        }
    }
}
