// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound check`: what is wrong with a machine for real-time work. Never writes.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tailbound_archive::{ArchiveError, Kind, Limits};
use tailbound_core::CpuSet;
use tailbound_host::{Root, Tree, TreeError};
use tailbound_report::text::ink::{self, Ink};
use tailbound_rules::{Answers, CheckScope, Glance, Level, Machine, Sample, ShownChecks, Workload};
use tailbound_sys::given;
use tailbound_sys::signal::Signals;

use crate::cli_check::{CheckArgs, WorkloadArg};
use crate::flags;
use crate::say::{self, Failure};

/// Exit status where something is bad.
const BAD: u8 = 1;

/// `tailbound check`
pub(super) fn check(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let root = match args.root.as_deref() {
        Some(path) if path.is_dir() => Root::at(path),
        Some(path) => captured(path)?,
        None => Root::real(),
    };
    let wanted = CheckScope {
        rt_cpus: cpus(args.rt_cpus.as_deref())?,
        workload: match args.workload {
            WorkloadArg::Cyclic => Workload::Cyclic,
            WorkloadArg::Polling => Workload::Polling,
        },
        pid: args.process.find(&root, args.target)?,
        comm: args.process.comm.clone(),
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
        let style = say::style(args.color.when);
        let text = answers.text(ShownChecks::all_if(args.all), |level, word| {
            ink::paint(word, ink_of(level), style.color)
        });
        say::answer_in(text.trim_start_matches('\n'), style)?;
    }
    Ok(ExitCode::from(if answers.count(Level::Bad) == 0 { 0 } else { BAD }))
}

fn ink_of(level: Level) -> Ink {
    match level {
        Level::Bad => Ink::Bad,
        Level::Warn | Level::NeedsReboot => Ink::Warn,
        Level::Ok => Ink::Good,
        Level::Unknown | Level::NotApplicable => Ink::Dim,
    }
}

/// A list of CPUs that was typed.
pub(super) fn cpus(text: Option<&str>) -> Result<CpuSet, Failure> {
    let parsed = text.map(str::parse::<CpuSet>).transpose();
    Ok(parsed.map_err(flags::refused("--rt-cpus"))?.unwrap_or_default())
}

/// CPUs that nothing can be known about.
pub(super) fn refuse_offline(rt_cpus: &CpuSet, online: &CpuSet) -> Result<(), Failure> {
    let strange = rt_cpus.minus(online);
    if strange.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format!("--rt-cpus: CPUs {strange} are not online; online are {online}")))
}

/// Two looks, some seconds apart; Ctrl-C ends the wait early.
fn watch(root: &Root, online: &CpuSet, text: &str) -> Result<Sample, Failure> {
    let ns = flags::time("--sample", text)?;
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

/// A captured machine, read into memory: nothing of it reaches a disk.
fn captured(path: &Path) -> Result<Root, Failure> {
    let at = |e: &dyn std::fmt::Display| Failure::usage(format!("--root {}: {e}", path.display()));
    let file = given::open(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => at(&"there is no such file or folder"),
        _ => at(&e),
    })?;
    let tree =
        tree(file).map_err(|e| at(&format!("not a file of tailbound check capture: {e}")))?;
    Ok(Root::of_tree(tree))
}

/// The files of a capture.
///
/// # Errors
/// It is no archive, or holds what a capture has not.
pub(super) fn tree(from: impl Read + Send) -> Result<Tree, ArchiveError> {
    let mut tree = Tree::default();
    tailbound_archive::walk(from, &Limits::CAPTURE, &mut |member| {
        let damaged = |e: TreeError| ArchiveError::Damaged(e.to_string());
        match member.kind {
            Kind::File { mode } => {
                let bytes = member.content()?;
                tree.add_file(&member.name, mode, bytes).map_err(damaged)
            }
            _ => tree.add_folder(&member.name).map_err(damaged),
        }
    })?;
    Ok(tree)
}
