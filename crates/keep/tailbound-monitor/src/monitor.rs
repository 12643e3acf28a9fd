// SPDX-License-Identifier: MIT OR Apache-2.0
//! The monitor: window after window until a signal or the end of its time.
//!
//! Context: SETUP ([`Monitor::begin`]), COLD. Units: ns. It sleeps until the window ends; with a threshold it looks once a second
//! for what was late. It stays off isolated CPUs, and its sleeps may end late, so that no CPU is woken for it alone.
//! Not here: counting (`counter`), what is written (`window`, `exposition`).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tailbound_core::{EndReason, Run, utc};
use tailbound_host::{MachineReadings, Root, inventory_of_identity};
use tailbound_sys::signal::{LOOK, Signals};
use tailbound_sys::{limits, resident};

use crate::apart::apart;
use crate::boost::{Boost, Booster, Boosting};
use crate::clocks::Clocks;
use crate::cost::Cost;
use crate::counting::{By, Counting, CountingError};
use crate::exposition::{self, Format, Metrics, StarvingCounts, Whose};
use crate::lines::Lines;
use crate::probe::{Probe, ProbeError};
use crate::programs::Tells;
use crate::recent::Recent;
use crate::recorder::{Record, Recorder, RecorderError};
use crate::runfile::About;
use crate::starving::{StarvationWatch, Starving, StarvingChange};
use crate::summary::Summary;
use crate::upload::{Upload, Uploading};
use crate::window::{Dump, Late, Policy, Series, ThreadWindow, Window};
use crate::{housekeeping, http, notify, probe};

const ONLINE: &str = "/sys/devices/system/cpu/online";
/// From one look for late wake-ups to the next.
const LOOK_NS: i64 = 1_000_000_000;
/// Late wake-ups of a window that are told one by one: a machine that is late all the time must not fill the disk.
const LATE_MAX: u64 = 1000;
/// Series of Prometheus; threads of further names are one more together.
const SERIES_MAX: usize = 256;
const OTHERS: &str = "(others)";
/// So much later may a sleep of the monitor's own end.
const SLACK_NS: i64 = 50_000_000;

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorOptions {
    /// Length of a window.
    pub every_ns: i64,
    /// Wake-ups of longer waits are told one by one.
    pub threshold_ns: Option<u64>,
    /// Threads that could run and do not for longer are told; without it nobody looks for them.
    pub starving_ns: Option<i64>,
    /// The file of lines; without one they are handed over.
    pub out: Option<PathBuf>,
    /// Where Prometheus reads.
    pub listen: Option<SocketAddr>,
    /// For so long; without it until a signal.
    pub length_ns: Option<i64>,
    /// A flight recorder; it needs a threshold, and programs in the kernel.
    pub record: Option<Record>,
    /// A light probe of its own: on this CPU, or on one that is kept for nobody.
    pub probe: Option<Option<u32>>,
    /// By what to count.
    pub by: By,
    /// This program, which removes a trace instance after a kill.
    pub exe: PathBuf,
}

/// Why there is no monitor.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// Nothing can be counted.
    #[error("wake-ups cannot be counted in this kernel {0}")]
    Counting(#[from] CountingError),
    /// Nothing can be recorded.
    #[error("the flight recorder: {0}")]
    Recorder(#[from] RecorderError),
    /// No probe can be.
    #[error("{0}")]
    Probe(#[from] ProbeError),
    /// The file of lines.
    #[error("{0}: {1}")]
    Out(PathBuf, std::io::Error),
    /// The address.
    #[error("{0}: {1}")]
    Listen(SocketAddr, std::io::Error),
}

#[derive(Debug, Serialize)]
struct Begin<'a> {
    /// The version of these lines.
    monitor: u32,
    tailbound: &'a str,
    way: &'a str,
    every_ns: i64,
    threshold_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    starving_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<Probe>,
    machine: String,
    kernel: String,
    utc: String,
    monotonic_ns: i64,
}

/// A line of the file.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Line<'a> {
    Begin(Begin<'a>),
    Late(&'a Late),
    Dump(&'a Dump),
    Starving(&'a Starving),
    /// It ran again.
    Starved(&'a Starving),
    Boost(&'a Boost),
    Window(&'a Window),
    End(&'a Summary),
}

impl Line<'_> {
    fn text(&self) -> String {
        // Numbers and strings alone: there is nothing that could not be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// What the thread that answers Prometheus shares with the monitor.
struct Shared {
    counter: Counting,
    told: Metrics,
    /// Late and lost ones up to the begin of the window.
    late_told: u64,
}

/// Sentences on what comes with late wake-ups.
pub type Reasons = fn(&Run) -> Vec<String>;

/// See the module.
pub struct Monitor {
    root: Root,
    asked: MonitorOptions,
    shared: Arc<Mutex<Shared>>,
    lines: Option<Lines>,
    recorder: Option<Recorder>,
    watch: Option<StarvationWatch>,
    boosting: Option<Boosting>,
    uploading: Option<Uploading>,
    readings: MachineReadings,
    recent: Recent,
    about: About,
    reasons: Option<Reasons>,
    /// What was recorded in this window: of each thread the latest.
    recorded: BTreeMap<u32, Dump>,
    not_recorded: u64,
    notes: Vec<String>,
    first: String,
    /// Once a second: for what was late, or what else would be lost.
    is_looked_at: bool,
    /// Nobody reads what is printed any more.
    is_unread: bool,
    began: Clocks,
    window: Clocks,
    cpus: String,
    lost: (u64, u64),
    late: u64,
    summary: Summary,
}

impl std::fmt::Debug for Monitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Monitor").field("asked", &self.asked).finish_non_exhaustive()
    }
}

fn locked(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    // Counts are right after each statement that changes them.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn online(root: &Root) -> String {
    root.read_trimmed(ONLINE).unwrap_or_else(|e| e.to_string())
}

/// Adds threads to the series of their names; those beyond the most go together.
fn add(series: &mut BTreeMap<Whose, Series>, threads: &[ThreadWindow]) {
    for thread in threads {
        let mut whose = (thread.comm.clone(), thread.policy);
        if series.len() >= SERIES_MAX && !series.contains_key(&whose) {
            whose = (OTHERS.to_owned(), Policy::several());
        }
        series.entry(whose).or_default().add(thread);
    }
}

/// Adds a window that ended.
fn add_window(told: &mut Metrics, window: &Window) {
    told.series.values_mut().for_each(|s| s.max_ns = 0);
    add(&mut told.series, &window.threads);
    told.windows = window.window;
    told.suspended_ns = told.suspended_ns.saturating_add(window.suspended_ns);
    if let Some(gaps) = window.recorder_gaps {
        let sum = told.recorder_gaps.get_or_insert_default();
        sum.off_ns = sum.off_ns.saturating_add(gaps.off_ns);
        sum.late = sum.late.saturating_add(gaps.late);
    }
}

/// The page of Prometheus: all windows that ended, and the one under way.
fn page(root: &Root, shared: &Mutex<Shared>, format: Format) -> Vec<u8> {
    let shared = locked(shared);
    let mut told = shared.told.clone();
    let max: BTreeMap<Whose, u64> =
        told.series.iter().map(|(whose, s)| (whose.clone(), s.max_ns)).collect();
    add(&mut told.series, &shared.counter.so_far());
    for (whose, series) in &mut told.series {
        series.max_ns = max.get(whose).copied().unwrap_or(0);
    }
    let (lost, untold) = shared.counter.lost();
    told.lost = lost;
    told.late = shared.late_told.saturating_add(untold);
    drop(shared);
    told.cpus_online = root.cpus(ONLINE).ok().map(|cpus| cpus.iter().count());
    told.own = Cost::so_far(root);
    exposition::page(&told, format)
}

impl Monitor {
    /// Begins to count.
    ///
    /// # Errors
    /// [`MonitorError`]: this kernel or user cannot, the file cannot be written, the address is no good.
    pub fn begin(
        root: Root,
        asked: MonitorOptions,
        version: &str,
        upload: Option<Upload>,
    ) -> Result<Self, MonitorError> {
        housekeeping::stay(&root);
        limits::set_timer_slack_ns(SLACK_NS).unwrap_or_default();
        let listener = asked
            .listen
            .map(|at| http::listen(at).map(|l| (at, l)).map_err(|e| MonitorError::Listen(at, e)));
        let listener = listener.transpose()?;
        // Before there is a second thread.
        let machine = upload.as_ref().map(|_| apart(|| inventory_of_identity(&root)));
        let tells = if asked.record.is_some() { Tells::Waiter } else { Tells::Nobody };
        // The recorder is stopped by the programs.
        let by = if asked.record.is_some() { By::Bpf } else { asked.by };
        let mut notes = Vec::new();
        let counter =
            Counting::begin(&root, by, &asked.exe, asked.threshold_ns, tells, &mut notes)?;
        let recorder = match (&asked.record, counter.counter()) {
            (Some(r), Some(c)) => Some(Recorder::begin(&root, r, c, version, &mut notes)?),
            _ => None,
        };
        let probe = asked.probe.map(|cpu| probe::begin(&root, cpu)).transpose()?;
        let began = Clocks::now();
        let text = |path| root.read_trimmed(path).unwrap_or_else(|e| e.to_string());
        let first = Line::Begin(Begin {
            monitor: 1,
            tailbound: version,
            way: counter.way(),
            every_ns: asked.every_ns,
            threshold_ns: asked.threshold_ns,
            starving_ns: asked.starving_ns,
            probe,
            machine: text("/proc/sys/kernel/hostname"),
            kernel: text("/proc/sys/kernel/osrelease"),
            utc: utc::from_ns(began.realtime_ns),
            monotonic_ns: began.monotonic_ns,
        })
        .text();
        let lines = asked.out.as_ref().map(|path| {
            Lines::open(path, first.clone()).map_err(|e| MonitorError::Out(path.clone(), e))
        });
        let lines = lines.transpose()?;
        let about = About::new(version, counter.way(), probe.is_some());
        let uploading = upload.map(|upload| {
            let (command, machine) = (upload.command.clone(), machine.unwrap_or_default());
            Uploading::begin(About { command, machine, ..about.clone() }, upload, began)
        });
        let is_looked_at = asked.threshold_ns.is_some() || counter.is_looked_at();
        let shared = Shared { counter, told: Metrics::default(), late_told: 0 };
        let shared = Arc::new(Mutex::new(shared));
        if let Some((at, listener)) = listener {
            let (root, shared) = (root.clone(), Arc::clone(&shared));
            http::serve(listener, move |format| page(&root, &shared, format))
                .map_err(|e| MonitorError::Listen(at, e))?;
        }
        let cpus = online(&root);
        let watch = asked.starving_ns.map(|ns| StarvationWatch::new(ns, began.monotonic_ns));
        let readings = MachineReadings::begin(&root);
        Ok(Self {
            readings,
            recent: Recent::default(),
            about,
            reasons: None,
            root,
            asked,
            shared,
            lines,
            recorder,
            watch,
            boosting: None,
            uploading,
            recorded: BTreeMap::new(),
            not_recorded: 0,
            notes,
            first,
            is_looked_at,
            is_unread: false,
            began,
            window: began,
            cpus,
            lost: (0, 0),
            late: 0,
            summary: Summary::default(),
        })
    }

    /// The same, with CPU time lent to threads that starve.
    #[must_use]
    pub fn with_boosts(self, booster: Option<Box<dyn Booster>>) -> Self {
        Self { boosting: booster.map(Boosting::new), ..self }
    }

    /// Has each window say what comes with the late ones; `reasons` makes sentences of a run.
    #[must_use]
    pub fn with_reasons(mut self, reasons: Reasons) -> Self {
        self.reasons = Some(reasons);
        self
    }

    /// Until a signal that ends programs, or the end of its time; SIGHUP opens the file again. `print` gets the lines where there is
    /// no file and says whether anybody still reads them, which ends it too; `note` what a person should know.
    pub fn run(
        mut self,
        signals: &Signals,
        print: &mut dyn FnMut(&str) -> bool,
        note: &mut dyn FnMut(&str),
    ) -> Summary {
        self.notes.iter().for_each(|text| note(text));
        if self.lines.is_none() {
            self.is_unread = !print(&self.first);
        }
        // The begin touched much of the program that is never needed again. A kernel that does not tell what can go: then it stays.
        resident::release_program().unwrap_or_default();
        notify::tell("READY=1");
        while !self.is_unread {
            let now = Clocks::now().monotonic_ns;
            let end = self.asked.length_ns.map(|l| self.began.monotonic_ns.saturating_add(l));
            let due = self.window.monotonic_ns.saturating_add(self.asked.every_ns);
            let next = end.map_or(due, |end| end.min(due));
            let mut left = next.saturating_sub(now).max(0);
            if self.is_looked_at {
                left = left.min(LOOK_NS);
            }
            left = self.watch.as_ref().map_or(left, |w| left.min(w.left_ns(now)));
            let lent = self.boosting.as_ref().and_then(|b| b.left_ns(now));
            left = left.min(lent.unwrap_or(left));
            let ms = left.saturating_add(999_999) / 1_000_000;
            let signal = signals.wait(i32::try_from(ms).unwrap_or(i32::MAX));
            // The recorder has something to write: no reason to end.
            let signal = signal.filter(|s| *s != LOOK);
            let is_hangup = signal.is_some_and(|s| tailbound_sys::signal::name(s) == "SIGHUP");
            if is_hangup && let Some(lines) = &mut self.lines {
                if let Err(e) = lines.reopen() {
                    note(&format!("the file of lines could not be opened again: {e}"));
                }
                continue;
            }
            let now = Clocks::now().monotonic_ns;
            let over = signal.is_some() || end.is_some_and(|end| now >= end);
            if over {
                notify::tell("STOPPING=1");
            }
            self.tell_late(print, note);
            self.tell_starving(print, note);
            let ends = over.then_some(match signal {
                Some(_) => EndReason::Interrupted,
                None => EndReason::Complete,
            });
            if over || now >= due {
                self.close(ends, print, note);
            }
            if over {
                break;
            }
        }
        if let Some(left) = self.boosting.as_mut().and_then(|b| b.end(Clocks::now().monotonic_ns)) {
            self.write(&Line::Boost(&left).text(), print).unwrap_or_default();
        }
        self.summary.own = Cost::so_far(&self.root);
        if let Some(Err(e)) = self.recorder.take().map(Recorder::end) {
            note(&format!("the next start removes the recorder's trace instance: {e}"));
        }
        if let Err(e) = locked(&self.shared).counter.end() {
            note(&format!("the next start removes the trace instance: {e}"));
        }
        let end = Line::End(&self.summary).text();
        self.write(&end, print).unwrap_or_default();
        self.summary
    }

    fn write(&mut self, line: &str, print: &mut dyn FnMut(&str) -> bool) -> std::io::Result<()> {
        match &mut self.lines {
            Some(lines) => lines.write(line),
            None => {
                self.is_unread |= !print(line);
                Ok(())
            }
        }
    }

    fn tell_late(&mut self, print: &mut dyn FnMut(&str) -> bool, note: &mut dyn FnMut(&str)) {
        let (mut lines, mut n) = (Vec::new(), self.late);
        let (mut seen, recent) = (Vec::new(), &mut self.recent);
        let is_recorded = self.recorder.is_some();
        let mut shared = locked(&self.shared);
        shared.counter.late(&mut |late| {
            n = n.saturating_add(1);
            recent.late(&late);
            if n <= LATE_MAX {
                lines.push(Line::Late(&late).text());
            }
            if is_recorded {
                seen.push(late);
            }
        });
        shared.late_told = shared.late_told.saturating_add(n.saturating_sub(self.late));
        drop(shared);
        self.late = n;
        lines.extend(self.record(&seen, note));
        for line in lines {
            // A full disk is said with the window.
            self.write(&line, print).unwrap_or_default();
        }
    }

    /// Says who starves, and lends it CPU time if that is wanted.
    fn tell_starving(&mut self, print: &mut dyn FnMut(&str) -> bool, note: &mut dyn FnMut(&str)) {
        let now_ns = Clocks::now().monotonic_ns;
        let turns = match self.watch.as_mut().map(|w| w.look(&self.root, now_ns)) {
            None => return,
            Some(Ok(turns)) => turns,
            Some(Err(why)) => {
                note(&format!("threads that starve are not looked for any more: {}", why.reason()));
                self.watch = None;
                return;
            }
        };
        let line = |turn: &StarvingChange| match turn {
            StarvingChange::Starves(starving) => Line::Starving(starving).text(),
            StarvingChange::Over(starving) => Line::Starved(starving).text(),
        };
        let mut lines: Vec<String> = turns.iter().map(line).collect();
        let starving: Vec<&Starving> = self.watch.iter().flat_map(StarvationWatch::now).collect();
        if let Some(boosting) = &mut self.boosting {
            let boosts = boosting.go_on(&starving, now_ns);
            lines.extend(boosts.iter().map(|b| Line::Boost(b).text()));
            self.summary.boosts = boosting.n;
        }
        for line in lines {
            self.write(&line, print).unwrap_or_default();
        }
    }

    /// Has the recorder write the latest one, if it is wanted; the line that says so.
    fn record(&mut self, late: &[Late], note: &mut dyn FnMut(&str)) -> Option<String> {
        let now_ns = Clocks::now().monotonic_ns;
        match self.recorder.as_mut()?.look(late, now_ns)? {
            Ok(dump) => {
                let line = Line::Dump(&dump).text();
                // Of one window each is later than the one before.
                self.recorded.insert(dump.tid, dump);
                Some(line)
            }
            Err(e) => {
                self.not_recorded = self.not_recorded.saturating_add(1);
                note(&format!("a late wake-up could not be recorded: {e}"));
                None
            }
        }
    }

    /// How many threads starved in the window that ends.
    fn next_starving(&mut self) -> Option<u64> {
        let (began, all) = self.watch.as_mut().map(StarvationWatch::next_window)?;
        self.summary.starving = self.summary.starving.saturating_add(began);
        Some(all)
    }

    fn starving_counts(&self) -> Option<StarvingCounts> {
        let now = self.watch.as_ref()?.now().count();
        Some(StarvingCounts { now, all: self.summary.starving, boosts: self.summary.boosts })
    }

    /// What comes with the late ones of the last windows, `window` among them.
    fn reasons_with(&mut self, window: &Window, now: &Clocks) -> Vec<String> {
        self.recent.add(window);
        let (Some(reasons), Some(run)) = (self.reasons, self.recent.run(&self.about, now)) else {
            return Vec::new();
        };
        let sentences = reasons(&run);
        // What that touched is not needed until the next window.
        resident::release_program().unwrap_or_default();
        sentences
    }

    /// Ends the window, and begins the next one.
    fn close(
        &mut self,
        ends: Option<EndReason>,
        print: &mut dyn FnMut(&str) -> bool,
        note: &mut dyn FnMut(&str),
    ) {
        let turned_ns = Clocks::now().monotonic_ns.max(0).cast_unsigned();
        let mut shared = locked(&self.shared);
        let mut threads = match shared.counter.turn() {
            Ok(threads) => threads,
            Err(e) => {
                drop(shared);
                return note(&format!("the window goes on: {e}"));
            }
        };
        drop(shared);
        // Those of the window that were late since the last look.
        self.tell_late(print, note);
        for thread in &mut threads {
            thread.recorded = self.recorded.remove(&thread.tid);
            thread.is_probe = self.asked.probe.is_some() && thread.comm == probe::NAME;
        }
        let starving = self.next_starving();
        let mut shared = locked(&self.shared);
        let now = Clocks::now();
        let lost = shared.counter.lost();
        let since = |now: u64, before: u64| now.saturating_sub(before);
        let untold = since(lost.1, self.lost.1).saturating_add(self.late.saturating_sub(LATE_MAX));
        let cpus = online(&self.root);
        if cpus != self.cpus {
            // Where all of its CPUs went the kernel let it run anywhere.
            housekeeping::stay(&self.root);
        }
        let (begin_ns, end_ns) = (self.window.monotonic_ns, now.monotonic_ns);
        let span_ns = end_ns.saturating_sub(begin_ns);
        let mut window = Window {
            window: self.summary.windows.saturating_add(1),
            utc: utc::from_ns(now.realtime_ns),
            begin_ns,
            end_ns,
            suspended_ns: now.suspended_ns(&self.window),
            realtime_shift_ns: now.shift_ns(&self.window),
            cpus_online_before: (cpus != self.cpus).then(|| self.cpus.clone()),
            cpus_online: cpus.clone(),
            n: threads.iter().fold(0, |n: u64, t| n.saturating_add(t.n)),
            lost: since(lost.0, self.lost.0),
            late: self.late.saturating_add(since(lost.1, self.lost.1)),
            late_untold: untold,
            starving,
            not_recorded: std::mem::take(&mut self.not_recorded),
            recorder_gaps: self.recorder.as_mut().map(Recorder::next_window),
            not_written: self.summary.not_written,
            upload: self.uploading.as_ref().map(Uploading::state),
            own: Cost::so_far(&self.root),
            reasons: Vec::new(),
            taken: self.readings.next(&self.root, end_ns, span_ns),
            threads,
        };
        add_window(&mut shared.told, &window);
        shared.told.starving = self.starving_counts();
        drop(shared);
        self.summary.windows = window.window;
        self.summary.n = self.summary.n.saturating_add(window.n);
        self.summary.lost = lost.0;
        self.summary.late = self.summary.late.saturating_add(window.late);
        (self.window, self.cpus, self.lost, self.late) = (now, cpus, lost, 0);
        window.reasons = self.reasons_with(&window, &now);
        // What came after the window's end is of the next one.
        self.recorded.retain(|_, dump| dump.at_ns > turned_ns);
        if let Err(e) = self.write(&Line::Window(&window).text(), print) {
            self.summary.not_written = self.summary.not_written.saturating_add(1);
            note(&format!("window {} could not be written: {e}", window.window));
        }
        if let Some(uploading) = &mut self.uploading
            && let Err(e) = uploading.add(&window, &now, ends)
        {
            note(&format!("the run file could not be kept, and goes on: {e}"));
        }
        let not_written = self.summary.not_written;
        let mut shared = locked(&self.shared);
        shared.told.not_written = not_written;
        shared.told.upload = self.uploading.as_ref().map(Uploading::state);
        drop(shared);
        notify::tell(&format!(
            "STATUS={} windows, {not_written} not written; {} wake-ups in the last",
            window.window, window.n
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::{self, tests::raw};

    #[test]
    fn threads_of_more_names_than_are_kept_are_one_series() {
        let mut series = BTreeMap::new();
        for i in 0..SERIES_MAX + 9 {
            let (of, value) = raw(7, format!("thread-{i}\0").as_bytes());
            add(&mut series, &[window::thread(&of, &value).unwrap()]);
        }
        assert_eq!(series.len(), SERIES_MAX + 1);
        let others = series.iter().find(|(whose, _)| whose.0 == OTHERS).unwrap();
        assert_eq!(others.1.n, 18);
    }
}
