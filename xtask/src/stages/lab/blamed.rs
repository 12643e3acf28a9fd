// SPDX-License-Identifier: MIT OR Apache-2.0
//! Planted culprits in real kernels: each must be named, and nobody else with confidence.
//!
//! Context: COLD. A few kinds only; `bench/culprits.sh` has all of them, and the host's.

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
/// What PREEMPT_RT does not let make a real-time thread late.
const HARMLESS: &str = "interrupts-off";
/// Far above what the kernels' own ways take, far below a burst.
const ABOVE: &str = "--blame=300us";

impl Lab {
    /// Every planted culprit on its own.
    pub(super) fn culprits(&self) -> Tally {
        let mut tally = Tally::default();
        for (kernel, kind, cause, who) in PLANTED {
            tally
                .add(&format!("{kind} is named on {kernel}"), self.named(kernel, kind, cause, who));
        }
        tally.add(&format!("{HARMLESS} makes nobody late on {RT}"), self.harmless());
        tally
    }

    /// The late samples of a run with that trouble.
    fn late(&self, kernel: &str, kind: &str) -> anyhow::Result<Vec<Value>> {
        let (out, load) = (format!("culprit-{kind}.jsonl"), format!("culprit:kind={kind}"));
        let words = ["lab", "run", "--quiet", "--force", "-k", kernel, "-i", "1ms", "-D", "300ms"];
        self.answers(&[&words[..], &["-L", &load, ABOVE, "-o", &out]].concat(), 0)?;
        let text = std::fs::read_to_string(self.folder.join(&out))?;
        let lines = text.lines().filter(|l| l.starts_with("{\"type\":\"blame\""));
        lines.map(|l| Ok(serde_json::from_str(l)?)).collect()
    }

    fn named(&self, kernel: &str, kind: &str, cause: &str, who: &str) -> anyhow::Result<()> {
        let late = self.late(kernel, kind)?;
        ensure!(late.len() >= 3, "only {} late samples", late.len());
        for sample in &late {
            let parts = sample.get("parts").and_then(Value::as_array).context("no parts")?;
            let text = |p: &Value, key: &str| {
                p.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let ns = |p: &Value| p.get("ns").and_then(Value::as_i64).unwrap_or_default();
            let sum: i64 = parts.iter().map(ns).sum();
            ensure!(sample.get("latency_ns") == Some(&Value::from(sum)), "not the sum: {sample}");
            let most = parts.iter().max_by_key(|p| ns(p)).context("no part")?;
            ensure!(text(most, "cause") == cause && text(most, "who").contains(who), "{most}");
            // In virtual time nobody else can have had the CPU.
            ensure!(text(most, "sureness") == "sure", "{most}");
        }
        Ok(())
    }

    fn harmless(&self) -> anyhow::Result<()> {
        let late = self.late(RT, HARMLESS)?;
        ensure!(late.is_empty(), "{} late samples: {}", late.len(), Value::from(late.clone()));
        Ok(())
    }
}
