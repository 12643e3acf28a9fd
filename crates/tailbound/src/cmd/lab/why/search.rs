// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries instants, several variations each, on all cores; and names what happened at the one that was found.
//!
//! Context: COLD. Units: ns of the guest's virtual time, by QEMU's clock.
//! Which outcomes count does not depend on how many guests run at a time: those up to the first early one, in order.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use tailbound_core::units::format_ns_i64;
use tailbound_core::why::{DecisiveInstant, TriedInstant, WhyEvent, WhyRecord};
use tailbound_lab::LabError;
use tailbound_paths::decisive::{self, Decisive, Instants, What};
use tailbound_paths::inevitable::{self, Bounds, Found, Outcome, Tried};
use tailbound_paths::plan::Plan;
use tailbound_paths::varied::{self, Event, Events, Varies};

use super::base::Base;
use crate::cli_lab_why::LabWhyArgs;
use crate::cmd::lab::progress::Shown;
use crate::say::Failure;

/// First distance from the due time.
const FIRST_NS: u64 = 1000;
/// Two instants need not be closer: a block of instructions is rarely shorter.
const CLOSE_NS: u64 = 4;
/// Events so much before the instant are read: the entry into the kernel is among them.
const EVENTS_BEFORE_NS: u64 = 20_000_000;
const TICK: Duration = Duration::from_millis(200);

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
    let mut found = inevitable::search(bounds, &mut |at| search.probe(at, false, shown))?;
    let mut is_whole = !base.bench.stopped();
    // All variations of the last instant that was different.
    if let Some(open) = found.open.and_then(|at| found.tried.get_mut(at)).filter(|_| is_whole) {
        match search.probe(open.at_ns, true, shown)? {
            Some(whole) => *open = whole,
            None => is_whole = false,
        }
    }
    record.is_whole = is_whole;
    let name = |address| base.symbols.name(address).filter(|_| address >> 63 == 1);
    record.tried = found.tried.iter().map(|t| search.told(t, name(t.address))).collect();
    record.tried.sort_by_key(|t| t.at_ns);
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
        at_ns + longest * (self.variations - nth) / self.variations
    }

    /// Tries an instant; `all`: all variations, even where one was early. None: it is to end.
    fn probe(&self, at_ns: u64, all: bool, shown: &mut Shown) -> Result<Option<Tried>, Failure> {
        let (next, first_early) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
        let count = usize::try_from(self.variations).unwrap_or(1);
        let (send, receive) = mpsc::channel();
        let send = Mutex::new(send);
        let mut made: Vec<Option<Varied>> = vec![None; count];
        let mut failed = None;
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.clamp(1, count) {
                let Ok(own) = send.lock().map(|s| s.clone()) else { continue };
                let (next, first_early) = (&next, &first_early);
                // QEMU dies with the thread that started it: this one waits for it.
                scope.spawn(move || {
                    loop {
                        let nth = next.fetch_add(1, Ordering::Relaxed);
                        let over = !all && nth > first_early.load(Ordering::Relaxed);
                        if nth >= count || over || self.base.bench.stopped() {
                            return;
                        }
                        let varies = Varies::Until(self.until(at_ns, nth as u64));
                        let one = one(self.base, at_ns, varies);
                        if one.as_ref().is_ok_and(|(o, _)| !o.is_late(self.late_ns)) {
                            first_early.fetch_min(nth, Ordering::Relaxed);
                        }
                        drop(own.send((nth, one)));
                    }
                });
            }
            drop(send.lock().map(|mut s| *s = mpsc::channel().0));
            loop {
                match receive.recv_timeout(TICK) {
                    Ok((nth, Ok(one))) => {
                        if let Some(place) = made.get_mut(nth) {
                            *place = Some(one);
                        }
                    }
                    Ok((_, Err(e))) => failed = Some(e),
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => return,
                }
                self.base.bench.hear();
            }
        });
        match failed {
            Some(LabError::Interrupted) => return Ok(None),
            Some(e) => return Err(e.into()),
            None if self.base.bench.stopped() => return Ok(None),
            None => {}
        }
        let made: Vec<Varied> = made.into_iter().flatten().collect();
        let early = made.iter().position(|(o, _)| !o.is_late(self.late_ns));
        let used = early.filter(|_| !all).map_or(made.len(), |at| at + 1);
        let (when, address) = made.first().and_then(|(_, reached)| *reached).unwrap_or((at_ns, 0));
        let outcomes: Vec<Outcome> = made.into_iter().take(used).map(|(o, _)| o).collect();
        let tried = Tried { at_ns: when, address, outcomes };
        let before = self.base.sample.due_ns.cast_signed() - when.cast_signed();
        shown.note(&format!(
            "{} before its timer was due: {} of {} variations late",
            format_ns_i64(before),
            tried.late(self.late_ns),
            tried.outcomes.len()
        ));
        Ok(Some(tried))
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
        let at = |index: Option<usize>| index.and_then(|at| found.tried.get(at)).map(|t| t.at_ns);
        let Some(at_ns) = at(found.inevitable) else { return Ok(()) };
        let open_ns = at(found.open);
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
        let decisive = decisive::decisive(log, instants, &events, &base.symbols);
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
