// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why work is denied by the owner's policy, or why the policy's text is none.
//!
//! Units: ns.
//! Not here: the policy ([`crate::policy`]).

use tailbound_core::cpus::{CpuSet, ParseCpusError};
use tailbound_core::spec::SpecError;
use tailbound_core::units::{ParseTimeError, format_ns_i64};
use tailbound_load::LoadError;
use tailbound_series::SeriesError;

/// Why it may not be run, for the operator: which run, what it wants, and what the owner would have to write.
#[derive(Debug, thiserror::Error)]
pub enum Denial {
    /// The policy is no TOML, or has other keys.
    #[error("{}", .0.to_string().trim_end())]
    Format(#[from] toml::de::Error),
    /// A time that cannot be read.
    #[error("{key}: {why}")]
    Time {
        /// Its key.
        key: &'static str,
        /// What is wrong with it.
        why: ParseTimeError,
    },
    /// The longest time of the policy is none.
    #[error("longest: {0} allows nothing: write \"10min\"")]
    Nothing(String),
    /// The CPUs of the policy.
    #[error("cpus: {0}")]
    OwnCpus(ParseCpusError),
    /// A load of the policy that there is not.
    #[error("loads: there is no load `{name}`; there are {}", known())]
    NoLoad {
        /// Its name.
        name: String,
    },
    /// The scale of the order.
    #[error("scale {0}: a share above 0 and up to 1")]
    Scale(f64),
    /// The campaign of the order.
    #[error(transparent)]
    Campaign(#[from] SeriesError),
    /// One of its runs.
    #[error("{part}: {why}")]
    Run {
        /// Which.
        part: String,
        /// Why.
        why: Box<Denial>,
    },
    /// All runs together take too long.
    #[error("its runs take {}; the owner allows `longest` {}", format_ns_i64(*.all_ns), format_ns_i64(*.longest_ns))]
    TooLong {
        /// They take.
        all_ns: i64,
        /// They may take.
        longest_ns: i64,
    },
    /// Some runs name CPUs and some do not.
    #[error("some runs name no CPUs; the owner allows `cpus` {own}")]
    NoCpus {
        /// Those of the policy.
        own: CpuSet,
    },
    /// The options have no names.
    #[error("its options cannot be read")]
    Options,
    /// An option of a later version.
    #[error("`{key}`: this agent has no rule for it")]
    NoRule {
        /// The option.
        key: String,
    },
    /// A load, a probe, that cannot be read.
    #[error("{what} {text}: {why}")]
    Spec {
        /// Which of them.
        what: &'static str,
        /// Its words.
        text: String,
        /// What is wrong with them.
        why: SpecError,
    },
    /// A benchmark that cannot be read.
    #[error("work {text}: {why}")]
    Benchmark {
        /// Its words.
        text: String,
        /// What is wrong with them.
        why: LoadError,
    },
    /// It names a command.
    #[error("it names a command; the owner allows none (`commands`)")]
    Command,
    /// Its threads are not pinned.
    #[error("its threads run on any CPU; the owner allows `cpus` {own}")]
    Unpinned {
        /// Those of the policy.
        own: CpuSet,
    },
    /// A switch of the policy is off.
    #[error("the owner does not allow it: `{key}` is false")]
    Switch {
        /// Its key.
        key: &'static str,
    },
    /// Its CPUs are no list.
    #[error("cpus {text}: the owner allows `cpus` {own}: write a list of these")]
    NoList {
        /// Its words.
        text: String,
        /// Those of the policy.
        own: CpuSet,
    },
    /// Its CPUs are others.
    #[error("cpus {text}: the owner allows `cpus` {own}")]
    OtherCpus {
        /// Its words.
        text: String,
        /// Those of the policy.
        own: CpuSet,
    },
    /// It has no length.
    #[error("it does not say how long it is (`loops`, `duration`)")]
    NoLength,
    /// The policy does not list it.
    #[error("{what} `{name}`: the owner allows `{key}` {}", those(.allowed))]
    NotListed {
        /// A load, a probe, …
        what: &'static str,
        /// Its name.
        name: String,
        /// The key of the policy.
        key: &'static str,
        /// What stands there.
        allowed: Vec<String>,
    },
}

fn known() -> String {
    tailbound_load::CATALOGUE.iter().map(|k| k.name).collect::<Vec<_>>().join(", ")
}

fn those(allowed: &[String]) -> String {
    if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") }
}
