// SPDX-License-Identifier: MIT OR Apache-2.0
//! `box answer` on a GPIO line: edges of a simulated chip, made at known virtual times, and their answers.
//!
//! Units: ns. The parts of each answer add up to the whole, nothing is lost, and the same run gives the same bytes.

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::Lab;
use crate::stages::tally::Tally;

const NAME: &str = "edges of a simulated chip are answered, and each part of the way is known";
const KERNEL: &str = "build:gpiosim";
const BUILD: &str = "tailbound lab kernel build --source debian:linux-source-6.12 --fragment full,gpio-sim --name gpiosim";
const EDGES: u64 = 1000;
/// Each wake-up is waited for in another way.
const WAYS: [&str; 2] = ["poll", "read"];
const LOADS: [&str; 2] = ["none", "hackbench"];

impl Lab {
    /// Skipped where nobody built the kernel.
    pub(super) fn answered(&self) -> anyhow::Result<Tally> {
        let built = self.answers(&["lab", "kernel", "list", "--local", "-q"], 0)?;
        if built.contains(KERNEL) {
            return Ok(Tally::one(NAME, self.answered_edges()));
        }
        let mut tally = Tally::default();
        tally.skip(NAME, "kernel-gpiosim", &format!("there is no kernel {KERNEL}: {BUILD}"));
        Ok(tally)
    }

    fn answered_edges(&self) -> anyhow::Result<()> {
        for load in LOADS {
            let means = WAYS.map(|by| self.mean_start_ns(by, load));
            let [poll, read] = means;
            // ppoll(2), then read(2): one system call more.
            let (poll, read) = (poll?, read?);
            ensure!(
                read < poll,
                "{load}: a thread that reads ran {read} ns after the edge, one that polls {poll}"
            );
        }
        let file = self.folder.join("edges-poll-hackbench.jsonl");
        self.answers(&["lab", "repeat", "-q", &file.to_string_lossy()], 0)?;
        Ok(())
    }

    /// From the edge until the thread ran, where all is as it must be.
    fn mean_start_ns(&self, by: &str, load: &str) -> anyhow::Result<f64> {
        let probe = format!("answer-gpio:chip=sim,by={by}");
        let file = self.folder.join(format!("edges-{by}-{load}.jsonl"));
        let (edges, file) = (EDGES.to_string(), file.to_string_lossy());
        let words = [
            "lab", "run", "-q", "--force", "-k", KERNEL, "--probe", &probe, "-L", load, "-i", "1ms",
        ];
        self.answers(&[&words[..], &["-l", &edges, "-o", &file]].concat(), 0)?;
        let text = self.answers(&["show", "--json", &file], 0)?;
        let run: Value = serde_json::from_str(&text).context("no JSON")?;
        let figure = |name: &str| {
            let mut all = run.pointer("/figures").and_then(Value::as_array).into_iter().flatten();
            let found = all.find(|f| f.get("name").and_then(Value::as_str) == Some(name));
            found.and_then(|f| f.get("value")).and_then(Value::as_f64)
        };
        ensure!(
            figure("answered") == Some(1000.0),
            "{by}, {load}: {:?} answered",
            figure("answered")
        );
        for name in ["dropped", "refused", "unseen"] {
            ensure!(figure(name) == Some(0.0), "{by}, {load}: {name} {:?}", figure(name));
        }
        let mean = |context: &str| {
            let mut all = run.pointer("/threads").and_then(Value::as_array).into_iter().flatten();
            let of = |t: &&Value| t.get("context").and_then(Value::as_str) == Some(context);
            let found = all.find(of).and_then(|t| t.pointer("/wakeup/mean_ns"));
            found.and_then(Value::as_f64).with_context(|| format!("no mean of {context}"))
        };
        let (start, work, user) = (mean("start")?, mean("work")?, mean("user")?);
        ensure!(
            (start + work - user).abs() < 1.0,
            "{by}, {load}: {start} and {work} are not {user}"
        );
        Ok(start)
    }
}
