// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries instants, several variations each, on all cores; and names what happened at the one that was found.
//!
//! Context: COLD. Units: ns of the guest's virtual time, by QEMU's clock.
//! What is tried does not depend on how many guests run at a time.

use tailbound_core::units::format_ns_i64;
use tailbound_core::why::{DecisiveInstant, TriedInstant, WhyEvent, WhyRecord};
use tailbound_lab::{Happened, LabError, on_cores};
use tailbound_paths::decisive::{self, Decisive, Instants, What};
use tailbound_paths::inevitable::{self, Bounds, Depth, Found, Outcome, Tried};
use tailbound_paths::plan::Plan;
use tailbound_paths::varied::{self, Event, Events, Varies};

use super::base::Base;
use crate::cli_lab_why::LabWhyArgs;
use crate::cmd::lab::progress::Shown;
use crate::say::Failure;

/// First distance from the due time.
const FIRST_NS: u64 = 1000;
/// The processor's timer counts in steps, and comes up to so much behind the time that it was set for.
const TIMER_NS: u64 = 32;
/// Two instants need not be closer: a block of instructions is rarely shorter.
const CLOSE_NS: u64 = 4;
/// Events so much before the instant are read: the entry into the kernel is among them.
const EVENTS_BEFORE_NS: u64 = 20_000_000;

/// One outcome, and when and where its instant was.
type Varied = (Outcome, Option<(u64, u64)>);

struct Search<'a> {
    base: &'a Base<'a>,
    variations: u64,
    late_ns: i64,
    jobs: usize,
}

/// Searches; the record is not whole where Ctrl-C came.
pub(super) fn search(
    base: &mut Base<'_>,
    args: &LabWhyArgs,
    shown: &mut Shown,
) -> Result<WhyRecord, Failure> {
    let Some(control_ns) = rewound_control(base, shown)? else {
        return Ok(WhyRecord {
            activation: base.activation as u64,
            latency_ns: base.sample.latency_ns,
            ..WhyRecord::default()
        });
    };
    let base = &*base;
    let latency_ns = base.sample.latency_ns;
    let search = Search {
        base,
        variations: u64::from(args.variations),
        // Rounded up: 100 % of it is no less than it.
        late_ns: (latency_ns.saturating_mul(i64::from(args.late)) + 99) / 100,
        jobs: base.bench.jobs(),
    };
    let mut record = WhyRecord {
        activation: base.activation as u64,
        latency_ns,
        due_ns: base.since_start(base.sample.due_ns),
        late_ns: search.late_ns,
        variations: usize::from(args.variations),
        longest_ns: base.interval_ns.cast_signed(),
        ..WhyRecord::default()
    };
    record.control_ns = Some(control_ns);
    let bounds = Bounds {
        from_ns: base.start_ns,
        due_ns: base.sample.due_ns,
        first_ns: FIRST_NS,
        close_ns: CLOSE_NS << base.prepared().record.shift,
        late_ns: search.late_ns,
    };
    let mut probe = |instants: &[u64], depth: Depth| search.probe(instants, depth, shown);
    let mut found = inevitable::search(bounds, &mut probe)?;
    let mut is_whole = !base.bench.stopped();
    // All variations of the last instant that was different.
    let open = found.open.and_then(|at| found.tried.get_mut(at));
    if let Some(open) = open.filter(|o| is_whole && o.outcomes.len() < search.count()) {
        match search.probe(&[open.at_ns], Depth::All, shown)?.and_then(|mut all| all.pop()) {
            Some(whole) => *open = whole,
            None => is_whole = false,
        }
    }
    record.is_whole = is_whole;
    let name = |address| base.symbols.name(address).filter(|_| address >> 63 == 1);
    record.tried = found.tried.iter().map(|t| search.told(t, name(t.address))).collect();
    // Of one that was tried twice the one with all variations stays.
    record.tried.sort_by_key(|t| (t.at_ns, std::cmp::Reverse(t.tried)));
    record.tried.dedup_by_key(|t| t.at_ns);
    search.decisive(&found, &mut record)?;
    Ok(record)
}

fn one(base: &Base<'_>, at_ns: u64, varies: Varies) -> Result<Varied, LabError> {
    let variation = base.variation(at_ns, varies);
    let mut log = base.varied(&base.plan, &variation)?;
    let reached = varied::reached(&mut log).map_err(LabError::cannot)?;
    let outcome = base.sample.outcome(&mut log, base.plan.marks());
    Ok((outcome.map_err(LabError::cannot)?, reached))
}

/// The sample of the run that is kept in its middle, stopped again and let go, must be the same; if it is not, that of the run from its
/// beginning. None: Ctrl-C came.
fn rewound_control(base: &mut Base<'_>, shown: &mut Shown) -> Result<Option<i64>, Failure> {
    match base.rewind() {
        Err(LabError::Interrupted) => return Ok(None),
        done => done?,
    }
    match control(base) {
        Err(why) if base.forget_rewound() => {
            shown.note(&format!("each variation begins at the run's beginning: {}", why.text));
            control(base)
        }
        found => found,
    }
}

/// The run stopped and let go: its sample must be the same.
fn control(base: &Base<'_>) -> Result<Option<i64>, Failure> {
    let at = base.sample.due_ns.saturating_sub(FIRST_NS);
    let outcome = match one(base, at, Varies::Not) {
        Err(LabError::Interrupted) => return Ok(None),
        outcome => outcome?.0,
    };
    base.bench.hear();
    match outcome {
        Outcome::Latency(ns) if ns == base.sample.latency_ns => Ok(Some(ns)),
        Outcome::Latency(ns) => Err(Failure::cannot(format!(
            "stopped and let go without a change the sample is {} instead of {}: nothing can be said of it",
            format_ns_i64(ns),
            format_ns_i64(base.sample.latency_ns)
        ))),
        Outcome::Missed => Err(Failure::cannot(
            "stopped and let go without a change the sample does not come: nothing can be said of it",
        )),
    }
}

impl Search<'_> {
    /// Until when the processor stands still in variation `nth` of an instant: the first one until the due time, or for an
    /// interval.
    fn until(&self, at_ns: u64, nth: u64) -> u64 {
        let longest = self.base.sample.due_ns.saturating_sub(at_ns).min(self.base.interval_ns);
        at_ns + longest * (self.variations - nth) / self.variations + TIMER_NS
    }

    fn count(&self) -> usize {
        usize::try_from(self.variations).unwrap_or(1)
    }

    /// Tries instants. None: it is to end.
    fn probe(
        &self,
        instants: &[u64],
        depth: Depth,
        shown: &mut Shown,
    ) -> Result<Option<Vec<Tried>>, Failure> {
        let each = if depth == Depth::All { self.count() } else { 1 };
        let tasks: Vec<(u64, u64)> =
            instants.iter().flat_map(|at| (0..each).map(|nth| (*at, nth as u64))).collect();
        let Some(made) = self.all(&tasks)? else { return Ok(None) };
        let mut told = Vec::new();
        for (at_ns, made) in instants.iter().zip(made.chunks(each)) {
            let reached = made.first().and_then(|(_, reached)| *reached);
            let (at_ns, address) = reached.unwrap_or((*at_ns, 0));
            let outcomes = made.iter().map(|(outcome, _)| *outcome).collect();
            let tried = Tried { at_ns, address, outcomes };
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
    fn all(&self, tasks: &[(u64, u64)]) -> Result<Option<Vec<Varied>>, Failure> {
        let mut made: Vec<Option<Varied>> = vec![None; tasks.len()];
        let mut failed = None;
        let bench = self.base.bench;
        let stopped = || bench.stopped();
        let work = |(at_ns, nth): &(u64, u64), _: &mut dyn FnMut(())| {
            one(self.base, *at_ns, Varies::Until(self.until(*at_ns, *nth)))
        };
        on_cores(tasks, self.jobs, &stopped, &work, &mut |what| {
            match what {
                Happened::Done(at, Ok(one)) => {
                    if let Some(place) = made.get_mut(at) {
                        *place = Some(one);
                    }
                }
                Happened::Done(_, Err(e)) => failed = Some(e),
                Happened::Progress(..) | Happened::Tick => {}
            }
            bench.hear();
        });
        match failed {
            None | Some(LabError::Interrupted) => Ok(made.into_iter().collect()),
            Some(e) => Err(e.into()),
        }
    }

    fn told(&self, tried: &Tried, function: Option<&str>) -> TriedInstant {
        let latencies = || {
            tried.outcomes.iter().filter_map(|o| match o {
                Outcome::Latency(ns) => Some(*ns),
                Outcome::Missed => None,
            })
        };
        TriedInstant {
            at_ns: self.base.since_start(tried.at_ns),
            before_due_ns: self.base.sample.due_ns.cast_signed() - tried.at_ns.cast_signed(),
            function: function.unwrap_or("user mode").to_owned(),
            tried: tried.outcomes.len(),
            late: tried.late(self.late_ns),
            missed: tried.outcomes.len() - latencies().count(),
            least_ns: latencies().min(),
            most_ns: latencies().max(),
        }
    }

    /// What happened at the instant that was found, and from there to the sample.
    fn decisive(&self, found: &Found, record: &mut WhyRecord) -> Result<(), Failure> {
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

    fn happened(&self, instants: Instants) -> Result<(Events, Decisive), Failure> {
        let (base, failed) = (self.base, |e| Failure::cannot(e));
        let mut variation = base.variation(instants.at_ns, Varies::Not);
        variation.log_from_ns = instants.at_ns.saturating_sub(EVENTS_BEFORE_NS);
        variation.first_thread = base.plan.idle_thread();
        let mut log = base.varied(&base.plan, &variation)?;
        let events = Events::read(&mut log).map_err(failed)?;
        let full: Plan = base.plan.full(&[instants.window(&events)]);
        variation.log_from_ns = 0;
        let log = base.varied(&full, &variation)?;
        let log = std::io::BufReader::new(log);
        let decisive = decisive::decisive(log, instants, &events, &base.symbols, &base.plan);
        Ok((events, decisive.map_err(failed)?))
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
        What::Switched(name) => ("switch", Some(name)),
        What::Interrupted(name) => ("interrupt", Some(name)),
        What::Called(name) => ("call", name),
        What::Closed(name) => ("section", Some(name)),
        What::Executed(name) => ("function", Some(name)),
        What::Idle => ("idle", None),
    };
    what.clone_into(&mut told.what);
    told.name = name.filter(|name| !name.is_empty());
    told.thread = found.thread;
    told.call = found.call;
    told.function = found.function;
    told.under_way = found.under_way;
    told.is_exact = found.is_exact;
}
