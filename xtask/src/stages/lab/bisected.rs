// SPDX-License-Identifier: MIT OR Apache-2.0
//! What made it later: one boot option among harmless ones, one commit among many, in real kernels.

use std::fs;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::{Lab, RT, STOCK};
use crate::exec;

/// Sixteen options that leave the median of a wake-up where it is, and one that nearly doubles it: the checks of the
/// slab allocator, which hackbench meets with every message.
const OPTIONS: &str = "init_on_alloc=1 init_on_free=1 audit=0 page_poison=1 nohz=off selinux=0 nosmep slub_debug=FZPU \
    transparent_hugepage=never rcu_nocbs=0 skew_tick=1 workqueue.power_efficient=1 nmi_watchdog=0 noirqdebug apparmor=0 \
    threadirqs cgroup_disable=memory";
const CULPRIT: &str = "slub_debug=FZPU";
/// The commit that brings the kernel without PREEMPT_RT.
const LATER: usize = 41;
const COMMITS: usize = 64;

/// The questions that had no answer, and why: each makes more questions.
fn passed_over(found: &Value) -> String {
    let steps = found.get("steps").and_then(Value::as_array).into_iter().flatten();
    let skipped = steps.filter(|step| step.get("answer").is_some_and(|a| a == "skip"));
    skipped.map(|step| format!("; {}: {}", step["title"], step["note"])).collect()
}

impl Lab {
    fn bisects(&self, words: &[&str]) -> anyhow::Result<Value> {
        let more = ["--quiet", "--json", "--no-paths"];
        let text = self.answers(&[&["bisect"], words, &more].concat(), 0)?;
        serde_json::from_str(&text).context("no JSON")
    }

    /// The option is found, and when it is asked again nothing is measured.
    pub(super) fn option_found(&self) -> anyhow::Result<()> {
        let words = ["append", "-k", STOCK, "--measure", "p50", "-l", "400", "--bad", OPTIONS];
        // Two at a time, however many cores there are: the questions are counted.
        let words = [&words[..], &["-j", "2", "-o", "bisected"]].concat();
        let found = self.bisects(&words)?;
        let at = |path: &str| found.pointer(path).cloned().unwrap_or_default();
        ensure!(at("/schema") == "tailbound-bisect/1", "{}", at("/schema"));
        ensure!(
            at("/culprits/0/members") == serde_json::json!([CULPRIT])
                && at("/culprits/1").is_null()
                && at("/culprits/0/is_exact") == true
                && at("/rest_is_good") == true,
            "{}: {found}",
            at("/sentence")
        );
        let ns = |path: &str| at(path).as_i64().unwrap_or_default();
        let (before, after) = (ns("/culprits/0/before/value_ns"), ns("/culprits/0/after/value_ns"));
        ensure!(after * 2 > before * 3, "{before} ns before, {after} ns with it");
        let steps = at("/steps").as_array().map_or(0, Vec::len);
        // Two at a time divide 17 in three rounds; the option alone, and all others.
        ensure!((1..=8).contains(&steps), "{steps} questions{}", passed_over(&found));
        let journal = fs::read(self.folder.join("bisected/journal.jsonl"))?;
        let again = self.bisects(&words)?;
        ensure!(again.get("sentence") == found.get("sentence"), "another answer: {again}");
        ensure!(
            journal == fs::read(self.folder.join("bisected/journal.jsonl"))?,
            "the second search measured something"
        );
        Ok(())
    }

    /// Among 64 commits the one that leaves another kernel is found with six questions. The build copies the image of
    /// a kernel that is there: what is searched for is real, what it takes to compile it is left out.
    pub(super) fn commit_found(&self) -> anyhow::Result<()> {
        let images = self.answers(&["lab", "kernel", "fetch", RT, STOCK, "--json", "-q"], 0)?;
        let images: Value = serde_json::from_str(&images)?;
        let image = |at: usize| {
            let image = images.get(at).and_then(|k| k.get("image")).and_then(Value::as_str);
            image.map(str::to_owned).context("no image")
        };
        let (good, bad) = (image(0)?, image(1)?);
        let tree = self.folder.join("commits");
        fs::create_dir_all(&tree)?;
        let git = |words: &[&str]| -> anyhow::Result<()> {
            let mut c = exec::command("git");
            c.args(["-c", "user.name=tailbound", "-c", "user.email=tailbound@localhost"]);
            c.args(words).current_dir(&tree);
            self.ends(&mut c, 0).map(drop)
        };
        git(&["init", "-q", "-b", "main"])?;
        for n in 0..=COMMITS {
            fs::write(tree.join("kernel"), if n < LATER { &good } else { &bad })?;
            fs::write(tree.join("number"), n.to_string())?;
            git(&["add", "-A"])?;
            git(&["commit", "-q", "-m", &format!("commit {n}")])?;
        }
        let words = ["commits", "--tree", "commits", "--good", "main~64", "--bad", "main"];
        // One question at a time, as the bar is stated; 6 of 64.
        let measured = ["-L", super::LOAD, "-l", "100", "-j", "1", "-o", "bisected-commits"];
        let build = ["--build", "cp \"$(cat kernel)\" {image}", "--no-control"];
        let found = self.bisects(&[&words[..], &measured, &build].concat())?;
        let member = found.pointer("/culprits/0/members/0").and_then(Value::as_str);
        let ends = format!(" commit {LATER}");
        ensure!(member.is_some_and(|m| m.ends_with(&ends)), "{found}");
        let steps = found.get("steps").and_then(Value::as_array).map_or(0, Vec::len);
        ensure!(steps == 6, "{steps} questions{}: {found}", passed_over(&found));
        Ok(())
    }
}
