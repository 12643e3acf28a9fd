// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries instants, several variations each, on all cores; and names what happened at the one that was found.
//!
//! Units: ns of the guest's virtual time, by QEMU's clock.
//! What is tried does not depend on how many guests run at a time.

use tailbound_core::order;
use tailbound_core::units::format_ns_i64;
use tailbound_core::why::{
    Changes, DecisiveInstant, TriedInstant, VariedSample, WhyEvent, WhyRecord,
};
use tailbound_lab::progress::{Counted, Moved, Step, TaskListener};
use tailbound_lab::{Happened, LabError, on_cores};
use tailbound_paths::decisive::{self, Decisive, DecisiveEvent, Instants};
use tailbound_paths::inevitable::{self, BackwardSearch, Bounds, Depth, InstantTrial, Outcome};
use tailbound_paths::plan::Plan;
use tailbound_paths::random_numbers::RandomNumbers;
use tailbound_paths::varied::{Event, Events, Varies};

use super::base::{Base, WhyQuestion};
use super::control::{self, Varied, one};
use crate::error::SearchError;

/// First distance from the due time.
const FIRST_NS: u64 = 1000;
/// The processor's timer counts in steps, and comes up to so much behind the time that it was set for.
const TIMER_NS: u64 = 32;
/// Two instants need not be closer: a block of instructions is rarely shorter.
const CLOSE_NS: u64 = 4;
/// Events so much before the instant are read: the entry into the kernel is among them.
const EVENTS_BEFORE_NS: u64 = 20_000_000;

/// Other random numbers, so often, unless it is said how often.
const SEEDS: u8 = 2;
const UNNAMED: &str = "the kernel's symbols do not name the state of its random numbers (crngs), so that they cannot be others";

struct Search<'a> {
    base: &'a Base<'a>,
    variations: u64,
    /// Other random numbers, so often.
    seeds: u64,
    numbers: Option<RandomNumbers>,
    late_ns: i64,
    jobs: usize,
}

/// Searches; the record is not whole where Ctrl-C came.
///
/// # Errors
/// The run is not the same where nothing is varied; as a run of the lab.
pub fn search(
    base: &mut Base<'_>,
    question: &WhyQuestion,
    shown: &dyn TaskListener,
) -> Result<WhyRecord, SearchError> {
    let interrupted = |base: &Base<'_>| WhyRecord {
        activation: base.activation as u64,
        latency_ns: base.sample.latency_ns,
        ..WhyRecord::default()
    };
    let Some(control_ns) = control::rewound(base, shown)? else { return Ok(interrupted(base)) };
    let base = &*base;
    let (numbers, no_seeds) = numbers(base, question.seeds)?;
    let control_numbers_ns = match &numbers {
        None => None,
        Some(numbers) => match control::numbers(base, numbers)? {
            None => return Ok(interrupted(base)),
            same => same,
        },
    };
    let latency_ns = base.sample.latency_ns;
    let search = Search {
        base,
        variations: u64::from(question.variations),
        seeds: numbers.as_ref().map_or(0, |_| question.seeds.unwrap_or(SEEDS).into()),
        numbers,
        // Rounded up: 100 % of it is no less than it.
        late_ns: (latency_ns.saturating_mul(i64::from(question.late_percent)) + 99) / 100,
        jobs: base.bench.jobs(),
    };
    let mut record = WhyRecord {
        activation: base.activation as u64,
        latency_ns,
        due_ns: base.since_start(base.sample.due_ns),
        late_ns: search.late_ns,
        variations: usize::from(question.variations),
        seeds: usize::try_from(search.seeds).unwrap_or(0),
        no_seeds,
        control_numbers_ns,
        kept_before_ns: base.kept_before_ns(),
        longest_ns: base.interval_ns.cast_signed(),
        ..WhyRecord::default()
    };
    record.control_ns = Some(control_ns);
    let bounds = Bounds {
        from_ns: base.start_ns,
        due_ns: base.sample.due_ns,
        halted_ns: base.halted_ns,
        first_ns: FIRST_NS,
        close_ns: CLOSE_NS << base.prepared().record.shift,
        late_ns: search.late_ns,
    };
    let mut probe = |instants: &[u64], depth: Depth| search.probe(instants, depth, shown);
    let mut found = match search.variations {
        0 => BackwardSearch::default(),
        _ => inevitable::search(bounds, &mut probe)?,
    };
    let mut is_whole = !base.bench.stopped();
    // All variations of the last instant that was different.
    let open = found.open.and_then(|at| found.tried.get_mut(at));
    if let Some(open) = open.filter(|o| is_whole && o.outcomes.len() < search.count()) {
        match search.probe(&[open.at_ns], Depth::All, shown)?.and_then(|mut all| all.pop()) {
            Some(whole) => *open = whole,
            None => is_whole = false,
        }
    }
    let name = |t: &InstantTrial| base.symbols.name(t.address).filter(|_| t.address >> 63 == 1);
    let told = |t: &InstantTrial| search.told(t, &search.which_of(t), name(t));
    record.tried = found.tried.iter().map(told).collect();
    // Other random numbers all the time: do they matter at all?
    let seeds: Vec<u64> = (search.variations..search.variations + search.seeds).collect();
    if is_whole && search.seeds > 0 && base.start_ns < base.sample.due_ns {
        match search.probe_which(&[base.start_ns], &seeds, shown)?.and_then(|mut all| all.pop()) {
            Some(tried) => record.tried.push(search.told(&tried, &seeds, name(&tried))),
            None => is_whole = false,
        }
    }
    record.is_whole = is_whole;
    // Of one that was tried twice the one with all variations stays.
    order::by_key(&mut record.tried, |t| (t.at_ns, std::cmp::Reverse(t.tried)));
    record.tried.dedup_by_key(|t| t.at_ns);
    search.decisive(&found, &mut record)?;
    Ok(record)
}

/// Where the random numbers are, if they are to be varied; else why not, unless nobody wants it.
fn numbers(
    base: &Base<'_>,
    asked: Option<u8>,
) -> Result<(Option<RandomNumbers>, Option<String>), SearchError> {
    if asked == Some(0) {
        return Ok((None, None));
    }
    let found = RandomNumbers::of(&base.kallsyms, base.plan.guest());
    match (found, asked) {
        (Some(found), _) => Ok((Some(found), None)),
        (None, None) => Ok((None, Some(UNNAMED.to_owned()))),
        (None, Some(_)) => Err(SearchError::NoSeeds(UNNAMED)),
    }
}

impl Search<'_> {
    /// Variation `nth` of an instant: first those in which the processor stands still.
    fn varies(&self, at_ns: u64, nth: u64) -> Varies<'_> {
        match (&self.numbers, nth.checked_sub(self.variations)) {
            (Some(numbers), Some(nth)) => Varies::Numbers(numbers, nth as u32 + 1),
            _ => Varies::Until(self.until(at_ns, nth)),
        }
    }

    /// Until when the processor stands still in variation `nth` of an instant: the first one until the due time, or for an
    /// interval.
    fn until(&self, at_ns: u64, nth: u64) -> u64 {
        let longest = self.base.sample.due_ns.saturating_sub(at_ns).min(self.base.interval_ns);
        at_ns + longest * (self.variations - nth) / self.variations + TIMER_NS
    }

    fn count(&self) -> usize {
        usize::try_from(self.variations + self.seeds).unwrap_or(1)
    }

    /// Variations by their numbers: all, or the first of each kind.
    fn which(&self, depth: Depth) -> Vec<u64> {
        let all = 0..self.variations + self.seeds;
        match depth {
            Depth::All => all.collect(),
            Depth::First => all.filter(|nth| [0, self.variations].contains(nth)).collect(),
        }
    }

    /// Tries instants. None: it is to end.
    fn probe(
        &self,
        instants: &[u64],
        depth: Depth,
        shown: &dyn TaskListener,
    ) -> Result<Option<Vec<InstantTrial>>, SearchError> {
        self.probe_which(instants, &self.which(depth), shown)
    }

    /// The same with variations of these numbers.
    fn probe_which(
        &self,
        instants: &[u64],
        which: &[u64],
        shown: &dyn TaskListener,
    ) -> Result<Option<Vec<InstantTrial>>, SearchError> {
        let each = which.len();
        let tasks: Vec<(u64, u64)> =
            instants.iter().flat_map(|at| which.iter().map(|nth| (*at, *nth))).collect();
        let Some(made) = self.all(&tasks, shown)? else { return Ok(None) };
        let mut told = Vec::new();
        for (at_ns, made) in instants.iter().zip(made.chunks(each)) {
            let reached = made.first().and_then(|(_, reached)| *reached);
            let (at_ns, address) = reached.map_or((*at_ns, 0), |r| (r.at_ns, r.address));
            let outcomes = made.iter().map(|(outcome, _)| *outcome).collect();
            let tried = InstantTrial { at_ns, address, outcomes };
            let before = self.base.sample.due_ns.cast_signed() - at_ns.cast_signed();
            shown.note(&format!(
                "{} before its timer was due: {} of {each} variations late",
                format_ns_i64(before),
                tried.late(self.late_ns),
            ));
            told.push(tried);
        }
        Ok(Some(told))
    }

    /// Makes variations (of an instant, and which), on all cores.
    fn all(
        &self,
        tasks: &[(u64, u64)],
        shown: &dyn TaskListener,
    ) -> Result<Option<Vec<Varied>>, SearchError> {
        let mut made: Vec<Option<Varied>> = vec![None; tasks.len()];
        let mut failed = None;
        let bench = self.base.bench;
        let stopped = || bench.stopped();
        let work = |(at_ns, nth): &(u64, u64), _: &mut dyn FnMut(())| {
            one(self.base, *at_ns, self.varies(*at_ns, *nth))
        };
        let of = tasks.len() as u64;
        let mut done = 0;
        shown.moved(0, Moved::Step(Step::Variations));
        shown.moved(0, Moved::Count(Counted::Variations, done, of));
        on_cores(tasks, self.jobs, &stopped, &work, &mut |what| {
            match what {
                Happened::Done(at, Ok(one)) => {
                    done += 1;
                    shown.moved(0, Moved::Count(Counted::Variations, done, of));
                    if let Some(place) = made.get_mut(at) {
                        *place = Some(one);
                    }
                }
                Happened::Done(_, Err(e)) => failed = Some(e),
                Happened::Begun(_) | Happened::Progress(..) | Happened::Tick => {}
            }
            bench.hear();
        });
        match failed {
            None | Some(LabError::Interrupted) => Ok(made.into_iter().collect()),
            Some(e) => Err(e.into()),
        }
    }

    /// Variations of an instant that was tried in the search.
    fn which_of(&self, tried: &InstantTrial) -> Vec<u64> {
        let first = tried.outcomes.len() < self.count();
        self.which(if first { Depth::First } else { Depth::All })
    }

    fn told(&self, tried: &InstantTrial, which: &[u64], function: Option<&str>) -> TriedInstant {
        let latencies = || {
            tried.outcomes.iter().filter_map(|o| match o {
                Outcome::Latency(ns) => Some(*ns),
                Outcome::Missed => None,
            })
        };
        let sample = |(nth, outcome): (&u64, &Outcome)| self.sample(tried.at_ns, *nth, *outcome);
        TriedInstant {
            at_ns: self.base.since_start(tried.at_ns),
            before_due_ns: self.base.sample.due_ns.cast_signed() - tried.at_ns.cast_signed(),
            function: function.unwrap_or("user mode").to_owned(),
            tried: tried.outcomes.len(),
            late: tried.late(self.late_ns),
            missed: tried.outcomes.len() - latencies().count(),
            least_ns: latencies().min(),
            most_ns: latencies().max(),
            variations: which.iter().zip(&tried.outcomes).map(sample).collect(),
        }
    }

    /// Variation `nth` of an instant, and what came of it.
    fn sample(&self, at_ns: u64, nth: u64, outcome: Outcome) -> VariedSample {
        let varied = VariedSample {
            latency_ns: match outcome {
                Outcome::Latency(ns) => Some(ns),
                Outcome::Missed => None,
            },
            late: outcome.is_late(self.late_ns),
            ..VariedSample::default()
        };
        match self.varies(at_ns, nth) {
            Varies::Numbers(_, seed) => {
                VariedSample { changes: Changes::RandomNumbers, seed: Some(seed), ..varied }
            }
            Varies::Until(ns) => VariedSample {
                changes: Changes::Phase,
                still_ns: Some(ns.cast_signed() - at_ns.cast_signed()),
                ..varied
            },
            Varies::Not | Varies::Stop => varied,
        }
    }

    /// What happened at the instant that was found, and from there to the sample.
    fn decisive(&self, found: &BackwardSearch, record: &mut WhyRecord) -> Result<(), SearchError> {
        let Some(at_ns) = found.inevitable_at() else { return Ok(()) };
        let open_ns = found.open_at();
        let sample = self.base.sample;
        let instants = Instants { open_ns, at_ns, user_ns: sample.user_ns };
        let mut told = DecisiveInstant {
            at_ns: self.base.since_start(at_ns),
            before_due_ns: sample.due_ns.cast_signed() - at_ns.cast_signed(),
            open_before_ns: open_ns.map(|open| at_ns.cast_signed() - open.cast_signed()),
            ..DecisiveInstant::default()
        };
        // Also where Ctrl-C came: two more guests, unless it comes again.
        if record.is_whole {
            let (events, decisive) = self.happened(instants)?;
            record.events = self.events(&events, instants);
            record.tree.clone_from(&decisive.tree);
            name(&mut told, decisive);
        } else {
            "unknown: the search was ended".clone_into(&mut told.function);
        }
        record.inevitable = Some(told);
        Ok(())
    }

    fn happened(&self, instants: Instants) -> Result<(Events, Decisive), SearchError> {
        let base = self.base;
        let mut variation = base.variation(instants.at_ns, Varies::Not);
        variation.log_from_ns = instants.at_ns.saturating_sub(EVENTS_BEFORE_NS);
        variation.first_thread = base.plan.idle_thread();
        let mut log = base.varied(&base.plan, &variation)?;
        let events = Events::read(&mut log).map_err(SearchError::look)?;
        let full: Plan = base.plan.full(&[instants.window(&events)]);
        variation.log_from_ns = 0;
        let log = base.varied(&full, &variation)?;
        let log = std::io::BufReader::new(log);
        let decisive = decisive::decisive(log, instants, &events, &base.symbols, &base.plan);
        Ok((events, decisive.map_err(SearchError::look)?))
    }

    fn events(&self, events: &Events, instants: Instants) -> Vec<WhyEvent> {
        let sample = &self.base.sample;
        let within = events.all.iter().filter(|(t, e)| {
            (instants.at_ns..=instants.user_ns).contains(t) && !matches!(e, Event::Section(_))
        });
        within
            .map(|(t, e)| WhyEvent {
                since_due_ns: t.cast_signed() - sample.due_ns.cast_signed(),
                what: e.words(&self.base.symbols, sample.thread),
            })
            .collect()
    }
}

fn name(told: &mut DecisiveInstant, found: Decisive) {
    let (what, name) = match found.what {
        DecisiveEvent::Switched(name) => ("switch", Some(name)),
        DecisiveEvent::Interrupted(name) => ("interrupt", Some(name)),
        DecisiveEvent::Called(name) => ("call", name),
        DecisiveEvent::Closed(name) => ("section", Some(name)),
        DecisiveEvent::Executed(name) => ("function", Some(name)),
        DecisiveEvent::Idle => ("idle", None),
    };
    what.clone_into(&mut told.what);
    told.name = name.filter(|name| !name.is_empty());
    told.thread = found.thread;
    told.call = found.call;
    told.function = found.function;
    told.under_way = found.under_way;
    told.is_exact = found.is_exact;
}
