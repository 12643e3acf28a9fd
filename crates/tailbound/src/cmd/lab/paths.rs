// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab paths`: which sections of the kernel were in the way, and how long they can be.
//!
//! Context: COLD.

use std::io::Read as _;
use std::process::ExitCode;

use tailbound_lab::{Request, paths};
use tailbound_paths::plan::Plan;

use super::cells::{self, Bench};
use super::request;
use crate::cli_lab_paths::LabPathsArgs;
use crate::say::{self, Failure};

/// `tailbound lab paths`
pub(super) fn paths(args: &LabPathsArgs) -> Result<ExitCode, Failure> {
    let mut words = Request { kernels: args.kernel.iter().cloned().collect(), ..Request::default() };
    words.append.extend(args.append.clone());
    if !args.load.is_empty() {
        words.loads = vec![args.load.join(",")];
    }
    request::lay(&mut words, &args.guest, &args.probe, &args.host)?;
    words.campaign = words.campaign.over(&args.work.config()?);
    let bench = Bench::open(&args.host)?;
    let emulator = bench.ready(&words)?;
    let labelled = words.cells(&mut |name, arch| bench.obtain(name, arch))?;
    let [one] = labelled.as_slice() else {
        return Err(Failure::usage("lab paths looks at one kernel with one load at a time"));
    };
    paths::plugin(&one.cell, &emulator)?;
    let means = bench.means(&emulator);
    let mut progress = |_| {};
    let begun = std::time::Instant::now();
    let symbols = paths::symbols(&one.cell, &means, &mut progress)?;
    say::note(&format!("symbols {} lines {:?}", symbols.lines().count(), begun.elapsed()));
    let plan = Plan::of(&symbols).map_err(Failure::cannot)?;
    let plain = tailbound_lab::run(&one.cell, &means, &mut progress)?;
    say::note(&cells::summary("plain", &plain));
    let (watched, mut log) = paths::watched(&one.cell, &means, &plan, &mut progress)?;
    say::note(&cells::summary("watched", &watched));
    say::note(&format!(
        "same bytes: {}",
        cells::bytes(&plain.run)? == cells::bytes(&watched.run)?
    ));
    say::note(&format!("{:?}\n{:?}", plain.cost, watched.cost));
    let mut head = [0u8; 4096];
    log.read_exact(&mut head).map_err(Failure::cannot)?;
    let word = |at: usize| u64::from_ne_bytes(head[at * 8..at * 8 + 8].try_into().unwrap());
    say::note(&format!("count {} status {}", word(1), word(2)));
    let mut bytes = vec![0u8; usize::try_from(word(1)).unwrap() * 16];
    log.read_exact(&mut bytes).map_err(Failure::cannot)?;
    std::fs::write("/tmp/pl/log.bin", &bytes).map_err(Failure::cannot)?;
    std::fs::write("/tmp/pl/kallsyms", &symbols).map_err(Failure::cannot)?;
    std::fs::write("/tmp/pl/run.jsonl", cells::bytes(&plain.run)?).map_err(Failure::cannot)?;
    Ok(ExitCode::SUCCESS)
}
