// SPDX-License-Identifier: MIT OR Apache-2.0
//! Windows as a run file, which a store and a server take: an hour of them, for instance.
//!
//! Units: ns; `t_ns` counts from the begin of the file on CLOCK_MONOTONIC, seconds too. Threads of one name and policy are
//! one thread of the file, as they are one series of Prometheus: their numbers are others tomorrow. The histogram is exact: the classes
//! of the kernel's programs are the buckets of precision 2 (0 to 3 ns are in that of 4). Memory follows the threads, not the time.
//! It is an observation, and says so: nothing was due, nothing was required, no load was beside it that is known.
//! Not here: how it comes to a server (`tailbound-agent`, outbox).

use std::collections::BTreeMap;
use tailbound_core::order;

use tailbound_core::blame::BlameRecord;
use tailbound_core::disturbance::DisturbanceRecord;
use tailbound_core::plan::{Clock, Means, Plan};
use tailbound_core::record::{Event, Facts, Header, SCHEMA, Source, ThreadRecord, WindowRecord};
use tailbound_core::units::format_ns_i64;
use tailbound_core::{
    Context, CpuSet, Distribution, EndReason, Finding, Impact, Requirement, Run, ThreadEnd,
    runfile, utc,
};

use crate::clocks::Clocks;
use crate::window::{ThreadWindow, Window};

/// Threads of further names are one more together.
const THREADS_MAX: usize = 256;
const OTHERS: &str = "(others)";
/// Late wake-ups that are told part by part: the latest of the file.
const BLAMES_MAX: usize = 16;
/// Lines of windows, where a file could not be handed over for long.
const LINES_MAX: usize = 16_384;
/// Four classes for each power of two.
const PRECISION: u32 = 2;
/// What is 2^34 ns and more is in the top bucket: docs/run-file.md.
const RANGE_BITS: u32 = 34;
const SECOND_NS: i64 = 1_000_000_000;

/// What is the same in each file.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) version: String,
    pub(crate) command: Vec<String>,
    /// How it counts: `bpf`.
    pub(crate) way: &'static str,
    /// Is one of the threads its own light probe?
    pub(crate) has_probe: bool,
    pub(crate) machine: Facts,
}

impl About {
    /// Without a command line and a machine: for what is not written.
    pub(crate) fn new(version: &str, way: &'static str, has_probe: bool) -> Self {
        Self {
            version: version.to_owned(),
            command: Vec::new(),
            way,
            has_probe,
            machine: Facts::new(),
        }
    }
}

/// A run file while its windows come.
#[derive(Debug)]
pub(crate) struct Draft {
    run: Run,
    began: Clocks,
    threads: BTreeMap<String, u32>,
    lost: u64,
    not_told: u64,
}

fn clocks(at: &Clocks) -> tailbound_core::record::Clocks {
    tailbound_core::record::Clocks {
        monotonic_ns: at.monotonic_ns,
        boottime_ns: at.boottime_ns(),
        realtime_ns: at.realtime_ns,
    }
}

pub(crate) fn header(about: &About, began: &Clocks) -> Header {
    let tool = format!("tailbound {}", about.version);
    let started = utc::from_ns(began.realtime_ns);
    let stamp: String = started.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    let probe = "One of the threads, tailbound-probe, is the monitor's own: it sleeps and wakes, and nothing else.";
    let lost = [
        "Observed: the waits of the machine's own real-time threads, whatever they and it did meanwhile. No load was made, and nothing was required.",
        "A wait is from a wake-up (sched_waking) until the thread has a CPU (sched_switch): interrupts that were off before the wake-up are not in it.",
        "Nothing is known of a schedule: no activation is due, and none is missed.",
        "The least wait is not counted; the greatest is exact, and the others are known by a fifth of their size.",
    ];
    Header {
        schema: SCHEMA.to_owned(),
        tool: tool.clone(),
        id: format!("{stamp}-monitor-{}", std::process::id()),
        started,
        command: about.command.clone(),
        plan: Plan {
            name: None,
            probe: "monitor".to_owned(),
            options: BTreeMap::from([("by".to_owned(), about.way.to_owned())]),
            event: Some("wake-up".to_owned()),
            property: None,
            interval_ns: 0,
            activations: 0,
            warm_up_ns: 0,
            cpus: CpuSet::default(),
            policy: tailbound_core::Policy::Other,
            clock: Clock::Monotonic,
            means: Means::NotTold,
            loads: Vec::new(),
            requirement: Requirement::default(),
            cpu_dma_latency_us: None,
            raw: false,
            paranoid: false,
            observe: None,
            blame: None,
            tasks: None,
            spread: None,
            timer_slack_ns: None,
            work: None,
            until: None,
            tune: None,
        },
        machine: about.machine.clone(),
        source: Some(Source {
            tool,
            format: format!("monitor, {}", about.way),
            file: String::new(),
            lost: lost
                .iter()
                .copied()
                .chain(about.has_probe.then_some(probe))
                .map(str::to_owned)
                .collect(),
        }),
        lab: None,
        round: None,
        purpose: None,
    }
}

/// What happens to a monitor. Names and texts are for people: nobody decides by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MonitorEvent {
    Begin,
    WindowOver,
    Suspended,
    ClockStep,
    CpusOnline,
    WakeUpsLost,
}

impl MonitorEvent {
    /// Its name in a run file.
    fn as_str(self) -> &'static str {
        match self {
            Self::Begin => "monitor-begin",
            Self::WindowOver => "window-over",
            Self::Suspended => "suspended",
            Self::ClockStep => "clock-step",
            Self::CpusOnline => "cpus-online",
            Self::WakeUpsLost => "wake-ups-lost",
        }
    }

    /// As a line of a run file, with what the clocks read.
    fn at(self, t_ns: i64, now: &Clocks, text: impl Into<String>) -> Event {
        Event { clocks: Some(clocks(now)), ..Event::new(t_ns, self.as_str(), text) }
    }
}

/// Every run file of a monitor has it: nothing is "met" by looking on.
fn observed() -> Finding {
    Finding::new("observed", Impact::Doubt, "the machine's own threads were observed at work")
        .meaning("How late they were in this time, beside whatever else ran. How late they can be was not tried.")
        .remedy("Measure with `tailbound run` beside a load where a limit has to be shown.")
}

impl Draft {
    /// A file that begins at `began`.
    pub(crate) fn new(about: &About, began: Clocks) -> Self {
        let mut run = Run::new(header(about, &began));
        run.events.push(MonitorEvent::Begin.at(0, &began, ""));
        run.findings.push(observed());
        Self { run, began, threads: BTreeMap::new(), lost: 0, not_told: 0 }
    }

    /// Since when.
    pub(crate) fn began(&self) -> &Clocks {
        &self.began
    }

    fn thread(&mut self, of: &ThreadWindow) -> u32 {
        let mut name = format!("{} {}", of.comm, of.policy);
        if self.threads.len() >= THREADS_MAX && !self.threads.contains_key(&name) {
            name = OTHERS.to_owned();
        }
        let next = u32::try_from(self.threads.len()).unwrap_or(u32::MAX);
        let at = *self.threads.entry(name.clone()).or_insert(next);
        if at == next {
            self.run.threads.push(ThreadRecord {
                thread: at,
                context: Context::RunQueue,
                wakeup: Distribution {
                    sums: None,
                    late: tailbound_core::Histogram::new(PRECISION),
                    ..Distribution::default()
                },
                ended: ThreadEnd::Complete,
                name: Some(name),
                ..ThreadRecord::default()
            });
        }
        at
    }

    /// Adds a window that ended at `now`.
    pub(crate) fn add(&mut self, window: &Window, now: &Clocks) {
        let since_ns = |ns: i64| ns.saturating_sub(self.began.monotonic_ns);
        let (end_ns, length_ns) =
            (since_ns(window.end_ns), window.end_ns.saturating_sub(window.begin_ns));
        let whole = |ns: i64| u64::try_from(ns / SECOND_NS).unwrap_or(0);
        let window_s = u32::try_from(length_ns.saturating_add(SECOND_NS / 2) / SECOND_NS);
        let mut lines: BTreeMap<u32, (u64, u64, u64)> = BTreeMap::new();
        for thread in &window.threads {
            let at = self.thread(thread);
            let of = lines.entry(at).or_default();
            *of = (
                of.0.saturating_add(thread.n),
                of.1.saturating_add(thread.sum_ns),
                of.2.max(thread.worst.wait_ns),
            );
            let place = usize::try_from(at).ok();
            if let Some(record) = place.and_then(|at| self.run.threads.get_mut(at)) {
                count(&mut record.wakeup, thread);
            }
            let told = thread.recorded.as_ref().and_then(|d| d.record.as_deref());
            told.into_iter().for_each(|record| self.blame(record, at, &thread.comm));
        }
        for (thread, (n, sum_ns, max_ns)) in lines {
            if self.run.windows.len() >= LINES_MAX {
                self.not_told = self.not_told.saturating_add(1);
                continue;
            }
            let values = [("max", max_ns as f64), ("mean", sum_ns as f64 / (n as f64).max(1.0))];
            self.run.windows.push(WindowRecord {
                thread,
                window_s: window_s.unwrap_or(1).max(1),
                second: whole(end_ns).saturating_sub(1),
                n,
                values: values.map(|(name, value)| (name.to_owned(), value)).into(),
            });
        }
        if !window.taken.is_nothing() && self.run.disturbances.len() < LINES_MAX {
            let t_ns = window.taken.t_ns.saturating_sub(self.began.monotonic_ns);
            self.run.disturbances.push(DisturbanceRecord { t_ns, ..window.taken.clone() });
        }
        self.events(window, now, end_ns);
        self.lost = self.lost.saturating_add(window.lost);
        let worst = window.threads.iter().max_by_key(|t| t.worst.wait_ns);
        let text = worst.map_or_else(|| "no real-time thread was woken".to_owned(), sentence);
        self.run.events.push(MonitorEvent::WindowOver.at(end_ns, now, text));
    }

    fn events(&mut self, window: &Window, now: &Clocks, end_ns: i64) {
        let mut say = |event: MonitorEvent, text: String| {
            self.run.events.push(event.at(end_ns, now, text));
        };
        if window.suspended_ns > 0 {
            say(
                MonitorEvent::Suspended,
                format!("the machine slept {}", format_ns_i64(window.suspended_ns)),
            );
        }
        if window.realtime_shift_ns.saturating_abs() >= SECOND_NS {
            let text = format!("the time of day moved by {}", window.realtime_shift_ns);
            say(MonitorEvent::ClockStep, format!("{text} ns against the time that passed"));
        }
        if let Some(before) = &window.cpus_online_before {
            say(MonitorEvent::CpusOnline, format!("{before}, then {}", window.cpus_online));
        }
        if window.lost > 0 {
            say(MonitorEvent::WakeUpsLost, format!("{} wake-ups are not counted", window.lost));
        }
    }

    /// Keeps a late wake-up that was taken apart, of few the latest.
    fn blame(&mut self, record: &BlameRecord, thread: u32, name: &str) {
        let mut record = record.clone();
        record.t_ns = record.t_ns.saturating_sub(self.began.monotonic_ns);
        (record.thread, record.name) = (thread, name.to_owned());
        // What each CPU did is in the recorder's own file.
        record.lanes.clear();
        self.run.blames.push(record);
        order::by_key(&mut self.run.blames, |b| std::cmp::Reverse(b.latency_ns));
        self.run.blames.truncate(BLAMES_MAX);
    }

    fn lines(&self, dropped: u64) -> Run {
        let mut run = self.run.clone();
        let mut find = |id: &str, impact, title: String, meaning: &str| {
            run.findings.push(Finding::new(id, impact, title).meaning(meaning));
        };
        if self.lost > 0 {
            let title = format!("{} wake-ups were not counted", self.lost);
            let meaning = "The kernel's tables were full.";
            find("monitor-lost", Impact::Doubt, title, meaning);
        }
        if self.not_told > 0 {
            let title = format!("{} windows of threads have no line", self.not_told);
            let meaning = "The file could not be handed over for so long that it was too much; they are in the other figures.";
            find("monitor-windows", Impact::Notice, title, meaning);
        }
        if dropped > 0 {
            let title = format!("{dropped} run files before this one were removed");
            let meaning =
                "The server did not take them for so long that there was no room for them.";
            find("run-files-dropped", Impact::Notice, title, meaning);
        }
        order::by_key(&mut run.blames, |b| b.t_ns);
        run
    }

    /// As it stands, without an end: what is left of it where nothing comes after.
    ///
    /// # Errors
    /// What cannot be written as JSON.
    pub(crate) fn so_far(&self) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut writer = runfile::Writer::new(&mut bytes);
        self.lines(0).lines().try_for_each(|line| writer.line(&line))?;
        writer.checkpoint()?;
        Ok(bytes)
    }

    /// The whole file. `dropped` run files before it were never handed in.
    ///
    /// # Errors
    /// What cannot be written as JSON.
    pub(crate) fn whole(
        &self,
        reason: EndReason,
        now: &Clocks,
        dropped: u64,
    ) -> std::io::Result<Vec<u8>> {
        let mut writer = runfile::Writer::new(Vec::new());
        self.lines(dropped).lines().try_for_each(|line| writer.line(&line))?;
        writer.end(reason, now.monotonic_ns.saturating_sub(self.began.monotonic_ns))
    }
}

fn count(to: &mut Distribution, thread: &ThreadWindow) {
    let mean = |d: &Distribution| d.mean_ns.unwrap_or(0.0) * d.n as f64;
    let sum = mean(to) + thread.sum_ns as f64;
    for (upper, n) in thread.histogram.upper_ns.iter().zip(&thread.histogram.count) {
        to.late.add(*upper, *n);
        // As whoever reads it holds against the top bucket.
        if *upper >= 1 << RANGE_BITS {
            to.over_range = to.over_range.saturating_add(*n);
        }
    }
    // Read while it was counted, the two may differ by one.
    to.n = to.n.saturating_add(thread.n).max(to.late.total());
    to.unbinned = to.n.saturating_sub(to.late.total());
    to.mean_ns = Some((sum / (to.n as f64).max(1.0) * 1000.0).round() / 1000.0);
    let max = i64::try_from(thread.worst.wait_ns).unwrap_or(i64::MAX);
    to.max_ns = Some(to.max_ns.map_or(max, |m| m.max(max)));
}

fn sentence(thread: &ThreadWindow) -> String {
    let worst = &thread.worst;
    let wait = format_ns_i64(i64::try_from(worst.wait_ns).unwrap_or(i64::MAX));
    format!(
        "the longest wait was {wait}: {}-{} ({}) on CPU {}, which {}-{} ({}) had until then",
        thread.comm,
        thread.tid,
        thread.policy,
        worst.cpu,
        worst.before.comm,
        worst.before.tid,
        worst.before.policy
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::{self, tests::raw};

    fn about() -> About {
        About::new("0", "bpf", false)
    }

    fn at(s: i64) -> Clocks {
        Clocks::of(s * SECOND_NS, s * SECOND_NS, s * SECOND_NS)
    }

    /// Threads that are called so; each has a wait of 5 ns and one of 700 ns.
    fn threads(names: &[&str]) -> Window {
        let one = |name: &&str| {
            let (of, value) = raw(7, format!("{name}\0").as_bytes());
            window::thread(&of, &value).unwrap()
        };
        Window { threads: names.iter().map(one).collect(), ..Window::default() }
    }

    fn read(bytes: &[u8]) -> Run {
        runfile::read_run(bytes).unwrap()
    }

    #[test]
    fn what_was_counted_is_in_the_file_and_no_reader_objects() {
        let mut draft = Draft::new(&about(), at(100));
        for (i, names) in [&["control", "control"][..], &["arm"], &["control"]].iter().enumerate() {
            let begin = 100 + 300 * i64::try_from(i).unwrap();
            let window = Window {
                begin_ns: begin * SECOND_NS,
                end_ns: (begin + 300) * SECOND_NS,
                ..threads(names)
            };
            draft.add(&window, &at(begin + 300));
        }
        let run = read(&draft.whole(EndReason::Complete, &at(1000), 3).unwrap());
        assert!(!run.findings.iter().any(|f| f.id.starts_with("file-")), "{:?}", run.findings);
        assert!(run.findings.iter().any(|f| f.id == "observed" && f.impact.forbids_met()));
        assert!(run.findings.iter().any(|f| f.id == "run-files-dropped"));
        assert_eq!(
            (run.measured_ns(), run.judged_context()),
            (900 * SECOND_NS, Some(Context::RunQueue))
        );
        let found: Vec<_> = run.threads.iter().map(|t| (t.name.as_deref(), t.wakeup.n)).collect();
        assert_eq!(found, [(Some("control fifo:80"), 6), (Some("arm fifo:80"), 2)]);
        let (all, _) = run.judged_total();
        assert_eq!((all.n, all.max_ns, all.late.total(), all.unbinned), (8, Some(700), 8, 0));
        // 5 ns, and 640 to 767 ns.
        let buckets: Vec<_> = all.late.buckets().map(|b| (b.low_ns, b.width_ns, b.count)).collect();
        assert_eq!(buckets, [(5, 1, 4), (640, 128, 4)]);
        let points: Vec<_> = run
            .windows
            .iter()
            .map(|w| (w.thread, w.window_s, w.second, w.n, w.values["max"]))
            .collect();
        assert_eq!(
            points,
            [(0, 300, 299, 4, 700.0), (1, 300, 599, 2, 700.0), (0, 300, 899, 2, 700.0)]
        );
        let half = read(&draft.so_far().unwrap());
        assert_eq!((half.end, half.threads, half.windows), (None, run.threads, run.windows));
    }

    #[test]
    fn what_was_not_seen_or_stood_still_is_said() {
        let mut draft = Draft::new(&about(), at(0));
        let window = Window {
            end_ns: SECOND_NS,
            lost: 4,
            suspended_ns: 7 * SECOND_NS,
            realtime_shift_ns: -SECOND_NS,
            cpus_online_before: Some("0-3".to_owned()),
            ..Window::default()
        };
        draft.add(&window, &at(1));
        let run = read(&draft.whole(EndReason::Interrupted, &at(1), 0).unwrap());
        let events: Vec<&str> = run.events.iter().map(|e| e.event.as_str()).collect();
        let wanted = [
            "monitor-begin",
            "suspended",
            "clock-step",
            "cpus-online",
            "wake-ups-lost",
            "window-over",
        ];
        assert_eq!(events, wanted);
        assert!(run.findings.iter().any(|f| f.id == "monitor-lost"));
        assert!(run.threads.is_empty());
    }

    #[test]
    fn a_machine_with_many_names_makes_no_endless_file() {
        let mut draft = Draft::new(&about(), at(0));
        for i in 0..THREADS_MAX + 9 {
            draft.add(&threads(&[&format!("t{i}")]), &at(1));
        }
        let run = read(&draft.whole(EndReason::Complete, &at(1), 0).unwrap());
        assert_eq!(run.threads.len(), THREADS_MAX + 1);
        assert_eq!(run.threads.last().unwrap().wakeup.n, 18);
    }
}
