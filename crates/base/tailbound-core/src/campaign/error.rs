// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with a campaign file, and in which line.

use crate::cpus::ParseCpusError;
use crate::units::ParseTimeError;

/// Why a text is no campaign.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CampaignError {
    /// Not TOML, or a key or type that there is not.
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    /// Something in a table is wrong.
    #[error("{}{fault}", .line.map_or_else(String::new, |n| format!("line {n}: ")))]
    At {
        /// Where the table begins.
        line: Option<usize>,
        /// What.
        fault: Fault,
    },
}

/// What is wrong in a table.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// The campaign's name.
    #[error("name: {0}")]
    Name(Box<Fault>),
    /// Nothing is measured.
    #[error("no [[step]]: a campaign measures something")]
    NoStep,
    /// Two ways to make several runs of a step.
    #[error("`tasks` and `variant` cannot both be given")]
    TasksAndVariants,
    /// What the lab, benchmarks and tasks of the machine itself have no part in.
    #[error(
        "`timed-from = \"outside\"` goes with `not-in-lab`, and with neither `only-work` nor `tasks`"
    )]
    Outside,
    /// Two runs with one name.
    #[error("two runs are called `{0}`: choose other ids for steps and variants")]
    SameRun(String),
    /// A figure has neither value nor reason, or both.
    #[error("figure `{0}`: give `step` and `statistic`, or `cannot` with the reason")]
    Figure(String),
    /// The unit of a figure does not fit its statistic.
    #[error("figure `{name}`: its statistic needs {} as `unit`", if *.time { "a time: ns, us, ms or s" } else { "no unit of time" })]
    Unit {
        /// The figure.
        name: String,
        /// Is its statistic a time?
        time: bool,
    },
    /// A system that there is not.
    #[error("no system is called `{name}`; there are {}", .known.join(", "))]
    NoSystem {
        /// Its name.
        name: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// A run that there is not.
    #[error("no run is called `{name}`; there are {}", .known.join(", "))]
    NoRun {
        /// Its name.
        name: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// A name that cannot be that of a file.
    #[error(
        "`{0}`: a name is up to 60 of a-z, A-Z, 0-9, `_`, `+`, `.`, `-`, and begins with a letter or digit"
    )]
    NotPlain(String),
    /// A name twice.
    #[error("`{0}` is there twice")]
    Twice(String),
    /// A claim has neither sides nor reason, or both.
    #[error("a claim has `left`, `is` and `right`, or `cannot` with the reason")]
    Claim,
    /// A side of a claim.
    #[error("`{0}`: write `SYSTEM PART STATISTIC`, or a value such as 20us")]
    Side(String),
    /// A statistic that there is not.
    #[error("statistic `{0}` is none of {words}", words = super::statistic::WORDS)]
    Statistic(String),
    /// A value that is no percentage.
    #[error("`{0}` is not a percentage")]
    Percentage(String),
    /// A value that is neither a number nor a time.
    #[error("`{text}`: {error}")]
    Value {
        /// What was written.
        text: String,
        /// Why it is no time.
        error: ParseTimeError,
    },
    /// Numbers of tasks.
    #[error("tasks = \"{text}\": {error}")]
    Tasks {
        /// What was written.
        text: String,
        /// What is wrong with it.
        error: ParseCpusError,
    },
}
