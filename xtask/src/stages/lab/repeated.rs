// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs repeat to the byte while every core of the host has something else to do: probes on one CPU, and several CPUs in
//! short slices, whose figures must then be those of CPUs and not of slices.
//!
//! `bench/repeats.sh` does the same a hundred times.

use std::fs;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::{Busy, Lab, RT, STOCK};
use crate::stages::tally::Tally;

/// What is repeated: kernel and words. The last had differed most often before QEMU's threads were kept in turn.
const REPEATED: &[(&str, &str)] = &[
    (RT, "-L none -l 1000"),
    (RT, "-L hackbench -l 1000"),
    (STOCK, "--probe eventfd -L none -l 100"),
    (STOCK, "--probe pi -L none -l 100"),
];
/// How often each.
const TIMES: u32 = 4;

/// The second of two CPUs is isolated and measured; the first has the load.
const ISOLATED: &str = "--smp 2 --cpus 1 --warm-up 20ms -l 200 --append";
const APPENDED: &str = "isolcpus=1 nohz_full=1 rcu_nocbs=1 irqaffinity=0";
/// Of the other CPU's hand-over.
const OTHER: &str = "sliced-other.jsonl";
/// In QEMU's own slices such a wake-up takes hundreds of microseconds; in short ones it took 15.8 at most.
const LATEST_NS: i64 = 60_000;

/// One for each core.
fn busy() -> anyhow::Result<Vec<Busy>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (0..cores).map(|_| Busy::start()).collect()
}

impl Lab {
    /// The same bytes each time, with all cores busy.
    pub(super) fn repeated(&self) -> anyhow::Result<()> {
        let _busy = busy()?;
        for (nth, (kernel, words)) in REPEATED.iter().enumerate() {
            let out = format!("repeated-{nth}.jsonl");
            let words: Vec<&str> =
                ["-o", &out].into_iter().chain(words.split_whitespace()).collect();
            let all = [&["lab", "run", "--quiet", "-k", kernel][..], &words].concat();
            self.answers(&all, 0)?;
            for _ in 0..TIMES {
                self.answers(&["lab", "repeat", "--quiet", &out], 0)?;
            }
        }
        Ok(())
    }

    /// Two CPUs in short slices, by the system's QEMU or one that is fetched for it.
    pub(super) fn in_slices(&self) -> Tally {
        let name = "two CPUs in short slices: an isolated one, the same bytes on a loaded host";
        match self.has_slices() {
            Ok(()) => {
                let mut tally = Tally::one(name, self.sliced());
                let words: Vec<&str> = ISOLATED.split_whitespace().chain([APPENDED]).collect();
                tally.add("paths of two CPUs are exact", self.paths_of_two_cpus(&words));
                tally.add("an inversion across two CPUs", self.inversion_across());
                tally
            }
            Err(e) => {
                let mut tally = Tally::default();
                let why = format!("no QEMU of 8.1 or later is here or can be had: {e:#}");
                tally.skip(name, "qemu-fetch", &why);
                tally
            }
        }
    }

    fn has_slices(&self) -> anyhow::Result<()> {
        let text = self.answers(&["lab", "qemu", "list", "--json"], 0)?;
        let listed: Value = serde_json::from_str(&text).context("no JSON")?;
        let array = |path: &str| listed.pointer(path).and_then(Value::as_array).cloned();
        let of_system = array("/system").unwrap_or_default();
        let can = of_system.iter().any(|q| {
            let at = |name: &str| q.get(name).cloned().unwrap_or_default();
            at("arch") == "x86_64" && at("short_slices") == true
        });
        if can {
            return Ok(());
        }
        self.answers(&["lab", "qemu", "fetch", "--quiet"], 0).map(drop)
    }

    fn sliced(&self) -> anyhow::Result<()> {
        let out = "sliced.jsonl";
        let run = |load: &str, out: &str| {
            let words = ["lab", "run", "--quiet", "-k", RT, "-L", load, "-o", out];
            let more: Vec<&str> = ISOLATED.split_whitespace().chain([APPENDED]).collect();
            self.answers(&[&words[..], &more].concat(), 0)
        };
        run("hackbench:groups=2", out)?;
        let text = fs::read_to_string(self.folder.join(out))?;
        let mut lines = text.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok());
        let header = lines.next().context("no header")?;
        ensure!(header.pointer("/lab/slice_ns") == Some(&4000.into()), "slices: {header}");
        let shares = header.pointer("/machine/lab.cpu_shares_permille/value");
        let shares = shares.and_then(Value::as_array).context("no shares in the header")?;
        let shares: Vec<i64> = shares.iter().filter_map(Value::as_i64).collect();
        ensure!(
            shares.len() == 2 && (998..=1002).contains(&shares.iter().sum::<i64>()),
            "{shares:?}"
        );
        ensure!(shares.iter().all(|s| *s > 200), "a CPU has next to nothing: {shares:?}");
        let thread = lines.find(|v| v.get("type").is_some_and(|t| t == "thread"));
        let thread = thread.context("no thread")?;
        let number = |path: &str| thread.pointer(path).and_then(Value::as_i64);
        let latest = number("/wakeup/max_ns").context("no latest")?;
        ensure!(latest < LATEST_NS, "the latest on the isolated CPU took {latest} ns");
        ensure!(number("/missed/n") == Some(0), "activations were missed: {thread}");
        let busy = busy()?;
        self.answers(&["lab", "repeat", "--quiet", out], 0)?;
        // A hand-over from one CPU to the other has both in each sample.
        let probe = "-q -L none --probe futex:where=other --smp 2 --cpus 1 -l 20 -k";
        let words: Vec<&str> = probe.split_whitespace().chain([RT, "-o", OTHER]).collect();
        self.answers(&[&["lab", "run"][..], &words].concat(), 0)?;
        for _ in 0..2 {
            self.answers(&["lab", "repeat", "--quiet", OTHER], 0)?;
        }
        drop(busy);
        // Without the load the other CPU has time to give: no ratio of paths.
        run("none", "sliced-idle.jsonl")?;
        let said = self.answers(&["compare", out, "sliced-idle.jsonl"], 5)?;
        ensure!(said.contains("compare runs of the same load"), "{said}");
        Ok(())
    }
}
