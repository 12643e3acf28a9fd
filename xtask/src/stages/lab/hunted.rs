// SPDX-License-Identifier: MIT OR Apache-2.0
//! `hunt`: the same seed gives the same corpus, a hunt that was ended goes on to it, and what is left of the worst
//! shows the same by its command.
//!
//! A few candidates of few activations: whether a search finds much is a matter of minutes, and of
//! the tests of `tailbound-search`.

use std::fs;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::{Lab, STOCK};

/// The base line is fifteen.
const FEW: &str = "4";
const MORE: &str = "8";
const LOOPS: &str = "40";

impl Lab {
    /// Single loads as they come are the first candidates.
    pub(super) fn hunted(&self) -> anyhow::Result<()> {
        let words = |out: &'static str, n: &'static str| {
            ["hunt", "-q", "--json", "-k", STOCK, "-l", LOOPS, "--evaluations", n, "-o", out]
        };
        let corpus = |out: &str| fs::read(self.folder.join(out).join("corpus.jsonl"));
        let whole = self.answers(&words("hunted", MORE), 0)?;
        self.answers(&words("hunted-again", FEW), 0)?;
        let (all, part) = (corpus("hunted")?, corpus("hunted-again")?);
        ensure!(all.starts_with(&part) && part.len() < all.len(), "another corpus");
        let resumed = ["hunt", "-q", "--json", "--evaluations", MORE, "--resume", "hunted-again"];
        let answer: Value = serde_json::from_str(&self.answers(&resumed, 0)?).context("no JSON")?;
        ensure!(corpus("hunted-again")? == all, "what went on is another corpus");
        let at = |path: &str| answer.pointer(path).cloned().unwrap_or_default();
        ensure!(at("/schema") == "tailbound-hunt/1" && at("/evaluations") == 8, "{answer}");
        ensure!(at("/verified/same") == true, "{}", at("/verified"));
        let first: Value = serde_json::from_str(&whole).context("no JSON")?;
        ensure!(first.pointer("/shrunk") == answer.pointer("/shrunk"), "another remainder");
        self.same_by_its_command(&answer)
    }

    /// The command in the answer, as somebody else would type it.
    fn same_by_its_command(&self, answer: &Value) -> anyhow::Result<()> {
        let command = answer.get("command").and_then(Value::as_array).context("no command")?;
        let mut words: Vec<&str> = command.iter().skip(1).filter_map(Value::as_str).collect();
        words.extend(["-q", "--json", "-o", "hunted-run.jsonl"]);
        self.answers(&words, 0)?;
        let run = |path: &str| fs::read(self.folder.join(path));
        let ours = run("hunted-again/worst.tailbound.jsonl")?;
        ensure!(run("hunted-run.jsonl")? == ours, "the command makes another run");
        Ok(())
    }
}
