// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a load was refused or did not start, worded for the person who asked for it.
//!
//! Not here: why a load cannot begin or go on in its worker (`failure`).

use tailbound_core::words::did_you_mean;
use tailbound_sys::SysError;

use crate::catalogue::CATALOGUE;

/// Why there is no load.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// No load of that name.
    #[error("`{0}` is not a load{near}: choose {names}", near = near(.0, &names()), names = names().join(", "))]
    UnknownLoad(String),
    /// No work of that name.
    #[error("`{0}` is not a benchmark{near}: choose {names}", near = near(.0, &benchmarks()), names = benchmarks().join(", "))]
    UnknownBenchmark(String),
    /// The load has no such option.
    #[error("load `{load}` has no option `{option}`{near}: it has {known}", near = near(.option, known), known = known.join(", "))]
    UnknownOption {
        /// Which load.
        load: &'static str,
        /// What was written.
        option: String,
        /// The options there are.
        known: Vec<&'static str>,
    },
    /// The option has no such value.
    #[error("load `{load}`: {option}={value}: {reason}")]
    BadValue {
        /// Which load.
        load: &'static str,
        /// Which option.
        option: String,
        /// What was written.
        value: String,
        /// What is wrong and what is right.
        reason: String,
    },
    /// An option that must be given is missing.
    #[error("load `{load}` needs {option}=…: {help}")]
    Missing {
        /// Which load.
        load: &'static str,
        /// Which option.
        option: &'static str,
        /// What it is for.
        help: &'static str,
    },
    /// The worker process could not be started.
    #[error("load `{load}` could not be started: {source}")]
    Start {
        /// Which load.
        load: String,
        /// The refused call.
        source: SysError,
    },
    /// The worker said that it cannot work, or died.
    #[error("load `{load}` failed: {reason}")]
    Failed {
        /// Which load.
        load: String,
        /// Its own words, or how it died.
        reason: String,
    },
    /// Nothing was done within the time allowed.
    #[error("not at work after {waited_ms} ms: {}", .loads.join(", "))]
    NotReady {
        /// Which loads.
        loads: Vec<String>,
        /// How long was waited.
        waited_ms: u128,
    },
}

fn names() -> Vec<&'static str> {
    CATALOGUE.iter().map(|k| k.name).collect()
}

fn benchmarks() -> Vec<&'static str> {
    crate::benchmarks::BENCHMARKS.iter().map(|w| w.name).collect()
}

fn near(typed: &str, names: &[&str]) -> String {
    did_you_mean(typed, names.iter().copied())
}
