// SPDX-License-Identifier: MIT OR Apache-2.0
//! Planted culprits in real kernels: each must be named, and nobody else with confidence.
//!
//! A few kinds only; `bench/culprits.sh` has all of them, and the host's.

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::super::tally::Tally;
use super::{Lab, RT, STOCK};

/// Kernel, kind of the load `culprit`, cause, and who.
const PLANTED: [(&str, &str, &str, &str); 4] = [
    (STOCK, "higher-priority", "higher-priority", "load/0"),
    (STOCK, "long-call", "not-preemptible", "load/0"),
    (STOCK, "interrupts-off", "interrupts-off", "load/0"),
    (RT, "higher-priority", "higher-priority", "load/0"),
];
/// A kernel from before the fair server: it throttles.
const OLD: &str = "debian:6.1";
/// Kinds that make a thread of their own late, cause, and who.
const WATCHED: [(&str, &str, &[&str]); 3] = [
    ("inversion", "priority-inversion", &["load/2", "behind load/1"]),
    ("inversion-pi", "blocked", &["released by load/2"]),
    ("page-faults", "page-fault", &["load/1"]),
];
/// What PREEMPT_RT does not let make a real-time thread late.
const HARMLESS: &str = "interrupts-off";
/// Far above what the kernels' own ways take, far below a burst.
const ABOVE: &str = "--blame=300us";
/// Far below what writing a list of tasks takes, and above what this kernel's own calls do.
const WRITING: &str = "--blame=1ms";

impl Lab {
    /// Every planted culprit on its own.
    pub(super) fn culprits(&self) -> Tally {
        let mut tally = Tally::default();
        for (kernel, kind, cause, who) in PLANTED {
            tally
                .add(&format!("{kind} is named on {kernel}"), self.named(kernel, kind, cause, who));
        }
        for (kind, cause, who) in WATCHED {
            tally.add(
                &format!("{kind} is named in a watched thread"),
                self.watched(kind, cause, who),
            );
        }
        tally.add(&format!("a list of tasks is console output on {STOCK}"), self.printed());
        match self.fetch(&["lab", "kernel", "fetch", OLD]) {
            Ok(()) => tally.add(&format!("RT throttling is named on {OLD}"), self.throttled()),
            Err(e) => tally.skip("RT throttling is named", "kernels", &format!("{OLD}: {e:#}")),
        }
        tally.add(&format!("{HARMLESS} makes nobody late on {RT}"), self.harmless());
        tally
    }

    /// The late samples of a run with that trouble.
    fn late(&self, kernel: &str, kind: &str, more: &[&str]) -> anyhow::Result<Vec<Value>> {
        let out = format!("culprit-{}.jsonl", kind.split(',').next().unwrap_or(kind));
        let load = format!("culprit:kind={kind}");
        let words = ["lab", "run", "--quiet", "--force", "-k", kernel, "-i", "1ms"];
        self.answers(&[&words[..], more, &["-L", &load, "-o", &out]].concat(), 0)?;
        self.lines(&out, "blame")
    }

    /// Lines of a type of a run file.
    fn lines(&self, file: &str, of: &str) -> anyhow::Result<Vec<Value>> {
        let text = std::fs::read_to_string(self.folder.join(file))?;
        let begin = format!("{{\"type\":\"{of}\"");
        let lines = text.lines().filter(|l| l.starts_with(&begin));
        lines.map(|l| Ok(serde_json::from_str(l)?)).collect()
    }

    fn named(&self, kernel: &str, kind: &str, cause: &str, who: &str) -> anyhow::Result<()> {
        let late = self.late(kernel, kind, &["-D", "300ms", ABOVE])?;
        ensure!(late.len() >= 3, "only {} late samples", late.len());
        // In virtual time nobody else can have had the CPU.
        late.iter().try_for_each(|sample| is_made_of(sample, cause, &[who], "sure"))
    }

    /// The kernel writes for milliseconds: that those are the console's is likely.
    fn printed(&self) -> anyhow::Result<()> {
        let late = self.late(STOCK, "task-list", &["-D", "1s", WRITING])?;
        ensure!(late.len() >= 2, "only {} late samples", late.len());
        late.iter().try_for_each(|sample| is_made_of(sample, "console", &["load/0"], "likely"))
    }

    fn throttled(&self) -> anyhow::Result<()> {
        let late = self.late(OLD, "fair-server,interval=2s", &["-D", "2200ms", "--blame=5ms"])?;
        ensure!(!late.is_empty(), "no late sample");
        late.iter().try_for_each(|sample| is_made_of(sample, "rt-throttling", &["load/0"], "sure"))
    }

    /// The longest cycles of the load's own urgent thread.
    fn watched(&self, kind: &str, cause: &str, who: &[&str]) -> anyhow::Result<()> {
        let out = format!("culprit-{kind}.jsonl");
        let tester = format!(
            "/tailbound watch --quiet --comm load/0 -D 2s -o /run/watched.jsonl -- /tailbound load culprit:kind={kind} --duration 1500ms"
        );
        let words = ["lab", "run", "--quiet", "--force", "-k", STOCK, "-L", "none"];
        let more = ["--tester", &tester, "--tester-file", "/run/watched.jsonl", "-o", &out];
        self.answers(&[&words[..], &more].concat(), 0)?;
        let cycles = self.lines(&out, "cycle")?;
        let cycle = cycles.first().context("no cycles")?;
        let worst = cycle.get("worst").and_then(Value::as_array).context("no longest cycles")?;
        ensure!(worst.len() >= 5, "only {} cycles", worst.len());
        worst.iter().try_for_each(|sample| is_made_of(sample, cause, who, "sure"))
    }

    fn harmless(&self) -> anyhow::Result<()> {
        let late = self.late(RT, HARMLESS, &["-D", "300ms", ABOVE])?;
        ensure!(late.is_empty(), "{} late samples: {}", late.len(), Value::from(late.clone()));
        Ok(())
    }
}

/// Is the longest part of a sample that, and are all together the sample?
fn is_made_of(sample: &Value, cause: &str, who: &[&str], how: &str) -> anyhow::Result<()> {
    let parts = sample.get("parts").and_then(Value::as_array).context("no parts")?;
    let text =
        |p: &Value, key: &str| p.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let ns = |p: &Value| p.get("ns").and_then(Value::as_i64).unwrap_or_default();
    let sum: i64 = parts.iter().map(ns).sum();
    ensure!(sample.get("latency_ns") == Some(&Value::from(sum)), "not the sum: {sample}");
    let most = parts.iter().max_by_key(|p| ns(p)).context("no part")?;
    let named = text(most, "who");
    ensure!(text(most, "cause") == cause && who.iter().all(|w| named.contains(w)), "{most}");
    ensure!(text(most, "sureness") == how, "{most}");
    Ok(())
}
