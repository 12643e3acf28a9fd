// SPDX-License-Identifier: MIT OR Apache-2.0
//! The theoretical bound of real kernels: nothing that was observed lies above it.
//!
//! Figures are of virtual time: the same on every host.

use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::super::tally::Tally;
use super::{LOAD, Lab, RT, STOCK};
use crate::exec;

/// Models that hold for every wake-up of the run that they are from.
const BOUNDS: [&str; 3] = ["window", "window-counts", "sporadic"];
/// Variables without which there is no bound.
const NEEDED: [&str; 4] = ["poid", "psd", "st", "return"];

/// Of an answer of `lab paths --theory --json`.
pub(super) fn holds(answer: &Value) -> anyhow::Result<()> {
    let at = |path: &str| answer.pointer(path).cloned().unwrap_or_default();
    let observed = |name: &str| at(&format!("/theory/observed/{name}")).as_i64();
    let variables = at("/theory/variables");
    for needed in NEEDED {
        let there = variables.as_array().into_iter().flatten();
        let mut there = there.filter(|v| v.get("variable").is_some_and(|name| name == needed));
        ensure!(there.next().is_some(), "no {needed} in {variables}");
    }
    ensure!(at("/bound/refused").as_array().is_some_and(Vec::is_empty), "{}", at("/bound/refused"));
    let models = at("/bound/models");
    let mut bounds = 0;
    for model in models.as_array().context("no models")? {
        let name = model.get("model").and_then(Value::as_str).unwrap_or_default();
        if !BOUNDS.contains(&name) {
            continue;
        }
        for (bound, seen) in [("latency_ns", "scheduling_ns"), ("sample_ns", "sample_ns")] {
            let seen = observed(seen).context("nothing observed")?;
            ensure!(seen > 0, "nothing observed");
            match model.get(bound).and_then(Value::as_i64) {
                Some(ns) => ensure!(ns >= seen, "{name}: {seen} ns observed, above {ns}"),
                None => ensure!(name != "window", "no bound: {model}"),
            }
        }
        bounds += 1;
    }
    ensure!(bounds == BOUNDS.len(), "{models}");
    Ok(())
}

/// The answer where an interrupt served the timer of a judged wake-up before it was due: nothing is said of that run, which the build decides.
const REFUSED: &str = "were served before they were due";

/// A kernel that does not preempt its own code with two loads, and one that does; [`Lab::paths`] looks at another.
const CELLS: [(&str, &str); 3] = [(STOCK, LOAD), (STOCK, "fork"), (RT, "timers")];

/// A kernel with events where interrupts and preemption are disabled, and how one comes by it.
const EVENTS: &str = "build:preemptirq";
const BUILD: &str = "tailbound lab kernel build --source debian:linux-source-6.12 --fragment full,preemptirq --name preemptirq";
const RECORDED: &str = "what a kernel's own events tell is nowhere less than what is exact";

/// What came of a kernel with a load.
enum TheoryAnswer {
    /// A bound, which holds.
    Bounded,
    /// Nothing can be said.
    Refused,
}

impl Lab {
    /// `bound --theory here` within a guest, beside `lab paths --theory` of the same kernel: no variable and no interrupt is shorter, and the bound is
    /// not below what either run observed. Without a load: with one, two runs have different sections (docs/theory.md).
    pub(super) fn recorded_theory(&self, project: &Path) -> anyhow::Result<Tally> {
        let mut tally = Tally::default();
        let built = self.answers(&["lab", "kernel", "list", "--local", "-q"], 0)?;
        let lacking = ["cc", "cpio", "python3"].into_iter().find(|tool| !exec::exists(tool));
        if !built.contains(EVENTS) {
            let why = format!("there is no kernel {EVENTS}: {BUILD}");
            tally.skip(RECORDED, "kernel-preemptirq", &why);
        } else if let Some(tool) = lacking {
            tally.skip(RECORDED, "theory-here", &format!("there is no {tool}"));
        } else {
            let mut script = exec::command("sh");
            script.arg(project.join("bench/theory-here.sh")).arg("none");
            script.env("PROGRAM", &self.program).env("KERNEL", EVENTS);
            script.current_dir(&self.folder);
            tally.add(RECORDED, self.ends(&mut script, 0).map(drop));
        }
        Ok(tally)
    }

    /// Nothing that was observed is above its bound; the whole matrix is `bench/theory.sh`.
    pub(super) fn theory(&self) -> anyhow::Result<()> {
        let mut answered = 0;
        for (kernel, load) in CELLS {
            let cell = self.bounded(kernel, load);
            match cell.with_context(|| format!("{kernel} with {load}"))? {
                TheoryAnswer::Bounded => answered += 1,
                TheoryAnswer::Refused => {
                    println!("    {kernel} with {load}: nothing is said: timers {REFUSED}")
                }
            }
        }
        ensure!(answered + 1 >= CELLS.len(), "{answered} of {} cells were answered", CELLS.len());
        Ok(())
    }

    fn bounded(&self, kernel: &str, load: &str) -> anyhow::Result<TheoryAnswer> {
        let words = ["lab", "paths", "--quiet", "--json", "--theory", "-k", kernel, "-L", load];
        let more = ["-i", "1ms", "-D", "100ms"];
        let text = match self.answers(&[&words[..], &more].concat(), 0) {
            Err(e) if format!("{e:#}").contains(REFUSED) => return Ok(TheoryAnswer::Refused),
            answer => answer?,
        };
        let answer: Value = serde_json::from_str(&text).context("no JSON")?;
        holds(&answer)?;
        let conditions = answer.pointer("/theory/preconditions").and_then(Value::as_array);
        let throttling = conditions.into_iter().flatten().find(|p| {
            p.get("name").and_then(Value::as_str) == Some("throttling of real-time threads")
        });
        let known = throttling.and_then(|p| p.get("holds")).and_then(Value::as_str);
        // Debian's guests do not tell how their kernel was configured: then it is unknown, and never no.
        ensure!(matches!(known, Some("yes" | "unknown")), "throttling: {throttling:?}");
        let file = self.folder.join("theory.json");
        std::fs::write(&file, &text)?;
        let again = self.answers(&["bound", "--json", "--theory", &file.to_string_lossy()], 0)?;
        let again: Value = serde_json::from_str(&again).context("no JSON")?;
        ensure!(
            again.pointer("/theory/answer") == answer.pointer("/bound"),
            "bound --theory says something else: {again}"
        );
        Ok(TheoryAnswer::Bounded)
    }
}
