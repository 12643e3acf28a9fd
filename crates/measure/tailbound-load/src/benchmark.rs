// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a benchmark once, in a process of its own, and takes its time and its processor time.
//!
//! Units: ns of CLOCK_MONOTONIC; processor time as the kernel accounts it,
//! of the worker and of everything it waited for.
//! The whole process is timed, as time(1) does, from its start to its end.
//! Source: wait4(2).

use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitStatus;

use tailbound_core::Spec;
use tailbound_core::record::{BenchmarkInterval, BenchmarkRecord};
use tailbound_sys::process::{self, ChildTimes, ChildWait, Pid};
use tailbound_sys::{SysError, clock, ipc};

use crate::error::LoadError;
use crate::loads::{self, StartOptions};
use crate::protocol::{Garbled, Lines, Report, STOP};
use crate::worker::BENCHMARK;
use crate::{benchmarks, launch, options};

/// From one look for an interruption to the next.
const LOOK_MS: i32 = 100;
/// Looks that a worker told to stop has before it is killed.
const STOP_LOOKS: u32 = 10;

/// What the worker has said so far.
#[derive(Default)]
struct Heard {
    intervals: Vec<BenchmarkInterval>,
    total: u64,
    failed: Option<String>,
}

/// Runs the benchmark `spec` (of [`crate::benchmark()`]) once; `None` if `interrupted` said so before its
/// end. A benchmark that failed has a record with the reason.
///
/// # Errors
/// [`LoadError`]: the specification means nothing here, or no process could be started.
pub fn run_benchmark(
    spec: &Spec,
    repetition: u32,
    how: &StartOptions,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Option<BenchmarkRecord>, LoadError> {
    let load = benchmarks::as_load(spec);
    let parsed = options::parse(&load)?;
    loads::check_cpus(&parsed)?;
    let failed = |source| LoadError::Start { load: spec.to_string(), source };
    let begun_ns = clock::now_ns(clock::CLOCK_MONOTONIC);
    let (pid, stream) =
        launch::worker(&format!("{BENCHMARK}{load}"), parsed.cpus.as_ref(), how).map_err(failed)?;
    let mut heard = Heard::default();
    let ended = attend(pid, stream, begun_ns, &mut heard, interrupted).map_err(failed)?;
    let real_ns = clock::now_ns(clock::CLOCK_MONOTONIC).saturating_sub(begun_ns);
    let Some((status, times)) = ended else { return Ok(None) };
    let failed = heard.failed.or_else(|| {
        (!status.success()).then(|| format!("its worker ended with {}", process::ended(status)))
    });
    Ok(Some(BenchmarkRecord {
        work: spec.name.clone(),
        spec: spec.to_string(),
        repetition,
        real_ns,
        user_ns: times.user_ns,
        sys_ns: times.sys_ns,
        count: heard.total,
        unit: parsed.kind.unit.to_owned(),
        intervals: heard.intervals,
        failed,
    }))
}

/// Until the worker has ended; `None`: it was interrupted.
fn attend(
    pid: Pid,
    mut stream: UnixStream,
    begun_ns: i64,
    heard: &mut Heard,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Option<(ExitStatus, ChildTimes)>, SysError> {
    let mut lines = Lines::default();
    loop {
        ipc::wait_readable(&[stream.as_fd()], LOOK_MS)?;
        let over = process::wait_times(pid, ChildWait::Never)?;
        let closed = heard.listen(&mut stream, &mut lines, begun_ns);
        if let Some(ended) = over {
            return Ok(Some(ended));
        }
        if closed {
            // Its end of the socket is gone: it is on its way out.
            return process::wait_times(pid, ChildWait::UntilEnd);
        }
        if interrupted() {
            stop(pid, &mut stream)?;
            return Ok(None);
        }
    }
}

/// Ends the worker and with it all that it started.
fn stop(pid: Pid, stream: &mut UnixStream) -> Result<(), SysError> {
    // A worker that cannot be told is killed below.
    let _refused = stream.write_all(STOP);
    for _ in 0..STOP_LOOKS {
        if process::wait_times(pid, ChildWait::Never)?.is_some() {
            return Ok(());
        }
        ipc::wait_readable(&[], LOOK_MS)?;
    }
    process::kill_session(pid);
    // Gone already is what was wanted.
    let _gone = process::kill(pid, process::SIGKILL);
    process::wait_times(pid, ChildWait::UntilEnd).map(drop)
}

impl Heard {
    /// Takes in what arrived; was that the end?
    fn listen(&mut self, stream: &mut UnixStream, lines: &mut Lines, begun_ns: i64) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return true,
                Ok(n) => {
                    for report in lines.feed(buffer.get(..n).unwrap_or_default()) {
                        self.hear(report, begun_ns);
                    }
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return e.kind() != std::io::ErrorKind::WouldBlock,
            }
        }
    }

    fn hear(&mut self, report: Result<Report, Garbled>, begun_ns: i64) {
        match report {
            Ok(Report::Count { total, at_ns }) => {
                let count = total.saturating_sub(self.total);
                self.total = self.total.max(total);
                self.intervals
                    .push(BenchmarkInterval { t_ns: at_ns.saturating_sub(begun_ns), count });
            }
            Ok(Report::Failed { reason }) => {
                self.failed.get_or_insert(reason);
            }
            Err(garbled) => {
                self.failed.get_or_insert(garbled.to_string());
            }
            Ok(
                Report::Done { .. }
                | Report::Ended { .. }
                | Report::Reduced { .. }
                | Report::Note { .. },
            ) => {}
        }
    }
}
