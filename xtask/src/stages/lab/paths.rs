// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact paths of a real kernel: `lab run --paths` checks itself, what it tells must add up, and the run is the
//! same without.

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::{Lab, RT};

/// A mean section is shorter than the longest, which is far below this.
const LONGEST_NS: i64 = 100_000;
const OUT: &str = "paths.jsonl";
/// The clock of the 32-bit board has steps of 1 µs: so much may a sample be off, and with it the last leg be negative.
const ARM32_STEP_NS: i64 = 1000;
/// The boot option that a 64-bit ARM kernel's paths ask for.
const STACK_OFFSET: &str = "randomize_kstack_offset=off";

impl Lab {
    /// Stock kernels take longer to say the same.
    pub(super) fn paths(&self) -> anyhow::Result<()> {
        self.paths_of(RT, OUT, 0, &[])?;
        self.answers(&["lab", "repeat", "--quiet", OUT], 0)?;
        self.hand_over()?;
        self.matrix_of_paths()
    }

    /// On the real-time kernel the receiver runs into the lock in which it was woken, so that the sender comes twice.
    fn hand_over(&self) -> anyhow::Result<()> {
        let words = [
            "lab", "paths", "--quiet", "--json", "-k", RT, "--probe", "eventfd", "-L", "none",
            "-l", "50",
        ];
        let text = self.answers(&words, 0)?;
        let answer: Value = serde_json::from_str(&text).context("no JSON")?;
        let wakeups = answer.pointer("/wakeups").and_then(Value::as_array).context("none")?;
        ensure!(wakeups.len() == 5, "{} hand-overs", wakeups.len());
        wakeups.iter().try_for_each(|w| wakeup(w, 0))?;
        let again = |w: &Value| w.pointer("/legs/2").map_or(0, |leg| number(leg, "ns"));
        ensure!(wakeups.iter().all(|w| again(w) > 0), "the sender came once: {answer}");
        Ok(())
    }

    /// A matrix keeps them with each cell, and does not make again what has them.
    fn matrix_of_paths(&self) -> anyhow::Result<()> {
        let words = ["lab", "matrix", "-k", RT, "-L", "none", "-l", "100", "-o", "matrix-paths"];
        self.answers(&[&words[..], &["--paths", "--json"]].concat(), 0)?;
        let said = self.answers(&[&words[..], &["--paths"]].concat(), 0)?;
        ensure!(said.contains("1 of 1 cells were made before"), "{said}");
        ensure!(said.contains("Longest sections of the kernel"), "{said}");
        let page = std::fs::read_to_string(self.folder.join("matrix-paths/matrix.html"))?;
        ensure!(page.contains("Longest sections of the kernel"), "not in the report");
        Ok(())
    }

    /// The same of an ARM kernel; what it tells of a 64-bit one's latest wake-ups helps against them.
    pub(super) fn paths_on_board(
        &self,
        arch: &str,
        kernel: &str,
        program: &str,
    ) -> anyhow::Result<()> {
        let board = ["--arch", arch, "--guest", program];
        if arch != "aarch64" {
            return self.paths_of(kernel, "paths-arm32.jsonl", ARM32_STEP_NS, &board).map(drop);
        }
        let with = self.paths_of(kernel, "paths-arm64.jsonl", 0, &board)?;
        let remedies = with.pointer("/remedies").cloned().unwrap_or_default();
        ensure!(remedies.to_string().contains(STACK_OFFSET), "no remedy: {remedies}");
        let off = [&board[..], &["--append", STACK_OFFSET]].concat();
        let without = self.paths_of(kernel, "paths-arm64-off.jsonl", 0, &off)?;
        let latest = |of: &Value| of.pointer("/wakeups/0/latency_ns").and_then(Value::as_i64);
        let (with, without) = (latest(&with).context("none")?, latest(&without).context("none")?);
        ensure!(without * 3 < with * 2, "{with} ns, without the offset {without} ns");
        Ok(())
    }

    /// The second of two CPUs is isolated and measured, the first has the load; what would be wrong with them is refused.
    pub(super) fn paths_of_two_cpus(&self, words: &[&str]) -> anyhow::Result<()> {
        let out = "paths-two-cpus.jsonl";
        let more = [&["-L", "hackbench:groups=2"][..], words].concat();
        let answer = self.watched_paths(RT, out, &more)?;
        of_several(&answer)?;
        self.answers(&["lab", "repeat", "--quiet", out], 0)?;
        let refused = ["lab", "paths", "-k", RT, "--smp", "2"];
        let said = self.answers(&[&refused[..], &["--cpus", "0-1"]].concat(), 2)?;
        ensure!(said.contains("--cpus 1"), "{said}");
        let said = self.answers(&[&refused[..], &["--cpus", "1", "--theory"]].concat(), 2)?;
        ensure!(said.contains("one CPU"), "{said}");
        Ok(())
    }

    /// One watched run that is kept in `out`; what is told of it, once it adds up to a step of the guest's clock.
    fn paths_of(
        &self,
        kernel: &str,
        out: &str,
        step_ns: i64,
        more: &[&str],
    ) -> anyhow::Result<Value> {
        let answer =
            self.watched_paths(kernel, out, &[&["-i", "1ms", "-D", "300ms"], more].concat())?;
        adds_up(&answer, step_ns)?;
        Ok(answer)
    }

    fn watched_paths(&self, kernel: &str, out: &str, more: &[&str]) -> anyhow::Result<Value> {
        let words =
            ["lab", "run", "--paths", "--quiet", "--json", "-k", kernel, "--force", "-o", out];
        let text = self.answers(&[&words, more].concat(), 0)?;
        let whole: Value = serde_json::from_str(&text).context("no JSON")?;
        whole.get("paths").cloned().context("no paths in the answer")
    }
}

/// What is told must be whole, and its parts what they are parts of.
fn adds_up(answer: &Value, step_ns: i64) -> anyhow::Result<()> {
    let at = |path: &str| answer.pointer(path).cloned().unwrap_or_default();
    let array = |path: &str| at(path).as_array().cloned().unwrap_or_default();
    ensure!(at("/schema") == "tailbound-paths/1", "{}", at("/schema"));
    ensure!(at("/checks/same_bytes") == true && at("/checks/samples") == 300, "{}", at("/checks"));
    let wakeups = array("/wakeups");
    ensure!(wakeups.len() == 5, "{} wake-ups", wakeups.len());
    wakeups.iter().try_for_each(|w| wakeup(w, step_ns))?;
    for s in array("/sections") {
        let (mean, longest) = (number(&s, "mean_ns"), number(&s, "longest_ns"));
        ensure!(mean <= longest && longest < LONGEST_NS, "{s}");
        let named = |name: &str| {
            s.get(name).and_then(Value::as_str).is_some_and(|n| !n.starts_with("a function"))
        };
        ensure!(named("from") && named("to"), "{s}");
    }
    let shares = array("/curve");
    let falls = shares.windows(2).all(|pair| {
        let share = |v: Option<&Value>| v.and_then(|p| p.get("instants")).and_then(Value::as_f64);
        share(pair.first()) >= share(pair.last())
    });
    ensure!(falls && shares.len() > 10, "the curve does not fall");
    Ok(())
}

/// What is told of two CPUs: each section and leg has a part that its CPU executed, and no more executed than there was time.
fn of_several(answer: &Value) -> anyhow::Result<()> {
    let array = |v: &Value, name: &str| v.get(name).and_then(Value::as_array).cloned();
    let checks = answer.get("checks").context("no checks")?;
    let several = checks.get("several").context("no checks of several CPUs")?;
    ensure!(checks.get("same_bytes") == Some(&true.into()), "{checks}");
    ensure!(number(several, "turns") > 1000 && number(several, "unexplained") == 0, "{checks}");
    let cpus = array(answer, "cpus").context("no CPUs")?;
    let order: Vec<i64> = cpus.iter().map(|c| number(c, "cpu")).collect();
    ensure!(order == [1, 0], "not the measured one first: {order:?}");
    ensure!(cpus.iter().all(|c| number(c, "share_permille") > 200), "{cpus:?}");
    let executed: i64 = cpus.iter().map(|c| number(c, "executed_ns")).sum();
    ensure!(executed > 0 && executed <= number(answer, "window_ns"), "{cpus:?}");
    for s in array(answer, "sections").context("no sections")? {
        let (own, longest) = (number(&s, "own_ns"), number(&s, "longest_ns"));
        ensure!((0..=longest).contains(&own) && own < LONGEST_NS, "{s}");
    }
    let wakeups = array(answer, "wakeups").context("no wake-ups")?;
    ensure!((5..=6).contains(&wakeups.len()), "{} wake-ups", wakeups.len());
    for w in wakeups {
        let legs = array(&w, "legs").context("no legs")?;
        let sum: i64 = legs.iter().map(|leg| number(leg, "ns")).sum();
        ensure!(sum == number(&w, "latency_ns"), "the legs are not the latency: {w}");
        let own = |leg: &Value| leg.get("own_ns").and_then(Value::as_i64).unwrap_or(0);
        ensure!(legs.iter().all(|leg| (0..=number(leg, "ns")).contains(&own(leg))), "{w}");
        // What its CPU executed until user mode: all but the last leg.
        let own: i64 = legs.iter().rev().skip(1).map(own).sum();
        let tree = array(&w, "tree").context("no tree")?;
        let outer = tree.iter().filter(|l| number(l, "depth") == 0);
        let told: i64 = outer.map(|l| number(l, "total_ns")).sum();
        let over = w.get("handed_over").is_some();
        ensure!(
            over || (told <= own && told * 10 >= own * 9),
            "{told} of {own} ns in the tree: {w}"
        );
    }
    Ok(())
}

fn number(v: &Value, name: &str) -> i64 {
    v.get(name).and_then(Value::as_i64).unwrap_or(i64::MIN)
}

fn wakeup(w: &Value, step_ns: i64) -> anyhow::Result<()> {
    let legs = w.get("legs").and_then(Value::as_array).context("no legs")?;
    let sum: i64 = legs.iter().map(|leg| number(leg, "ns")).sum();
    ensure!(sum == number(w, "latency_ns"), "the legs are not the latency: {w}");
    let (reading, exact) = legs.split_last().context("no legs")?;
    ensure!(exact.iter().all(|leg| number(leg, "ns") >= 0), "a negative leg: {w}");
    ensure!(number(reading, "ns") >= -step_ns, "read before it was woken: {w}");
    // What it executed lies between due time and user mode: all but the last leg.
    let tree = w.get("tree").and_then(Value::as_array).context("no tree")?;
    let outer = tree.iter().filter(|l| number(l, "depth") == 0);
    let told: i64 = outer.map(|l| number(l, "total_ns")).sum();
    let whole = sum - number(reading, "ns");
    ensure!(told <= whole && told * 10 >= whole * 9, "{told} of {whole} ns in the tree: {w}");
    Ok(())
}
