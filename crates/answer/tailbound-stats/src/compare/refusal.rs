// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why systems are not compared.
//!
//! Pure.

use super::design::Design;

/// What is missing, or what forbids a statement; the end of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Values of unknown size: not even their rank is known.
    #[error(
        "{values} values are in no bucket of its source, which does not say how great they are"
    )]
    Unbinned {
        /// How many.
        values: u64,
    },
    /// An import, or a run without them.
    #[error("its file does not hold the histograms of stretches of the run")]
    NoStretches,
    /// Stretches of it are not independent at any length.
    #[error(
        "the maxima of its seconds stay correlated over the whole run: it drifts, or has phases"
    )]
    Drifts,
    /// No intervals from so little.
    #[error("{}", few(*.have, *.design))]
    TooFew {
        /// Units of the system that has the fewest.
        have: usize,
        /// What they are.
        design: Design,
    },
    /// Rounds that are no pairs.
    #[error("{a} rounds of one and {b} of the other")]
    Unpaired {
        /// Of the reference.
        a: usize,
        /// Of the other.
        b: usize,
    },
    /// A unit without a value.
    #[error("a {} holds no activation at all", .design.unit())]
    Empty {
        /// What it is.
        design: Design,
    },
    /// A series that has just begun.
    #[error("{name}: there is no complete round to compare yet")]
    NoRound {
        /// The variant that has none.
        name: String,
    },
    /// A series of one variant.
    #[error("only runs of variant `{name}` are there: a comparison takes two")]
    OneVariant {
        /// The variant.
        name: String,
    },
    /// One guest with CPUs that run in turn, and one without.
    #[error(
        "the CPUs of one guest ran in turn and those of the other did not, so that a ratio would be one of shares of virtual time"
    )]
    OneInTurn,
    /// Guests of another number of CPUs.
    #[error(
        "the guests had {a} and {b} CPUs, which share virtual time, so that a ratio would be one of shares"
    )]
    Cpus {
        /// Of the reference.
        a: u32,
        /// Of the other.
        b: u32,
    },
    /// Slices of another length.
    #[error("the CPUs of the guests ran in slices of {} and {}: make both with the same --slice", length(*.a_ns), length(*.b_ns))]
    Slices {
        /// Of the reference; 0: long ones.
        a_ns: u64,
        /// Of the other.
        b_ns: u64,
    },
    /// Other loads beside the measured CPU.
    #[error(
        "the guests' CPUs share virtual time, and the loads were {a} and {b}: compare runs of the same load"
    )]
    OtherLoad {
        /// Of the reference.
        a: String,
        /// Of the other.
        b: String,
    },
    /// Runs under one name.
    #[error("{}: name two files or folders", one_system(name, *runs))]
    OneSystem {
        /// The name.
        name: String,
        /// How many.
        runs: usize,
    },
    /// Nothing was given.
    #[error("there is no run to compare")]
    NoRun,
    /// One system of several.
    #[error("{name}: {why}")]
    Of {
        /// Its name.
        name: String,
        /// What is the matter with it.
        #[source]
        why: Box<Refusal>,
    },
}

fn length(ns: u64) -> String {
    if ns == 0 { "QEMU's own length".to_owned() } else { format!("{} µs", ns / 1000) }
}

fn few(have: usize, design: Design) -> String {
    let plural = match (have, design) {
        (1, _) => "",
        (_, Design::Stretches) => "es",
        _ => "s",
    };
    format!(
        "{have} {}{plural} of each system {} too few for intervals: it takes {}",
        design.unit(),
        if have == 1 { "is" } else { "are" },
        design.units_min()
    )
}

/// Why runs under one name cannot be compared with each other.
fn one_system(name: &str, runs: usize) -> String {
    match runs {
        1 => format!("compare needs two runs; {name} is one"),
        n => format!(
            "compare needs two systems; the {n} runs of {name}, not made by `run --rounds`, are one"
        ),
    }
}
