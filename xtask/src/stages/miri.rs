// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stage `miri`: what the loop and its reader share, in an interpreter that knows the rules of
//! aliasing and of weak memory.
//!
//! Context: COLD. It takes ten thousand times as long as the machine and knows few system calls: so
//! rings, sums, what is owed, and the latch between two threads, in several orders of their turns.
//! It needs a nightly compiler, of one day: what a newer one finds is found when the day below is
//! moved. rustup fetches it; without rustup or network the stage is skipped and says so.
//! Source: the README of Miri.

use std::path::Path;
use std::process::Command;

use super::libtest;
use super::tally::Tally;
use crate::exec;

const NIGHTLY: &str = "nightly-2026-10-30";
/// Orders in which two threads may take turns.
const SEEDS: u32 = 3;

/// Cargo's words, those of the test program, and how many orders.
const RUNS: &[(&[&str], &[&str], u32)] = &[
    (&["--lib"], &["--skip", "h2::", "--skip", "repeated_at_once"], 1),
    (&["--test", "latch"], &["threads_agree"], SEEDS),
];

pub(crate) fn all(project: &Path) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    if let Err(e) = toolchain(project) {
        tally.skip("miri", "miri", &format!("{NIGHTLY} cannot be had: {e:#}"));
        return Ok(tally);
    }
    for (words, tests, seeds) in RUNS {
        for seed in 0..*seeds {
            let mut c = nightly(project, &["cargo", "miri", "test", "-p", "tailbound-rt"]);
            c.args(*words).args(["--", "--show-output"]).args(*tests);
            c.env("MIRIFLAGS", format!("-Zmiri-seed={seed}"));
            tally.absorb(libtest::counted(&mut c)?);
        }
    }
    Ok(tally)
}

fn toolchain(project: &Path) -> anyhow::Result<()> {
    let mut known = nightly(project, &["cargo", "miri", "--version"]);
    if exec::output(&mut known).is_ok_and(|o| o.status.success()) {
        return Ok(());
    }
    let mut install = exec::command("rustup");
    install.args(["toolchain", "install", NIGHTLY, "--profile", "minimal"]);
    install.args(["-c", "miri", "-c", "rust-src"]).current_dir(project);
    exec::succeed(&mut install)
}

/// Something of that toolchain, without what the cargo that runs us has set for itself.
fn nightly(project: &Path, words: &[&str]) -> Command {
    let mut c = exec::command("rustup");
    c.args(["run", NIGHTLY]).args(words).current_dir(project);
    for name in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH"]
    {
        c.env_remove(name);
    }
    c
}
