// SPDX-License-Identifier: MIT OR Apache-2.0
//! `box answer` on a GPIO line: edges of a simulated chip, made at known virtual times, and their answers.
//!
//! Units: ns. The parts of each answer add up to the whole, nothing is lost, the same run gives the same bytes, and what the
//! answering thread measured is what the plugin within QEMU saw.

use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::Lab;
use crate::cross::Target;
use crate::stages::tally::Tally;

const NAME: &str = "edges of a simulated chip are answered, and each part of the way is known";
const EXACT: &str = "the split of an answer is the exact path from line to output";
/// Stock, and PREEMPT_RT.
const KERNELS: [(&str, &str); 2] = [("build:gpiosim", "full"), ("build:gpiosim-rt", "rt")];
/// The same on the Cortex-A9 board model.
const ON_THE_BOARD: &str = "edges of a simulated chip are answered on the Cortex-A9 board model";
const BOARD_KERNELS: [&str; 2] = ["build:gpiosim-arm", "build:gpiosim-arm-rt"];
const EDGES: u64 = 1000;
/// Each wake-up is waited for in another way.
const WAYS: [&str; 3] = ["poll", "read", "io_uring"];
const LOADS: [&str; 2] = ["none", "hackbench"];
/// The first lies before the sample, the second and third are up to the answering thread.
const PARTS: [&str; 6] = [
    "line to interrupt",
    "to the interrupt's thread",
    "to the answering thread",
    "to the output",
    "the output",
    "reading the clocks",
];
/// A kernel and how its guest is asked for.
struct EdgeGuest<'a> {
    kernel: &'a str,
    words: &'a [&'a str],
}

/// The guest's clock is a rounded line of QEMU's.
const ROUNDED_NS: i64 = 2;

impl Lab {
    /// Skipped where nobody built the kernels.
    pub(super) fn answered(&self, project: &Path) -> anyhow::Result<Tally> {
        let list = ["lab", "kernel", "list", "--local", "-q"];
        let here = self.answers(&list, 0)?;
        let built = here + &self.answers(&[&list[..], &["--arch", "arm"]].concat(), 0)?;
        let is_built = |kernel: &str| built.split_ascii_whitespace().any(|word| word == kernel);
        let mut tally = Tally::default();
        for (kernel, fragment) in KERNELS {
            if is_built(kernel) {
                let guest = EdgeGuest { kernel, words: &[] };
                tally.absorb(Tally::one(NAME, self.answered_edges(&guest)));
                tally.absorb(Tally::one(EXACT, self.exact_answers(kernel)));
                continue;
            }
            let name = kernel.trim_start_matches("build:");
            let build = format!(
                "tailbound lab kernel build --source debian:linux-source-6.12 --fragment {fragment},gpio-sim --name {name}"
            );
            let why = format!("there is no kernel {kernel}: {build}");
            tally.skip(NAME, &format!("kernel-{name}"), &why);
        }
        let program = Target::arm32().trial(project);
        let shown = program.display().to_string();
        for kernel in BOARD_KERNELS {
            let words = ["--arch", "arm", "--guest", &shown];
            if !is_built(kernel) {
                let why = format!("there is no kernel {kernel}: docs/results/answers.md");
                tally.skip(ON_THE_BOARD, "kernel-gpiosim-arm", &why);
            } else if !program.is_file() {
                let why = format!("{shown} is missing: run the stage `boards` first");
                tally.skip(ON_THE_BOARD, "arm32", &why);
            } else {
                let guest = EdgeGuest { kernel, words: &words };
                tally.add(ON_THE_BOARD, self.answered_edges(&guest));
            }
        }
        Ok(tally)
    }

    fn answered_edges(&self, guest: &EdgeGuest<'_>) -> anyhow::Result<()> {
        for load in LOADS {
            let [poll, read, ring] = WAYS.map(|by| self.mean_start_ns(guest, by, load));
            let (poll, read, _) = (poll?, read?, ring?);
            // ppoll(2), then read(2): one system call more.
            ensure!(
                read < poll,
                "{load}: a thread that reads ran {read} ns after the edge, one that polls {poll}"
            );
        }
        let file = self.edges_file(guest.kernel, "io_uring", "hackbench");
        // The program of the guest, where it is not this one.
        let program = guest.words.iter().skip_while(|word| **word != "--guest").copied();
        let words: Vec<&str> = ["lab", "repeat", "-q", &file].into_iter().chain(program).collect();
        self.answers(&words, 0)?;
        Ok(())
    }

    fn edges_file(&self, kernel: &str, by: &str, load: &str) -> String {
        let kernel = kernel.trim_start_matches("build:");
        let file = self.folder.join(format!("edges-{kernel}-{by}-{load}.jsonl"));
        file.to_string_lossy().into_owned()
    }

    /// From the edge until the thread ran, where all is as it must be.
    fn mean_start_ns(&self, guest: &EdgeGuest<'_>, by: &str, load: &str) -> anyhow::Result<f64> {
        let kernel = guest.kernel;
        let probe = format!("answer-gpio:chip=sim,by={by}");
        let (edges, file) = (EDGES.to_string(), self.edges_file(kernel, by, load));
        let words = [
            "lab", "run", "-q", "--force", "-k", kernel, "--probe", &probe, "-L", load, "-i", "1ms",
        ];
        self.answers(&[&words[..], guest.words, &["-l", &edges, "-o", &file]].concat(), 0)?;
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
        let mean = |context| mean_ns(&run, context);
        let (start, work, user) = (mean("start")?, mean("work")?, mean("user")?);
        ensure!(
            (start + work - user).abs() < 1.0,
            "{by}, {load}: {start} and {work} are not {user}"
        );
        Ok(start)
    }

    /// Nothing is told unless each sample, up to the answering thread and up to the output, is what was watched by one
    /// constant; that is the path of the clocks' readings, whatever the load.
    fn exact_answers(&self, kernel: &str) -> anyhow::Result<()> {
        let none = self.exact_constants_ns(kernel, "read", "none")?;
        for by in WAYS {
            let loaded = self.exact_constants_ns(kernel, by, "hackbench")?;
            let apart = none.iter().zip(loaded).map(|(a, b)| a.abs_diff(b)).max().unwrap_or(0);
            ensure!(
                by != "read" || apart <= ROUNDED_NS.unsigned_abs(),
                "{kernel}, {by}: the constants are {none:?} without a load, {loaded:?} with one"
            );
        }
        Ok(())
    }

    /// The constants up to the thread and up to the output, of a run whose split adds up to its samples.
    fn exact_constants_ns(&self, kernel: &str, by: &str, load: &str) -> anyhow::Result<[i64; 2]> {
        let probe = format!("answer-gpio:chip=sim,by={by}");
        let (edges, file) =
            (EDGES.to_string(), format!("{}.paths", self.edges_file(kernel, by, load)));
        let words = [
            "lab", "run", "--paths", "--json", "-q", "--force", "-k", kernel, "--probe", &probe,
            "-L", load, "-i", "1ms", "-l", &edges, "-o", &file,
        ];
        let text = self.answers(&words, 0)?;
        let whole: Value = serde_json::from_str(&text).context("no JSON")?;
        let paths = whole.get("paths").context("no paths in the answer")?;
        let number = |at: &str| paths.pointer(at).and_then(Value::as_i64);
        let edges = i64::try_from(EDGES)?;
        ensure!(number("/checks/samples") == Some(edges), "{:?}", paths.get("checks"));
        let split = paths.get("split").and_then(Value::as_array).context("no split")?;
        let named = split.iter().map(|p| p.get("name").and_then(Value::as_str));
        ensure!(named.eq(PARTS.map(Some)), "{split:?}");
        let means: Vec<i64> =
            split.iter().filter_map(|p| p.get("mean_ns").and_then(Value::as_i64)).collect();
        // Each mean is cut to a whole ns.
        let off = ROUNDED_NS + i64::try_from(PARTS.len())?;
        let text = self.answers(&["show", "--json", &file], 0)?;
        let run: Value = serde_json::from_str(&text).context("no JSON")?;
        let constants = ["/checks/constant_ns", "/checks/start_constant_ns"].map(number);
        let [Some(constant), Some(start_constant)] = constants else {
            anyhow::bail!("no constants: {:?}", paths.get("checks"))
        };
        let (sample, sum) = (whole_mean_ns(&run, "user")?, means.iter().skip(1).sum::<i64>());
        ensure!((sample - sum).abs() <= off, "{by}, {load}: {sample} ns, by the split {sum}");
        let to_thread = means.iter().skip(1).take(2).sum::<i64>() - start_constant;
        let start = whole_mean_ns(&run, "start")?;
        ensure!((start - to_thread).abs() <= off, "{by}, {load}: {start} ns, watched {to_thread}");
        Ok([start_constant, constant])
    }
}

fn whole_mean_ns(run: &Value, context: &str) -> anyhow::Result<i64> {
    let mean = mean_ns(run, context)?;
    #[expect(clippy::cast_possible_truncation, reason = "ns")]
    let whole = mean.round() as i64;
    Ok(whole)
}

fn mean_ns(run: &Value, context: &str) -> anyhow::Result<f64> {
    let mut all = run.pointer("/threads").and_then(Value::as_array).into_iter().flatten();
    let of = |t: &&Value| t.get("context").and_then(Value::as_str) == Some(context);
    let found = all.find(of).and_then(|t| t.pointer("/wakeup/mean_ns"));
    found.and_then(Value::as_f64).with_context(|| format!("no mean of {context}"))
}
