// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound check`: what is wrong with a machine for real-time work. Never writes.
//!
//! Context: COLD.

use std::fs::File;
use std::path::{Component, Path};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tailbound_core::{CpuSet, units};
use tailbound_host::Root;
use tailbound_rules::{Answers, Glance, Level, Machine, Sample, Wanted, Workload};
use tailbound_sys::signal::Signals;

use crate::cli_check::{CheckArgs, WorkloadArg};
use crate::say::{self, Failure};

/// Exit status where something is bad.
const BAD: u8 = 1;
/// Largest captured machine that is read, unpacked, in bytes.
const CAPTURE_MAX: u64 = 256 << 20;

/// `tailbound check`
pub(super) fn check(args: &CheckArgs) -> Result<ExitCode, Failure> {
    // Kept until the end: the unpacked tree goes with it.
    let captured = args.root.as_deref().filter(|p| p.is_file()).map(unpack).transpose()?;
    let root = match (&captured, &args.root) {
        (Some(folder), _) => Root::at(folder.path()),
        (None, Some(path)) if path.is_dir() => Root::at(path),
        (None, Some(path)) => {
            let why = if path.exists() {
                "neither a regular file nor a folder"
            } else {
                "there is no such file or folder"
            };
            return Err(Failure::usage(format!("--root {}: {why}", path.display())));
        }
        (None, None) => Root::real(),
    };
    let wanted = Wanted {
        rt_cpus: cpus(args.rt_cpus.as_deref())?,
        workload: match args.workload {
            WorkloadArg::Cyclic => Workload::Cyclic,
            WorkloadArg::Polling => Workload::Polling,
        },
        pid: args.pid,
    };
    let online = tailbound_host::Cpus::read(&root)
        .map_err(|e| match &args.root {
            Some(path) => Failure::cannot(format!("--root {}: {e}", path.display())),
            None => Failure::cannot(e),
        })?
        .online;
    refuse_offline(&wanted.rt_cpus, &online)?;
    let sample = args.sample.as_deref().map(|t| watch(&root, &online, t)).transpose()?;
    let answers = Answers::of(&Machine::read(&root, wanted, sample));
    if args.json {
        say::answer_json(&answers.json())?;
    } else {
        let style = say::style(&args.color.when);
        let text = answers.text(args.all, |level, word| painted(level, word, style.color));
        say::answer_in(text.trim_start_matches('\n'), style)?;
    }
    Ok(ExitCode::from(if answers.count(Level::Bad) == 0 { 0 } else { BAD }))
}

/// A list of CPUs that was typed.
pub(super) fn cpus(text: Option<&str>) -> Result<CpuSet, Failure> {
    let parsed = text.map(str::parse::<CpuSet>).transpose();
    Ok(parsed.map_err(|e| Failure::usage(format!("--rt-cpus: {e}")))?.unwrap_or_default())
}

/// CPUs that nothing can be known about.
pub(super) fn refuse_offline(rt_cpus: &CpuSet, online: &CpuSet) -> Result<(), Failure> {
    let strange = rt_cpus.minus(online);
    if strange.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format!("--rt-cpus: CPUs {strange} are not online; online are {online}")))
}

fn painted(level: Level, word: &str, color: bool) -> String {
    let code = match level {
        Level::Bad => "31",
        Level::Warn | Level::NeedsReboot => "33",
        Level::Ok => "32",
        Level::Unknown | Level::NotApplicable => "2",
    };
    if color { format!("\x1b[{code}m{word}\x1b[0m") } else { word.to_owned() }
}

/// Two looks, some seconds apart; Ctrl-C ends the wait early.
fn watch(root: &Root, online: &CpuSet, text: &str) -> Result<Sample, Failure> {
    let ns = units::parse_ns(text).map_err(|e| Failure::usage(format!("--sample: {e}")))?;
    let length = Duration::from_nanos(u64::try_from(ns).unwrap_or(0));
    let signals = Signals::block_and_open().map_err(Failure::cannot)?;
    let begun = Instant::now();
    let before = Glance::take(root, online);
    while let Some(left) = length.checked_sub(begun.elapsed()) {
        if left.as_secs() >= 2 {
            say::note(&format!("watching interrupts, {} s left", left.as_secs()));
        }
        let ms = i32::try_from(left.as_millis().min(2000)).unwrap_or(0).saturating_add(1);
        if signals.wait(ms).is_some() {
            break;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Sample::new(seconds, before, Glance::take(root, online)))
}

/// A captured machine as a tree of files.
fn unpack(path: &Path) -> Result<tempfile::TempDir, Failure> {
    use std::io::Read as _;
    let at = |e: &dyn std::fmt::Display| Failure::usage(format!("--root {}: {e}", path.display()));
    let none = |e: &dyn std::fmt::Display| at(&format!("not a file of tailbound capture: {e}"));
    let folder = tempfile::tempdir().map_err(Failure::cannot)?;
    let file = File::open(path).map_err(|e| at(&e))?;
    let plain = flate2::read::GzDecoder::new(file).take(CAPTURE_MAX);
    let mut archive = tar::Archive::new(plain);
    archive.set_preserve_permissions(true);
    let mut bytes = 0u64;
    for entry in archive.entries().map_err(|e| at(&e))? {
        let mut entry = entry.map_err(|e| none(&cause(&e)))?;
        let name = entry.path().map_err(|e| none(&e))?.into_owned();
        // A capture has no links, which could lead out of the folder, and no paths that do.
        if !name.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir)) {
            return Err(none(&format!("it holds {}, which leads out of it", name.display())));
        }
        bytes = bytes.saturating_add(entry.size());
        if bytes > CAPTURE_MAX {
            return Err(none(&format!("unpacked it has more than {} MiB", CAPTURE_MAX >> 20)));
        }
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            // With our own permissions: what may not be looked into could not be taken away.
            std::fs::create_dir_all(folder.path().join(&name)).map_err(|e| none(&e))?;
        } else if kind.is_file() {
            entry.unpack_in(folder.path()).map_err(|e| none(&cause(&e)))?;
        } else {
            return Err(none(&"it holds links or devices"));
        }
    }
    Ok(folder)
}

/// What is behind an error: the reader of archives names its own temporary files.
fn cause(e: &std::io::Error) -> String {
    let mut last: &dyn std::error::Error = e;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
