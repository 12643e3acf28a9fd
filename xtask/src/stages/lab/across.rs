// SPDX-License-Identifier: MIT OR Apache-2.0
//! An inversion whose urgent task is on another CPU: the boost comes by an interrupt and bounds the wait, and without inheritance
//! nothing does.
//!
//! Units: ns of virtual time. Two CPUs in short slices.

use std::fs;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::{Lab, RT};

/// Short ones: a trial costs the host what its slices cost.
const WORDS: &str = "-q -L none --smp 2 --cpus 1 -i 1ms --warm-up 2ms -l 10 --probe pi:where=other,control=2,hold=50us,spin=100us";
const OUT: &str = "across.jsonl";
const HELD_NS: i64 = 50_000;
const SPUN_NS: i64 = 100_000;

impl Lab {
    pub(super) fn inversion_across(&self) -> anyhow::Result<()> {
        let words: Vec<&str> = WORDS.split(' ').chain(["-k", RT, "-o", OUT]).collect();
        let said = self.answers(&[&["lab", "run"][..], &words].concat(), 0)?;
        ensure!(said.contains("Met: "), "{said}");
        let text = fs::read_to_string(self.folder.join(OUT))?;
        let lines: Vec<Value> = text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
        let ns = |context: &str, which: &str| {
            let is_it = |v: &&Value| v.get("context").is_some_and(|c| c == context);
            let found = lines.iter().find(is_it).and_then(|v| v.pointer(which)?.as_i64());
            found.with_context(|| format!("no {which} of {context}"))
        };
        let boost = ns("user", "/wakeup/min_ns")?;
        ensure!(boost > 0, "a boost {boost} ns before it was asked for");
        let wait = ns("wait", "/wakeup/max_ns")?;
        ensure!((HELD_NS..SPUN_NS).contains(&wait), "with inheritance it waited {wait} ns");
        let wait = ns("no-inheritance", "/wakeup/min_ns")?;
        ensure!(wait >= SPUN_NS + HELD_NS, "without inheritance it waited {wait} ns");
        Ok(())
    }
}
