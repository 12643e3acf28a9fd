// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far a campaign is, for people and for programs.

use std::fmt;

use serde_json::{Value, json};
use tailbound_core::units::{format_ns_i64, format_span, grouped};

use super::follow::SoFar;
use super::make::{Ahead, Now};

const NS_PER_S: i64 = 1_000_000_000;

/// `12,000 fell due, none later than 83.4 µs`
impl fmt::Display for SoFar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} fell due, none later than {}", grouped(self.due), format_ns_i64(self.max_ns))
    }
}

/// What is made, how long that takes about, and where.
impl fmt::Display for Ahead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kept > 0 {
            write!(f, "{} runs are complete already; ", self.kept)?;
        }
        write!(f, "{} to be made, about {}", self.open, format_span(self.left_ns))?;
        if self.benchmarks > 0 {
            write!(f, ", and what {} benchmarks take", self.benchmarks)?;
        }
        write!(f, "; {}", self.folder.display())
    }
}

impl Now<'_> {
    /// `run 2 of 7, NAME`
    #[must_use]
    pub fn which(&self) -> String {
        format!("run {} of {}, {}", self.at + 1, self.of, self.part)
    }

    /// The run, its times and what it says so far.
    #[must_use]
    pub fn text(&self, so_far: Option<SoFar>) -> String {
        let whole = |ns: i64| format_span(ns / NS_PER_S * NS_PER_S);
        let so_far = so_far.map_or_else(String::new, |s| format!("; so far {s}"));
        format!(
            "{}: {} elapsed, about {} left{so_far}",
            self.which(),
            whole(self.elapsed_ns),
            whole(self.left_ns)
        )
    }

    /// The run and its times, for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let s = |ns: i64| u64::try_from(ns / NS_PER_S).unwrap_or(0);
        json!({"part": self.part, "at": self.at + 1, "of": self.of,
            "elapsed_s": s(self.elapsed_ns), "left_s": s(self.left_ns)})
    }
}
