// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches over the measured threads: takes their records out, notices disturbances of the
//! run, shows the progress, and ends it on a signal.
//!
//! Context: COLD, on CPUs that are not measured where there are any; once a second when
//! nobody looks, at most ten times a second when somebody does. Units: ns.

mod threshold;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use tailbound_core::Context;
use tailbound_core::collect::Collector;
use tailbound_core::histogram::Histogram;
use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::occurrence::Occurrence;
use tailbound_core::progress::{Phase, Progress, ThreadProgress};
use tailbound_core::record::{ExceedanceRecord, Line, LoadRecord, SecondRecord};
use tailbound_core::runfile::pack_raw;
use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_probe::{ProbeOutput, RecordSlot, Recorders, ThreadResult};
use tailbound_record::{Blamed, Blamer, Observed, Observer};
use tailbound_stats::blocks::{Blocks, length_s};
use tailbound_stats::stopping::Stopping;
use tailbound_stats::{P2, Quantile, Windows, blocks, quantile};
use tailbound_sys::signal;

use crate::error::RunError;
use crate::journal::Journal;
use crate::punctual::Punctual;
use crate::session::Session;
use crate::thread_record::thread_record;
use crate::urgent::Urgent;
use crate::view::{SamplesTo, ThreadSamples, View};
use crate::world::{Disturbances as _, Interruptions as _, LoadSet as _, Threads as _, World};
pub(crate) use threshold::AtThreshold;

const SECOND_NS: i64 = 1_000_000_000;
/// Longest time between two records of a thread as it stands: what a power cut can cost.
const CHECKPOINT_MAX_NS: i64 = 300 * SECOND_NS;
/// Exceedance lines of one thread before its threshold is doubled.
const EXCEEDANCES_A_STEP: u64 = 4096;
/// The percentiles that P² estimates: those that Williams and Williams report.
const P2_PERCENTILES: [f64; 6] = [0.05, 0.5, 0.95, 0.99, 0.999, 0.99999];
/// Raw samples a line.
const RAW_CHUNK: usize = 65_536;
/// How often the raw ring of 16 Ki samples and the kernel's trace are emptied.
const RAW_REFRESH_MS: u32 = 100;

/// Everything the supervisor keeps of one thread.
struct Follower {
    collector: Collector,
    windows: Windows,
    blocks: Blocks,
    /// The newest complete second.
    newest: u64,
    /// Stretches of a second, for a rule that needs them.
    seconds_cut: Blocks,
    /// Complete seconds.
    told_s: u64,
    seconds: VecDeque<SecondRecord>,
    exceedances: u64,
    raw: Vec<i64>,
    raw_from: u64,
    /// Of the last look, for a viewer of samples.
    late: Vec<ExceedanceRecord>,
    p2: P2,
}

/// A thread that has ended.
pub(crate) struct WatchedThread {
    /// Its records.
    pub(crate) collector: Collector,
    /// P² estimates, where raw samples were kept.
    pub(crate) p2: Vec<(f64, Option<f64>)>,
    /// Its slot and its own result.
    pub(crate) result: ThreadResult,
}

/// A run whose threads have all ended.
pub(crate) struct SupervisionOutcome<W: World> {
    pub(crate) journal: Journal,
    pub(crate) threads: Vec<WatchedThread>,
    pub(crate) watch: W::Watch,
    /// What the kernel's tracing saw.
    pub(crate) observed: Option<Observed>,
    /// What taking late wake-ups apart came to.
    pub(crate) blamed: Option<Blamed>,
    /// What is still to be done of it.
    pub(crate) at_threshold: AtThreshold,
    /// What the probe found beside latencies.
    pub(crate) output: ProbeOutput,
    /// The signal that ended it before its time.
    pub(crate) interrupted: Option<&'static str>,
    /// Its stopping rule ended it before its longest time.
    pub(crate) by_rule: bool,
}

/// What a supervisor watches over.
pub(crate) struct Subject<'a, W: World> {
    pub(crate) running: W::Threads,
    pub(crate) watch: W::Watch,
    pub(crate) loads: &'a mut W::Loads,
    /// Ends the threads, together with an interruption of their sleep.
    pub(crate) stop: &'static AtomicBool,
}

pub(crate) struct Supervisor<'a, W: World> {
    session: &'a Session,
    running: W::Threads,
    watch: W::Watch,
    journal: Journal,
    /// The kernel's tracing, if it was asked for.
    pub(crate) observer: Option<Observer>,
    /// What takes late wake-ups apart, if it was asked for.
    pub(crate) blamer: Option<Blamer>,
    pub(crate) at_threshold: AtThreshold,
    loads: &'a mut W::Loads,
    stop: &'static AtomicBool,
    followers: Vec<Follower>,
    rates: Vec<(String, f64, String)>,
    shown: Histogram,
    warm_up_over: bool,
    next_tick_ns: i64,
    /// The last look at the machine, once there was one.
    looked_ns: Option<i64>,
    next_checkpoint_ns: i64,
    interrupted: Option<&'static str>,
    stopping: Stopping,
    by_rule: bool,
    punctual: Punctual,
}

impl<'a, W: World> Supervisor<'a, W> {
    pub(crate) fn new(session: &'a Session, subject: Subject<'a, W>, journal: Journal) -> Self {
        let Subject { running, watch, loads, stop } = subject;
        let followers = running
            .recorders()
            .map(|(slot, _)| Follower {
                collector: Collector::new(slot.thread, running.start_ns()),
                windows: Windows::new(slot.thread, &[1, 10, 60]),
                blocks: Blocks::new(slot.thread, length_s(session.plan.duration_ns())),
                newest: 0,
                seconds_cut: Blocks::new(slot.thread, 1),
                told_s: 0,
                seconds: VecDeque::new(),
                exceedances: 0,
                raw: Vec::new(),
                raw_from: 0,
                late: Vec::new(),
                p2: P2::new(&P2_PERCENTILES),
            })
            .collect();
        Self {
            session,
            running,
            watch,
            journal,
            observer: None,
            blamer: None,
            at_threshold: AtThreshold::default(),
            loads,
            stop,
            followers,
            rates: Vec::new(),
            shown: Histogram::new(tailbound_rt::h2::PRECISION),
            warm_up_over: false,
            next_tick_ns: i64::MIN,
            looked_ns: None,
            next_checkpoint_ns: 0,
            interrupted: None,
            stopping: Stopping::new(&session.plan),
            by_rule: false,
            punctual: Punctual::default(),
        }
    }

    /// Until every thread has ended.
    pub(crate) fn watch_over(&mut self, signals: &W::Signals, show: &mut dyn FnMut(View<'_>)) {
        let _urgent = Urgent::beside(self.session.plan.policy);
        let live = self.session.refresh_ms > 0;
        let mut period_ms = if live { self.session.refresh_ms } else { 1000 };
        let sooner = self.stopping.wants_exceedances();
        let traced = self.observer.is_some() || self.blamer.is_some();
        if self.session.plan.raw || traced || sooner || self.at_threshold.occasions.are_wanted() {
            period_ms = period_ms.min(RAW_REFRESH_MS);
        }
        let live_frames = period_ms < 1000;
        loop {
            let t = self.running.t_ns();
            let left = self.session.plan.duration_ns().saturating_sub(t).max(0) / 1_000_000;
            if !live_frames {
                // Just after the end of a second of the schedule: then its record is there.
                period_ms = (1005 - (t / 1_000_000).rem_euclid(1000)).try_into().unwrap_or(1000);
            }
            // A load that begins or ends soon does it then, not at the next look.
            let change = self.loads.next_change_ns(t).map_or(i64::MAX, |at| at.saturating_sub(t));
            let wait = i32::try_from(left.saturating_add(2).min(change / 1_000_000 + 1))
                .unwrap_or(i32::MAX)
                .min(period_ms.cast_signed());
            let signalled = signals.wait(wait);
            let woken = self.running.t_ns();
            self.punctual.woke(t.saturating_add(i64::from(wait) * 1_000_000), woken);
            if let Some(number) = signalled {
                self.interrupted = Some(signal::name(number));
                self.stop.store(true, Ordering::Relaxed);
                let why = format!("{}: the measurement ended first", signal::name(number));
                self.journal.event(self.running.t_ns(), Occurrence::Stopped { why: &why });
            }
            if self.stop.load(Ordering::Relaxed) {
                // A thread may sleep for an hour: wake it to see the flag.
                self.running.wake();
            }
            let finished = self.running.finished();
            self.keep_phases();
            self.collect();
            // Threads that have all ended by now may have been refused in the warm-up.
            if self.warm_up_over && !finished {
                self.journal.place();
            }
            self.tick();
            self.judge();
            self.judge_interrupts();
            self.act();
            self.show_samples(show);
            if live {
                show(View::Progress(&self.progress()));
            }
            self.punctual.looked(woken, self.running.t_ns());
            if finished {
                break;
            }
        }
        if let Some(finding) = self.punctual.finding() {
            self.journal.finding(finding);
        }
        if !self.by_rule && self.interrupted.is_none() {
            let complete_s = self.complete_s();
            if let Some(why) = self.stopping.at_end(complete_s) {
                let end_ns = self.session.plan.duration_ns();
                self.journal.event(end_ns, Occurrence::Until { why: &why });
            }
        }
    }

    /// Hands the samples of this look to a viewer who asked for them.
    fn show_samples(&mut self, show: &mut dyn FnMut(View<'_>)) {
        if self.session.samples == SamplesTo::File {
            return;
        }
        for ((slot, _), follower) in self.running.recorders().zip(&mut self.followers) {
            let (thread, errors_ns) = (slot.thread, follower.raw.as_slice());
            show(View::Samples(ThreadSamples { thread, errors_ns, exceedances: &follower.late }));
            follower.raw.clear();
            follower.late.clear();
        }
    }

    /// Begins and ends loads whose time it is.
    fn keep_phases(&mut self) {
        let t = self.running.t_ns();
        for change in self.loads.keep_phases(t, self.session.plan.duration_ns()) {
            let load = &change.spec;
            self.journal.event(
                t,
                match change.began {
                    true => Occurrence::LoadBegan { load },
                    false => Occurrence::LoadPaused { load },
                },
            );
        }
    }

    /// Seconds of the schedule that every thread has told of.
    fn complete_s(&self) -> u64 {
        self.followers.iter().map(|f| f.told_s).min().unwrap_or(0)
    }

    /// Ends the run where the plan's rule says so.
    fn judge(&mut self) {
        if self.by_rule || self.interrupted.is_some() || self.stop.load(Ordering::Relaxed) {
            return;
        }
        let complete_s = self.complete_s();
        if let Some(stop) = self.stopping.look(complete_s) {
            self.by_rule = true;
            self.journal.event(self.running.t_ns(), Occurrence::Until { why: &stop.text });
            self.stop.store(true, Ordering::Relaxed);
            self.running.wake();
        }
    }

    /// What there is when every thread has ended: its last records were taken by the last look.
    pub(crate) fn into_watched(mut self) -> Result<SupervisionOutcome<W>, RunError> {
        self.flush_raw(1);
        self.flush_last_block();
        self.journal.flush();
        let raw = self.session.plan.raw && self.session.samples == SamplesTo::File;
        let observed = self.observer.take().map(Observer::end);
        let blamed = self.blamer.take().map(Blamer::end);
        let (result, output) = self.running.join().map_err(Box::new).map_err(RunError::Threads)?;
        let threads = self.followers.into_iter().zip(result).map(|(follower, result)| {
            let p2 = if raw { follower.p2.estimates() } else { Vec::new() };
            WatchedThread { collector: follower.collector, p2, result }
        });
        Ok(SupervisionOutcome {
            threads: threads.collect(),
            journal: self.journal,
            watch: self.watch,
            observed,
            blamed,
            at_threshold: self.at_threshold,
            output,
            interrupted: self.interrupted,
            by_rule: self.by_rule,
        })
    }

    /// Takes out what the threads recorded since the last look.
    fn collect(&mut self) {
        let t = self.running.t_ns();
        if !self.warm_up_over && t >= 0 {
            self.warm_up_over = true;
            self.end_warm_up();
        }
        let deadline = self.session.plan.requirement.deadline_ns;
        let begin_ns = self.running.clocks_at_start().realtime_ns;
        for ((slot, recorders), follower) in self.running.recorders().zip(&mut self.followers) {
            let recorder = &recorders.measured;
            let fresh = follower.collector.collect(recorder);
            follower.seconds.extend(fresh.seconds);
            follower.exceedances += fresh.exceedances.len() as u64;
            for exceedance in fresh.exceedances {
                if slot.context == Context::User {
                    self.stopping.exceedance(exceedance.t_ns, exceedance.error_ns);
                    if let Some(blamer) = &mut self.blamer {
                        blamer.late(&exceedance);
                    }
                    if let Some(limit) = deadline.filter(|limit| exceedance.error_ns > *limit) {
                        let event = threshold::late_wakeup(slot, &exceedance, limit);
                        self.at_threshold.occasions.late(&event, begin_ns);
                    }
                }
                if self.session.samples == SamplesTo::Viewer {
                    follower.late.push(exceedance.clone());
                }
                self.journal.line(Line::Exceedance(exceedance));
            }
            if follower.exceedances >= EXCEEDANCES_A_STEP {
                let threshold = recorder.threshold_ns().unwrap_or(0);
                let next = threshold.saturating_mul(2).max(1000);
                recorder.set_threshold_ns(next);
                let note = format!(
                    "{} {}s above {} are kept; from here on only those above {} (the histogram has all)",
                    grouped(follower.exceedances),
                    self.session.plan.late_word(),
                    format_ns_i64(threshold),
                    format_ns_i64(next)
                );
                self.journal.event(t, Occurrence::Threshold { note: &note });
                follower.exceedances = 0;
            }
            for sample in &fresh.raw {
                follower.p2.add(sample.real());
            }
            follower.raw.extend(fresh.raw);
        }
        if let Some(observer) = &mut self.observer {
            observer.poll();
        }
        if let Some(blamer) = &mut self.blamer {
            for record in blamer.poll() {
                self.journal.line(Line::Blame(Box::new(record)));
            }
            for note in blamer.take_notes() {
                self.journal.event(t, Occurrence::Blame { note: &note });
            }
        }
        self.flush_seconds();
        self.flush_raw(RAW_CHUNK);
    }

    /// Says so, and picks, from the warm-up, the latency above which wake-ups are logged one by one.
    fn end_warm_up(&mut self) {
        self.journal.began(self.running.clocks_at_start());
        let deadline = self.session.plan.requirement.deadline_ns;
        let limit = self.blamer.as_ref().and_then(Blamer::near_ns);
        let mut least = None;
        for (slot, recorders) in self.running.recorders() {
            let judged = slot.context == Context::User;
            let given = if judged { limit.or(deadline) } else { None };
            // The worst of each minute are near misses too.
            let blamed = judged && self.blamer.is_some() && limit.is_none();
            let threshold = match given {
                Some(given) if !blamed => given,
                _ => {
                    let usual = usual_ns(slot, recorders, if blamed { 0.99 } else { 0.999 });
                    given.map_or(usual, |given| given.min(usual))
                }
            };
            let most = deadline.filter(|_| judged).unwrap_or(i64::MAX);
            recorders.measured.set_threshold_ns(threshold.min(most));
            if judged {
                least = Some(least.unwrap_or(i64::MAX).min(threshold.min(most)));
            }
        }
        if let (Some(blamer), Some(least)) = (&mut self.blamer, least) {
            blamer.limit(least);
        }
    }

    /// Writes complete seconds and the moving statistics that end with them.
    fn flush_seconds(&mut self) {
        for ((slot, recorders), follower) in self.running.recorders().zip(&mut self.followers) {
            let judged = slot.context == Context::User;
            let Some(newest) = follower.seconds.back().map(|s| s.second) else { continue };
            let seconds = std::mem::take(&mut follower.seconds);
            // The extremes of missed activations are not in the records of a second.
            let extremes = seconds.iter().all(|s| s.missed == 0).then(|| {
                seconds.iter().fold((i64::MAX, i64::MIN), |(low, high), s| {
                    (low.min(s.min_ns), high.max(s.max_ns))
                })
            });
            for second in seconds {
                if judged {
                    self.stopping.second(&second);
                }
                follower.told_s = second.second + 1;
                self.journal.line(Line::Second(second));
            }
            // Histograms are as of now: windows end with the newest second.
            let c = &follower.collector;
            let (due, sums) = c.due(&recorders.measured);
            // Once for all who keep it at this precision.
            let due = due.coarsened(blocks::PRECISION);
            for record in follower.windows.push(newest, &due, &sums, c.early(), extremes) {
                self.journal.line(Line::Window(record));
            }
            if judged && self.stopping.wants_stretches() {
                let cut = follower.seconds_cut.cut(newest, &due, c.early(), &sums);
                cut.iter().for_each(|b| self.stopping.stretch(b));
            }
            if follower.blocks.due(newest) {
                let block = follower.blocks.cut(newest, &due, c.early(), &sums);
                block.into_iter().for_each(|b| self.journal.line(Line::Block(b)));
            }
            follower.newest = newest;
        }
    }

    /// The stretch that the end of the run cut short.
    fn flush_last_block(&mut self) {
        for ((_, recorders), follower) in self.running.recorders().zip(&mut self.followers) {
            let c = &follower.collector;
            let (due, sums) = c.due(&recorders.measured);
            let block = follower.blocks.cut(follower.newest, &due, c.early(), &sums);
            block.into_iter().for_each(|b| self.journal.line(Line::Block(b)));
        }
    }

    /// Writes the samples of each thread that has `least` of them or more.
    fn flush_raw(&mut self, least: usize) {
        if self.session.samples == SamplesTo::Viewer {
            return;
        }
        for ((slot, _), follower) in self.running.recorders().zip(&mut self.followers) {
            if follower.raw.len() >= least {
                self.journal.line(Line::Raw(pack_raw(
                    slot.thread,
                    follower.raw_from,
                    &follower.raw,
                )));
                follower.raw_from += follower.raw.len() as u64;
                follower.raw.clear();
            }
        }
    }

    /// Once a second: loads, disturbances, and a flush so that a kill leaves a valid shorter run.
    fn tick(&mut self) {
        let t = self.running.t_ns();
        if t < self.next_tick_ns {
            return;
        }
        self.next_tick_ns = t.saturating_add(SECOND_NS - SECOND_NS / 20);
        let samples = self.loads.poll();
        if !samples.is_empty() {
            self.rates.clear();
        }
        for s in samples {
            self.rates.push((s.name.clone(), s.rate(), s.unit.to_owned()));
            // The run's clock may be another than the load's.
            self.journal.line(Line::Load(LoadRecord { t_ns: t, ..s.record(0) }));
        }
        for finding in self.watch.tick() {
            self.journal.finding(finding);
        }
        let before_ns = self.looked_ns.replace(t);
        if let Some(before_ns) = before_ns.filter(|_| t > 0) {
            let taken = self.watch.taken(t, t.saturating_sub(before_ns));
            if !taken.is_nothing() {
                self.journal.line(Line::Disturbance(taken));
            }
        }
        if t >= self.next_checkpoint_ns {
            // From the first look on, so that the file names its threads; densely at first, then
            // every five minutes: a young run is all there is.
            self.next_checkpoint_ns = t.saturating_add(t.clamp(SECOND_NS, CHECKPOINT_MAX_NS));
            // First the kernel's: the order of the way of a wake-up.
            for mut record in self.observer.iter().flat_map(Observer::so_far) {
                record.ended = "running".into();
                self.journal.line(Line::Thread(Box::new(record)));
            }
            for ((slot, recorders), follower) in self.running.recorders().zip(&self.followers) {
                let record = thread_record(&follower.collector, slot, recorders, None);
                self.journal.line(Line::Thread(Box::new(record)));
            }
            self.journal.checkpoint();
        }
        self.journal.flush();
    }

    fn progress(&mut self) -> Progress {
        let complete_s = self.complete_s();
        let plan = &self.session.plan;
        let t = self.running.t_ns();
        let phase = if t < 0 { Phase::WarmUp } else { Phase::Measuring };
        let warm_up = self.running.start_ns() - self.running.epoch_ns();
        let (elapsed_ns, total_ns) = if t < 0 {
            (t + warm_up, warm_up)
        } else {
            (t.min(plan.duration_ns()), plan.duration_ns())
        };
        let mut histogram = Histogram::new(tailbound_rt::h2::PRECISION);
        let mut threads = Vec::new();
        for ((slot, recorders), follower) in self.running.recorders().zip(&self.followers) {
            let (mut due, missed) = follower.collector.distributions(&recorders.measured);
            let last_ns = (due.n > 0).then(|| recorders.measured.last_ns());
            let (n, missed_n) = (due.n, missed.n);
            due.merge(&missed);
            // Of another context there is another figure.
            if slot.context == Context::User {
                histogram.merge(&due.late);
            }
            let ten = follower.windows.current(10);
            threads.push(ThreadProgress {
                tid: self.running.tid(slot),
                cpu: slot.cpu,
                context: slot.context,
                n,
                missed: missed_n,
                min_ns: due.min_ns,
                mean_ns: due.mean(),
                p99_ns: quantile(&due, 0.99).ns(),
                p99_10s_ns: ten.and_then(|w| w.values.get("p99").copied()),
                max_ns: due.max_ns,
                last_ns,
            });
        }
        let mut recent = Histogram::new(tailbound_rt::h2::PRECISION);
        for (i, more) in histogram.since(&self.shown) {
            recent.add_at(i, more);
        }
        self.shown = histogram.clone();
        Progress {
            phase,
            elapsed_ns,
            total_ns,
            deadline_ns: plan.requirement.deadline_ns,
            threads,
            histogram,
            recent,
            loads: self.rates.clone(),
            statement: self.stopping.statement(complete_s).filter(|_| t >= 0),
            notes: self.journal.run.findings.iter().map(|f| f.title.clone()).collect(),
        }
    }
}

/// What the warm-up exceeded rarely enough: its quantile `p`, or its latest where it was too short to tell.
fn usual_ns(slot: RecordSlot, recorders: &Recorders, p: f64) -> i64 {
    let mut warm = Collector::new(slot.thread, 0);
    warm.collect(&recorders.warm_up);
    let (wakeups, _) = warm.distributions(&recorders.warm_up);
    let threshold = match quantile(&wakeups, p) {
        Quantile::Value { ns, .. } => ns.whole_i64(),
        _ => wakeups.max_ns.unwrap_or(0),
    };
    threshold.max(1000)
}
