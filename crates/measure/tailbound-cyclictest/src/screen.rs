// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is shown while it measures, and what is counted from it: the viewer of a run.
//!
//! Context: COLD, ten times a second.

use std::io::Write;
use std::sync::atomic::Ordering;

use tailbound_core::Run;
use tailbound_core::progress::{Phase, Progress};
use tailbound_host::Root;
use tailbound_run::{ThreadSamples, View};
use tailbound_sys::limits;

use crate::options::{Options, Screen};
use crate::status::{self, Columns};
use crate::tally::CyclicTally;
use crate::unit::Unit;
use crate::verbose::Oscilloscope;

/// The latency that ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Break {
    t_ns: i64,
    pub(crate) thread: usize,
    pub(crate) latency: i64,
}

/// One measured thread.
struct Watched {
    tid: i32,
    tally: CyclicTally,
    oscilloscope: Oscilloscope,
}

/// All that is kept of a run.
pub(crate) struct Viewer<'a> {
    screen: Screen,
    unit: Unit,
    step: u64,
    break_at: u64,
    columns: Columns,
    policy: String,
    root: &'a Root,
    threads: Vec<Watched>,
    drawn: Option<Vec<i64>>,
    pub(crate) broken: Option<Break>,
    out: &'a mut dyn Write,
}

impl<'a> Viewer<'a> {
    pub(crate) fn new(
        options: &Options,
        threads: usize,
        (policy, priority): (String, u8),
        root: &'a Root,
        out: &'a mut dyn Write,
    ) -> Self {
        let watched = || Watched {
            tid: 0,
            tally: CyclicTally::new(options.rows),
            oscilloscope: Oscilloscope::default(),
        };
        let columns = Columns { unit: options.unit, priority, interval_us: options.interval_us };
        Self {
            screen: options.screen(),
            unit: options.unit,
            step: options.step,
            break_at: options.break_at,
            columns,
            policy,
            root,
            threads: std::iter::repeat_with(watched).take(threads).collect(),
            drawn: None,
            broken: None,
            out,
        }
    }

    /// Takes what a run shows.
    pub(crate) fn see(&mut self, view: View<'_>, note: &mut dyn FnMut(&str)) {
        match view {
            View::Note(text) | View::Alert(text) => note(text),
            View::Samples(samples) => self.add(&samples),
            View::Progress(progress) => self.progress(progress),
        }
    }

    fn add(&mut self, samples: &ThreadSamples<'_>) {
        let Some(number) = usize::try_from(samples.thread).ok() else { return };
        let Some(watched) = self.threads.get_mut(number) else { return };
        let mut lines = String::new();
        for ns in samples.errors_ns {
            let latency = self.unit.cut(*ns);
            if self.screen == Screen::Latencies {
                let cycle = watched.tally.cycles;
                watched.oscilloscope.add(&mut lines, self.step, samples.thread, cycle, latency);
            }
            watched.tally.add(latency);
        }
        let limit = i64::try_from(self.break_at).unwrap_or(i64::MAX);
        for late in samples.exceedances.iter().filter(|_| self.break_at > 0) {
            let (t_ns, latency) = (late.t_ns, self.unit.cut(late.error_ns));
            if latency > limit && self.broken.is_none_or(|first| t_ns < first.t_ns) {
                self.broken = Some(Break { t_ns, thread: number, latency });
            }
        }
        self.print(&lines);
    }

    fn progress(&mut self, progress: &Progress) {
        for (watched, thread) in self.threads.iter_mut().zip(&progress.threads) {
            watched.tid = thread.tid.unwrap_or(watched.tid);
        }
        let greatest: Vec<i64> = self.threads.iter().map(|w| w.tally.greatest).collect();
        let wanted = match self.screen {
            Screen::Frames => true,
            Screen::Maxima => self.drawn.as_ref() != Some(&greatest),
            Screen::Latencies | Screen::Nothing => false,
        };
        if wanted && progress.phase == Phase::Measuring {
            self.draw(greatest);
        }
    }

    /// Draws the frame over the one before it.
    fn draw(&mut self, greatest: Vec<i64>) {
        let loadavg = self.root.text("/proc/loadavg").unwrap_or_else(|_| "unknown".to_owned());
        let up = self.drawn.replace(greatest).map(|_| status::up(self.threads.len()));
        let frame = status::frame(&self.policy, &loadavg, &self.lines());
        self.print(&format!("{}{frame}", up.unwrap_or_default()));
    }

    /// Answers SIGUSR1 as cyclictest does, and SIGUSR2, for which it has a file in shared memory, likewise.
    pub(crate) fn status(&self, note: &mut dyn FnMut(&str)) {
        const RULE: &str = "#---------------------------";
        note(&format!("{RULE}\n# cyclictest current status:\n{}{RULE}", self.lines()));
    }

    /// The last frame.
    pub(crate) fn end(&mut self) {
        match self.screen {
            Screen::Frames | Screen::Maxima => self.draw(Vec::new()),
            Screen::Latencies | Screen::Nothing => {}
        }
    }

    /// Takes count and extremes from the records of the run where samples of a thread were lost.
    pub(crate) fn correct(&mut self, run: &Run, note: &mut dyn FnMut(&str)) {
        for record in &run.threads {
            let lost = record.dropped.get("raw").copied().unwrap_or(0);
            let number = usize::try_from(record.thread).ok();
            let watched = number.and_then(|number| self.threads.get_mut(number));
            let (Some(watched), true, Some((least, greatest))) =
                (watched, lost > 0, record.wakeup.min_ns.zip(record.wakeup.max_ns))
            else {
                continue;
            };
            let n = record.wakeup.n;
            watched.tally.correct(n, self.unit.cut(least), self.unit.cut(greatest));
            note(&format!(
                "thread {}: {lost} of {n} latencies are missing in average and histogram, because nothing took them out in time; Min, Max and C have them",
                record.thread
            ));
        }
    }

    /// A line for each thread.
    pub(crate) fn lines(&self) -> String {
        let threads: Vec<(i32, &CyclicTally)> =
            self.threads.iter().map(|w| (w.tid, &w.tally)).collect();
        status::lines(&self.columns, &threads)
    }

    pub(crate) fn tids(&self) -> Vec<i32> {
        self.threads.iter().map(|w| w.tid).collect()
    }

    pub(crate) fn tallies(&self) -> Vec<&CyclicTally> {
        self.threads.iter().map(|w| &w.tally).collect()
    }

    /// Prints; whoever reads no further wants no more.
    pub(crate) fn print(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).is_err() {
            limits::STOP.store(true, Ordering::Relaxed);
        }
    }
}
