// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs that begin at one instant on all machines: this machine's clock, and how each of the others differs from it.
//!
//! Units: ns. A machine's clock is asked over its shell, many times; of a round trip only its length is known, so half of
//! the shortest is the error, and what the clocks drifted by during the run comes on top. Source: RFC 5905 (NTP), clause 8.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tailbound_sys::clock::{CLOCK_REALTIME, now_ns};

use super::kept;
use super::shell::{self, ShellLauncher};
use super::{EngineError, Lease};

const ASKING: &str = "asking the machine's clock";
const TOGETHER: &str = "beginning together";
const ROUND_TRIPS: usize = 32;
/// Prints the clock for each line that it gets.
const SCRIPT: &str = "while read -r _; do date +%s%N; done";
/// A clock of this century has so many digits in ns.
const DIGITS: usize = 19;

/// By how much a machine's clock is ahead of this one's, and how wrong that may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    pub(super) ahead_ns: i64,
    pub(super) error_ns: i64,
}

impl Offset {
    /// Of the machine under `lease`.
    pub(super) fn of(lease: &Lease) -> Result<Self, EngineError> {
        match lease {
            Lease::Shell(lease) if lease.way.is_here() => Ok(Self { ahead_ns: 0, error_ns: 0 }),
            Lease::Shell(lease) => Self::by(&lease.way),
            Lease::Agent => Err(EngineError::failed(ASKING, "nobody reaches it")),
        }
    }

    fn by(way: &ShellLauncher) -> Result<Self, EngineError> {
        let failed = |e: std::io::Error| EngineError::failed(ASKING, e);
        let mut there = shell::command(way, SCRIPT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let (mut ask, answers) = (there.stdin.take(), there.stdout.take());
        let mut lines = answers.into_iter().flat_map(|a| BufReader::new(a).lines());
        let mut best: Option<Self> = None;
        let asked = (0..ROUND_TRIPS).try_for_each(|_| {
            let before = now_ns(CLOCK_REALTIME);
            if let Some(ask) = &mut ask {
                ask.write_all(b"\n").map_err(failed)?;
            }
            let line = lines.next().transpose().map_err(failed)?.unwrap_or_default();
            let trip_ns = now_ns(CLOCK_REALTIME).saturating_sub(before);
            let clock = line.trim().parse::<i64>().ok().filter(|_| line.trim().len() == DIGITS);
            let clock = clock.ok_or_else(|| {
                EngineError::failed(ASKING, format!("its date(1) says no nanoseconds: `{line}`"))
            })?;
            // Rounded up: half a nanosecond is an error as well.
            let error_ns = (trip_ns + 1) / 2;
            let ahead_ns = clock.saturating_sub(before.saturating_add(trip_ns / 2));
            if trip_ns >= 0 && best.is_none_or(|b| error_ns < b.error_ns) {
                best = Some(Self { ahead_ns, error_ns });
            }
            Ok(())
        });
        // The end of its input ends it.
        drop(ask);
        let ended = there.wait().map_err(failed);
        asked?;
        ended?;
        best.ok_or_else(|| {
            EngineError::failed(ASKING, "this machine's clock was stepped meanwhile")
        })
    }
}

/// How a run began with those of the other machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Aligned {
    /// When its first activation fell due, on the clock of the machine that runs the fleet, since 1970.
    pub begins_ns: i64,
    /// By how much the target's clock was ahead of that, before the run.
    pub ahead_ns: i64,
    /// The instant on the target's clock.
    pub begins_there_ns: i64,
    /// By how much the target's first activation may have fallen due earlier or later than that of the common clock.
    pub error_ns: i64,
    /// By how much the clocks moved against each other from before the run to its end.
    pub moved_ns: i64,
}

impl Aligned {
    pub(super) fn of(begins_ns: i64, before: Offset, after: Offset) -> Self {
        let moved_ns = after.ahead_ns.saturating_sub(before.ahead_ns);
        Self {
            begins_ns,
            ahead_ns: before.ahead_ns,
            begins_there_ns: begins_ns.saturating_add(before.ahead_ns),
            error_ns: before.error_ns.max(after.error_ns).saturating_add(moved_ns.saturating_abs()),
            moved_ns,
        }
    }

    pub(super) fn keep(&self, notes: &Path, part: &str) -> Result<(), EngineError> {
        kept::write(&notes.join(format!("{part}.aligned.json")), self)
    }
}

/// Where all targets meet before each run.
#[derive(Debug)]
pub(super) struct Meeting {
    of: usize,
    lead: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    arrived: usize,
    /// How often all were there.
    met: u64,
    begins_ns: i64,
    /// Who will not come any more.
    missing: Option<String>,
}

impl Meeting {
    pub(super) fn new(of: usize, lead: Duration) -> Self {
        Self { of, lead, state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the others; the instant to begin at, of this machine's clock.
    ///
    /// # Errors
    /// One of them does not come.
    pub(super) fn arrive(&self) -> Result<i64, EngineError> {
        let mut state = self.state();
        state.arrived += 1;
        let met = state.met;
        if state.arrived == self.of && state.missing.is_none() {
            let lead_ns = i64::try_from(self.lead.as_nanos()).unwrap_or(i64::MAX);
            state.begins_ns = now_ns(CLOCK_REALTIME).saturating_add(lead_ns);
            (state.arrived, state.met) = (0, met + 1);
            self.changed.notify_all();
            return Ok(state.begins_ns);
        }
        loop {
            if state.met > met {
                return Ok(state.begins_ns);
            }
            if let Some(name) = &state.missing {
                return Err(EngineError::failed(
                    TOGETHER,
                    format!("{name} cannot: nothing is begun without it"),
                ));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// This one does not come any more.
    pub(super) fn leave(&self, name: &str) {
        self.state().missing.get_or_insert_with(|| name.to_owned());
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_told_one_instant_each_time_and_none_waits_for_who_left() {
        let meeting = Meeting::new(3, Duration::from_secs(10));
        let before = now_ns(CLOCK_REALTIME);
        let told: Vec<Vec<Result<i64, EngineError>>> = std::thread::scope(|scope| {
            let each = |name: &'static str, times: usize| {
                let meeting = &meeting;
                scope.spawn(move || {
                    let told = (0..times).map(|_| meeting.arrive()).collect();
                    meeting.leave(name);
                    told
                })
            };
            let all = [each("a", 3), each("b", 3), each("c", 2)];
            all.into_iter().map(|t| t.join().expect("no panic")).collect()
        });
        let at = |who: usize, time: usize| told[who][time].as_ref().ok().copied();
        for time in 0..2 {
            assert!(at(0, time).is_some_and(|t| t >= before + 10_000_000_000), "{told:?}");
            assert_eq!((at(0, time), at(0, time)), (at(1, time), at(2, time)), "{told:?}");
        }
        for its in told.iter().take(2) {
            let why = its[2].as_ref().expect_err("c has left").to_string();
            assert!(why.contains("c cannot"), "{why}");
        }
    }

    #[test]
    fn a_shell_on_this_machine_has_this_machines_clock_within_the_error() {
        let offset = Offset::by(&ShellLauncher::program(vec!["env".to_owned()])).expect("a clock");
        assert!(offset.error_ns > 0 && offset.ahead_ns.abs() <= offset.error_ns, "{offset:?}");
    }

    #[test]
    fn what_clocks_moved_by_is_part_of_the_error() {
        let offset = |ahead_ns, error_ns| Offset { ahead_ns, error_ns };
        let it = Aligned::of(1_000, offset(50, 7), offset(40, 9));
        assert_eq!((it.begins_there_ns, it.moved_ns, it.error_ns), (1_050, -10, 19));
    }
}
