// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is done to a process, and when.
//!
//! Source: signal(7).

use std::fmt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use tailbound_sys::process::{Pid, kill};

/// The longest anything may take here, however busy the machine is.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// Signal numbers are those of every architecture that the tool runs on.
const INTERRUPT: i32 = 2;
const KILL: i32 = 9;
const CONTINUE: i32 = 18;
const STOP: i32 = 19;

/// A disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `kill -9`.
    Kill,
    /// Ctrl-C.
    Interrupt,
    /// Stopped for a while, as a debugger or Ctrl-Z does; then it goes on.
    Stop,
    /// Stopped, and killed while it stands.
    StopAndKill,
}

impl Fault {
    pub(crate) const ALL: [Self; 4] = [Self::Kill, Self::Interrupt, Self::Stop, Self::StopAndKill];

    /// Does the program get to end by itself?
    pub(crate) fn lets_it_end(self) -> bool {
        matches!(self, Self::Interrupt | Self::Stop)
    }

    /// Disturbs `child` now, and waits for its end; `None`: it did not end.
    pub(crate) fn disturb(self, child: &mut Child) -> Option<ExitStatus> {
        let pid = Pid(child.id().cast_signed());
        // It may have ended before; then there is nothing to disturb.
        let send = |signal| drop(kill(pid, signal));
        match self {
            Self::Kill => send(KILL),
            Self::Interrupt => send(INTERRUPT),
            Self::Stop | Self::StopAndKill => {
                send(STOP);
                std::thread::sleep(Duration::from_millis(400));
                send(if self == Self::Stop { CONTINUE } else { KILL });
            }
        }
        let ended = wait(child);
        if ended.is_none() {
            send(KILL);
            drop(child.wait());
        }
        ended
    }
}

/// Waits for the end; `None` if it does not come.
pub(crate) fn wait(child: &mut Child) -> Option<ExitStatus> {
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

/// Instants from a seed: fractions of a length.
pub(crate) struct Instants {
    seed: u64,
    state: u64,
    /// Number of times that every fault is tried.
    pub(crate) rounds: u32,
}

impl Instants {
    /// Those of the subject `name`.
    pub(crate) fn of(name: &str) -> Self {
        let number = |variable: &str| -> Option<u64> {
            std::env::var(variable).ok().and_then(|v| v.parse().ok())
        };
        let seed = number("TAILBOUND_FAULT_SEED").unwrap_or(10);
        let rounds = number("TAILBOUND_FAULTS").map_or(2, |n| u32::try_from(n).unwrap_or(2));
        let state = name.bytes().fold(seed, |s, b| s.wrapping_mul(31).wrapping_add(u64::from(b)));
        Self { seed, state, rounds }
    }

    /// The next one, in [0, 1). SplitMix64.
    pub(crate) fn next(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        #[expect(clippy::cast_precision_loss, reason = "53 bits are kept")]
        let fraction = ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
        fraction
    }
}

impl fmt::Display for Instants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TAILBOUND_FAULT_SEED={}", self.seed)
    }
}
