// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock that the times of a trace are read from.
//!
//! Units: ns, but for the clocks that count something else.
//! Source: Documentation/trace/ftrace.rst, "trace_clock".

use std::fmt;

/// A clock of the tracer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TraceClock {
    /// `CLOCK_MONOTONIC`: timers and trace count alike.
    Mono,
    /// `CLOCK_BOOTTIME`.
    Boot,
    /// `CLOCK_TAI`.
    Tai,
    /// `CLOCK_MONOTONIC_RAW`.
    MonoRaw,
    /// The CPU's own; those of different CPUs may differ.
    Local,
    /// The same, made to agree.
    Global,
    /// That of perf.
    Perf,
    /// The processor's counter of cycles.
    X86Tsc,
    /// Jiffies.
    Uptime,
    /// Events are numbered.
    Counter,
    /// One that this program does not know.
    Other(String),
    /// The file does not say.
    #[default]
    NotSaid,
}

/// A clock that counts something else than time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTime {
    /// Events are numbered.
    #[error("`counter`, numbers the events")]
    Events,
    /// Ticks of the kernel.
    #[error("`uptime`, counts jiffies of 1 to 10 ms")]
    Jiffies,
    /// Cycles of an unknown length.
    #[error("`x86-tsc`, counts cycles, and the file does not say how long one is")]
    Cycles,
}

impl TraceClock {
    pub(super) fn of(word: &str) -> Self {
        match word {
            "mono" => Self::Mono,
            "boot" => Self::Boot,
            "tai" => Self::Tai,
            "mono_raw" => Self::MonoRaw,
            "local" => Self::Local,
            "global" => Self::Global,
            "perf" => Self::Perf,
            "x86-tsc" | "tsc2nsec" => Self::X86Tsc,
            "uptime" => Self::Uptime,
            "counter" => Self::Counter,
            "" => Self::NotSaid,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Are the due times of timers on this clock?
    #[must_use]
    pub fn is_the_timers(&self) -> bool {
        *self == Self::Mono
    }

    /// Does it count ns? `tsc`: how cycles become ns, where the file says it.
    pub(super) fn is_time(&self, tsc: Option<&Tsc>) -> Result<(), NoTime> {
        match self {
            Self::Counter => Err(NoTime::Events),
            Self::Uptime => Err(NoTime::Jiffies),
            Self::X86Tsc if tsc.is_none() => Err(NoTime::Cycles),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for TraceClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Mono => "mono",
            Self::Boot => "boot",
            Self::Tai => "tai",
            Self::MonoRaw => "mono_raw",
            Self::Local => "local",
            Self::Global => "global",
            Self::Perf => "perf",
            Self::X86Tsc => "x86-tsc",
            Self::Uptime => "uptime",
            Self::Counter => "counter",
            Self::Other(word) => word,
            Self::NotSaid => "not said",
        })
    }
}

/// The clock within the kernel's file `trace_clock`: the one in brackets, or the only word.
pub(super) fn chosen(text: &str) -> &str {
    let within = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    within.map_or_else(|| text.trim(), |(word, _)| word)
}

/// How cycles become ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tsc {
    /// Times this,
    pub mult: u32,
    /// shifted right by this.
    pub shift: u32,
}

impl Tsc {
    /// ns of a time in cycles, from an arbitrary begin.
    #[must_use]
    pub fn ns(&self, cycles: u64) -> u64 {
        let ns = u128::from(cycles).saturating_mul(u128::from(self.mult)) >> self.shift.min(127);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}
