// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stage `miri`: what the loop and its reader share, in an interpreter that knows the rules of
//! aliasing and of weak memory.
//!
//! It takes ten thousand times as long as the machine and knows few system calls: so
//! rings, sums, what is owed, and the latch between two threads, in several orders of their turns.
//! It needs a nightly compiler, of one day: what a newer one finds is found when the day below is
//! moved. Where `TAILBOUND_FETCH` has `nightly`, as in CI, rustup fetches it; nobody else's rustup gets another compiler unasked. Without it
//! the stage is skipped and says so.
//! Stage `sanitizers`, by the same compiler: the tests of all crates that hold unsafe code, compiled
//! with AddressSanitizer, and with ThreadSanitizer where `TAILBOUND_REQUIRE` has `tsan` (it takes
//! three minutes more, because the standard library is compiled too). What a process has not given
//! back when it ends is not looked for.
//! Source: the README of Miri; the unstable book of rustc, "sanitizer".

use std::path::Path;
use std::process::Command;

use anyhow::bail;

use super::libtest;
use tailbound_testing::required;

use super::tally::Tally;
use crate::{exec, root};

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

/// A sanitizer, more words of cargo, and tests that it cannot run: lists of system calls hold the
/// sanitizer's own, its mlock(2) does nothing, and ThreadSanitizer does not know processes that
/// share their parent's memory.
type Sanitizer = (&'static str, &'static [&'static str], &'static [&'static str]);
const ADDRESS: Sanitizer = ("address", &[], &[LISTS, LOCKED]);
const THREAD: Sanitizer = ("thread", &["-Zbuild-std"], &[LISTS, LOCKED, "--skip=a_confined_child"]);
const LISTS: &str = "--skip=the_list_of_system_calls_holds";
const LOCKED: &str = "--skip=locked_pages_are_not_given_back";

/// Stage `sanitizers`.
pub(crate) fn sanitizers(project: &Path) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    if std::env::consts::ARCH != "x86_64" {
        tally.skip("sanitizers", "miri", "their runtime is fetched for x86_64 only");
        return Ok(tally);
    }
    if let Err(e) = toolchain(project) {
        tally.skip("sanitizers", "miri", &format!("{NIGHTLY} cannot be had: {e:#}"));
        return Ok(tally);
    }
    tally.absorb(sanitized(project, ADDRESS)?);
    if required("tsan") {
        tally.absorb(sanitized(project, THREAD)?);
    } else {
        let how = "three minutes more: `TAILBOUND_REQUIRE=tsan cargo xtask test sanitizers`";
        tally.skip("thread sanitizer", "tsan", how);
    }
    Ok(tally)
}

fn sanitized(project: &Path, (name, words, tests): Sanitizer) -> anyhow::Result<Tally> {
    let mut c = nightly(project, &["cargo", "test", "--no-fail-fast"]);
    c.args(words).args(["--target", "x86_64-unknown-linux-gnu"]);
    c.args(["-p", "tailbound-rt", "-p", "tailbound-sys", "-p", "tailbound-capi"]);
    c.args(["--lib", "--tests", "--", "--show-output"]).args(tests);
    // Flags of its own would rebuild everything in the folder that the other stages share.
    c.env("CARGO_TARGET_DIR", root::target(project).join("sanitizers").join(name));
    c.env("RUSTFLAGS", format!("-Zsanitizer={name}")).env("ASAN_OPTIONS", "detect_leaks=0");
    libtest::counted(&mut c)
}

fn toolchain(project: &Path) -> anyhow::Result<()> {
    let mut known = nightly(project, &["cargo", "miri", "--version"]);
    if exec::output(&mut known).is_ok_and(|o| o.status.success()) {
        return Ok(());
    }
    let fetch = std::env::var("TAILBOUND_FETCH").unwrap_or_default();
    if !fetch.split(',').any(|word| word.trim() == "nightly") {
        bail!(
            "it is not there, and `TAILBOUND_FETCH=nightly make test` would have rustup fetch it"
        );
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
