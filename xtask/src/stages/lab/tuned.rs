// SPDX-License-Identifier: MIT OR Apache-2.0
//! Seeds and changes in real kernels: a seed is another run, a CPU that is isolated is left alone, an experiment
//! finds the change that helps.

use std::fs;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::{Lab, RT, STOCK};

/// The measured CPU is the second of two, which take turns in slices of some ms of virtual time: latencies tell the
/// slices, and what runs there is told by counts. An ordinary thread, which no guard of real-time threads ends.
const SECOND_OF_TWO: [&str; 14] = [
    "--slice",
    "off",
    "--smp",
    "2",
    "--cpus",
    "1",
    "--policy",
    "other",
    "--interval",
    "20ms",
    "-l",
    "100",
    "--load",
    "hackbench:groups=2",
];

impl Lab {
    /// A seed is another run, and the same one each time.
    pub(super) fn seeds(&self) -> anyhow::Result<()> {
        let lines = |name: &str| -> anyhow::Result<Vec<String>> {
            self.run(RT, name, &["--seed", "2"])?;
            self.seconds(name)
        };
        let (one, again) = (lines("seed-2.jsonl")?, lines("seed-2-again.jsonl")?);
        ensure!(one == again, "two runs of seed 2 differ");
        ensure!(one != self.seconds("a.jsonl")?, "seeds 1 and 2 are the same run");
        Ok(())
    }

    fn seconds(&self, name: &str) -> anyhow::Result<Vec<String>> {
        let text = fs::read_to_string(self.folder.join(name))?;
        let seconds = text.lines().filter(|l| l.starts_with("{\"type\":\"second\""));
        Ok(seconds.map(str::to_owned).collect())
    }

    /// With two CPUs, control groups and PREEMPT_RT: everything is applied, the CPU is left alone, and the guest
    /// fails the run unless all is undone exactly.
    pub(super) fn isolated(&self) -> anyhow::Result<()> {
        let counted = |out: &str, more: &[&str]| {
            let words = ["lab", "run", "--quiet", "-k", RT, "-o", out];
            self.answers(&[&words, &SECOND_OF_TWO[..], more].concat(), 0)?;
            self.events(out)
        };
        let shared = counted("shared.jsonl", &[])?;
        let alone = counted("alone.jsonl", &["--tune", "cyclic", "--rt-cpus", "1"])?;
        // The tick stays on a CPU that does something; what others send and start does not come.
        ensure!(alone.0 <= shared.0, "interrupts: {} isolated, {} before", alone.0, shared.0);
        ensure!(alone.1 * 10 < shared.1, "switches: {} isolated, {} before", alone.1, shared.1);
        let file = fs::read_to_string(self.folder.join("alone.jsonl"))?;
        ensure!(file.contains("profile cyclic for CPUs 1 was applied"), "the file does not say so");
        ensure!(file.contains(" 0 passed over"), "the kernel refused changes");
        Ok(())
    }

    /// Interrupts of the measured CPU, and switches.
    fn events(&self, name: &str) -> anyhow::Result<(u64, u64)> {
        let shown: Value = serde_json::from_str(&self.answers(&["show", "--json", name], 0)?)?;
        let count = |fact: &str| {
            let text = shown.pointer(&format!("/after/watch.{fact}/value")).and_then(Value::as_str);
            text.and_then(|t| t.strip_prefix("CPU 1: ")?.parse().ok()).context("no such count")
        };
        Ok((count("interrupts")?, count("switches")?))
    }

    /// `preempt=full` is what a stock kernel lacks; swapping is nothing that a guest without swap does. A few hundred activations
    /// have a handful of late ones: where those meet the load differs between two systems more than that their rounds differ.
    pub(super) fn experiment(&self) -> anyhow::Result<()> {
        let words = ["tune", "auto", "--lab", "--quiet", "-k", STOCK, "-l", "800", "-L", "mmap"];
        let tried =
            ["--try-append", "preempt=full", "--set", "swappiness=9", "-o", "auto", "--json"];
        let answer = self.answers(&[&words[..], &tried].concat(), 0)?;
        let answer: Value = serde_json::from_str(&answer)?;
        let kept = answer.get("kept").and_then(Value::as_array).context("no answer")?;
        ensure!(kept == &[Value::from("preempt-full")], "kept: {kept:?}");
        ensure!(self.folder.join("auto/auto.html").is_file(), "there is no report");
        Ok(())
    }
}
