// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worker's side: one load, its supervisor, and the promise that nothing is left.
//!
//! Units: ns of CLOCK_MONOTONIC.
//! The supervisor is the main thread: it reports, collects children, and ends when told
//! to, when the socket to the measuring process closes, or on SIGTERM. As init of a PID
//! namespace its end is the end of everything in it; otherwise it is the subreaper of what
//! the load started, and kills it.
//! Not here: the work (one file per load), what it is asked (`kind`).

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tailbound_core::Spec;
use tailbound_sys::process::{self, ChildSignals};
use tailbound_sys::{clock, ipc};

use crate::failure::{Explain, Failure};
use crate::kind::{Load, Turn};
use crate::protocol::Report;
use crate::{fork, machine, options};

/// The descriptor a worker finds its end of the socket at.
pub const STATUS_FD: i32 = 3;

const REPORT_EVERY: Duration = Duration::from_millis(250);
/// A benchmark is over sooner than a load, and its rate over time is a result.
const REPORT_BENCHMARK_EVERY: Duration = Duration::from_millis(100);
/// Prefix that marks a benchmark.
pub(crate) const BENCHMARK: &str = "work ";
/// Under memory pressure the load goes first, not the measurement.
const OOM_SCORE_ADJ: &str = "500";
/// The supervisor sleeps but for a few lines per second; behind hundreds of runnable tasks
/// of its own load it would hear `stop` too late.
const SUPERVISOR_NICE: i32 = -10;

/// Runs the load `spec` until its end, reporting on the socket at descriptor `status_fd`
/// (normally [`STATUS_FD`]). The body of the hidden `load-worker` subcommand: call it
/// before the process starts any thread, and end the process with what it returns.
#[must_use]
pub fn worker_main(spec: &str, status_fd: i32) -> ExitCode {
    if spec == fork::NOTHING {
        return ExitCode::SUCCESS;
    }
    let channel = match process::inherited(status_fd) {
        Ok(fd) => Channel { stream: UnixStream::from(fd), pending: Vec::new() },
        Err(e) => {
            // Started by hand: there is nobody to report to but the person at the terminal.
            let _closed = writeln!(
                std::io::stderr(),
                "load-worker is started by `measure` and `load`, not by hand ({e})"
            );
            return ExitCode::from(2);
        }
    };
    supervise(spec, channel)
}

fn supervise(spec: &str, mut channel: Channel) -> ExitCode {
    // Who reads a trace, or top, sees which load it is.
    process::set_name(spec.split(':').next().unwrap_or(spec));
    let outcome = run(spec, &mut channel);
    // As init of a namespace the kernel does this when we end.
    let left = if process::own_pid().0 == 1 { 0 } else { process::kill_descendants() };
    let failure = match (outcome, left) {
        (Err(why), _) => Some(why.to_string()),
        (Ok(()), 0) => None,
        (Ok(()), left) => Some(format!("{left} of its processes could not be ended")),
    };
    match failure {
        Some(reason) => {
            channel.send_whole(&Report::Failed { reason });
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}

fn run(spec: &str, channel: &mut Channel) -> Result<(), Failure> {
    channel.stream.set_nonblocking(true).on("its socket")?;
    let (spec, every) = match spec.strip_prefix(BENCHMARK) {
        Some(work) => (work, REPORT_BENCHMARK_EVERY),
        None => (spec, REPORT_EVERY),
    };
    let parsed = spec.parse::<Spec>()?;
    let parsed = options::parse(&parsed)?;
    let signals = ChildSignals::open()?;
    process::become_subreaper()?;
    if let Err(e) = fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJ) {
        channel.send(&Report::Note { text: format!("oom_score_adj not raised: {e}") });
    }
    let mut note = |text: String| {
        channel.send(&match text.strip_prefix(machine::REDUCED) {
            Some(how) => Report::Reduced { how: how.to_owned() },
            None => Report::Note { text },
        });
    };
    let mut load = parsed.start.start(&mut note)?;
    // After the load's tasks were made, which keep nice 0. Without the right to it, stopping
    // takes longer.
    let _slower = process::set_nice(SUPERVISOR_NICE);
    attend(load.as_mut(), channel, &signals, every)
}

fn attend(
    load: &mut dyn Load,
    channel: &mut Channel,
    signals: &ChildSignals,
    every: Duration,
) -> Result<(), Failure> {
    let mut due = Instant::now();
    loop {
        let left = due.saturating_duration_since(Instant::now());
        // One more ms: poll rounds down, and would be called again and again in the last one.
        let ms = i32::try_from(left.as_millis()).unwrap_or(0) + 1;
        let mut fds = vec![channel.stream.as_fd(), signals.as_fd()];
        fds.extend(load.source());
        let ready = ipc::wait_readable(&fds, ms)?;
        let stop = ready.first() == Some(&true) && channel.stop_requested();
        let signal = signals.take();
        let ended: Vec<_> = std::iter::from_fn(process::reap_any).collect();
        let turn = load.turn(&ended);
        let now = Instant::now();
        let over = stop || signal.is_some() || !matches!(turn, Ok(Turn::Going));
        if over || now >= due {
            let at_ns = clock::now_ns(clock::CLOCK_MONOTONIC);
            channel.send(&Report::Count { total: load.count(), at_ns });
            due = now + every;
        }
        if stop {
            channel.flush_whole();
            return Ok(());
        }
        match turn? {
            Turn::Going => {}
            Turn::Done { elapsed_ns } => {
                channel.send_whole(&Report::Done { elapsed_ns });
                return Ok(());
            }
            Turn::Ended(reason) => {
                channel.send_whole(&Report::Ended { reason });
                return Ok(());
            }
        }
        if let Some(signal) = signal {
            return Err(Failure::Signal(signal));
        }
    }
}

/// The socket to the measuring process. Never blocks while work is reported: counts are
/// cumulative, and a reader that is away must not stop the supervisor.
struct Channel {
    stream: UnixStream,
    pending: Vec<u8>,
}

impl Channel {
    fn send(&mut self, report: &Report) {
        self.flush();
        let wanted = !matches!(report, Report::Count { .. }) || self.pending.is_empty();
        if wanted {
            self.pending.extend_from_slice(report.line().as_bytes());
            self.flush();
        }
    }

    fn flush(&mut self) {
        while !self.pending.is_empty() {
            match self.stream.write(&self.pending) {
                Ok(n) => drop(self.pending.drain(..n)),
                // Full, or nobody there any more: stop_requested sees the latter.
                Err(_) => return,
            }
        }
    }

    /// Last words: worth a moment's wait if the reader is slow.
    fn flush_whole(&mut self) {
        let patience = Some(Duration::from_millis(300));
        if self.stream.set_nonblocking(false).is_ok()
            && self.stream.set_write_timeout(patience).is_ok()
        {
            self.flush();
        }
    }

    fn send_whole(&mut self, report: &Report) {
        self.pending.extend_from_slice(report.line().as_bytes());
        self.flush_whole();
    }

    /// Anything received is `stop`, and so is the end of the stream or an error on it.
    fn stop_requested(&mut self) -> bool {
        let mut buffer = [0; 64];
        let heard = self.stream.read(&mut buffer);
        !heard.is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
    }
}
