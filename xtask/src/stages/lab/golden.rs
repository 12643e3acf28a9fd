// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of two kernels, idle and under a load that tells them apart, pinned to kernel images, QEMU and our own program.
//!
//! With all three the same they must be equal. Another build of our program moves the shortest way
//! from timer to thread by some instructions (seen: 39 of 3465), so then it may differ by 2 %.
//! When the archive has moved on to other kernels, that is said and counted as skipped, and
//! everything else is still checked.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::{LOAD, Lab, RT, STOCK};
use crate::stages::tally::Tally;

impl Lab {
    /// Pinned figures of two kernels, idle and under a load that tells them apart.
    pub(super) fn golden(&self, project: &Path) -> anyhow::Result<Tally> {
        let mut tally = Tally::default();
        let path = project.join("xtask/src/stages/golden.json");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let golden: Value = serde_json::from_str(&text)?;
        let mut now = serde_json::Map::new();
        for kernel in [STOCK, RT] {
            let mut found = json!({});
            for load in ["none", LOAD] {
                let out = format!("golden-{}-{load}.jsonl", kernel.replace(':', "-"));
                if let Err(e) = self.run(kernel, &out, &["-L", load]) {
                    tally.add(kernel, Err(e));
                    return Ok(tally);
                }
                figures(&self.folder.join(&out), load, &mut found)?;
            }
            now.insert(kernel.to_owned(), found);
        }
        let kept = self.folder.join("golden.json");
        fs::write(&kept, format!("{:#}\n", Value::Object(now.clone())))?;
        for (kernel, found) in &now {
            let wanted = golden.get(kernel).cloned().unwrap_or_default();
            let name = format!("golden figures of {kernel}");
            if wanted.get("kernel_sha256") == found.get("kernel_sha256") {
                tally.add(&name, golden_same(&wanted, found));
            } else {
                let package = |v: &Value| {
                    v.get("package").and_then(Value::as_str).unwrap_or("no package").to_owned()
                };
                let why = format!(
                    "the archive has moved on from {} to {}; copy {} to xtask/src/stages to pin the new figures",
                    package(&wanted),
                    package(found),
                    kept.display()
                );
                tally.skip(&name, "golden", &why);
            }
        }
        tally.add("PREEMPT_RT bounds what the stock kernel does not", shape(&now));
        Ok(tally)
    }
}

/// Adds what a run file says of kernel, QEMU, program, and the figures under `load`.
fn figures(path: &Path, load: &str, found: &mut Value) -> anyhow::Result<()> {
    let text = fs::read_to_string(path)?;
    for line in text.lines() {
        let value: Value = serde_json::from_str(line)?;
        let at = |pointer: &str| value.pointer(pointer).cloned().unwrap_or_default();
        match value.get("type").and_then(Value::as_str) {
            Some("header") => {
                found["package"] = at("/lab/kernel/package");
                found["kernel_sha256"] = at("/lab/kernel/sha256");
                found["guest_sha256"] = at("/lab/guest_sha256");
                found["qemu"] = at("/lab/qemu");
            }
            Some("thread") => {
                found[load] = json!({"n": at("/wakeup/n"), "missed": at("/missed/n"),
                    "min_ns": at("/wakeup/min_ns"), "median_ns": median_ns(&at("/wakeup/late")),
                    "max_ns": at("/wakeup/max_ns")});
            }
            _ => {}
        }
    }
    Ok(())
}

/// The least value of the bucket in which the median of a run file's histogram lies (docs/run-file.md).
fn median_ns(late: &Value) -> Option<u64> {
    let numbers = |key: &str| -> Option<Vec<u64>> {
        late.get(key)?.as_array()?.iter().map(Value::as_u64).collect()
    };
    let (index, count) = (numbers("index")?, numbers("count")?);
    let precision = late.get("precision").and_then(Value::as_u64)?;
    let half = count.iter().sum::<u64>().div_ceil(2);
    let mut before = 0;
    let reached = |(_, n): &(&u64, &u64)| {
        before += **n;
        before >= half
    };
    let (at, _) = index.iter().zip(&count).find(reached)?;
    let power = at >> precision;
    Some(if power < 2 { *at } else { (at - ((power - 1) << precision)) << (power - 1) })
}

fn golden_same(wanted: &Value, found: &Value) -> anyhow::Result<()> {
    let same = |key: &str| wanted.get(key) == found.get(key);
    if same("guest_sha256") && same("qemu") {
        ensure!(wanted == found, "pinned: {wanted}; now: {found}");
        return Ok(());
    }
    // Not the least: single wake-ups take a way that is a hundred instructions shorter, and whether one
    // does depends on the build.
    let usual = |v: &Value| v.pointer("/none/median_ns").and_then(Value::as_i64);
    let (before, now) = (usual(wanted).context("nothing pinned")?, usual(found).context("no run")?);
    ensure!(
        (before - now).abs() * 50 <= before,
        "the usual way from timer to thread was {before} instructions and is {now}"
    );
    Ok(())
}

/// What the papers found: without load both kernels alike, under load far apart.
fn shape(now: &serde_json::Map<String, Value>) -> anyhow::Result<()> {
    let latest = |kernel: &str, load: &str| {
        let found = now.get(kernel).and_then(|v| v.pointer(&format!("/{load}/max_ns")));
        found.and_then(Value::as_i64).with_context(|| format!("{kernel} under {load}: no figure"))
    };
    let (stock, rt) = (latest(STOCK, LOAD)?, latest(RT, LOAD)?);
    ensure!(stock > 10 * rt, "under {LOAD} the latest was {stock} ns stock, {rt} ns PREEMPT_RT");
    Ok(())
}
