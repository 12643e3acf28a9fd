// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab paths`: which sections of the kernel were in the way, and how long they can be.
//!
//! Context: COLD.

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
    words.campaign.raw = Some(true);
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
    let (watched, log) = paths::watched(&one.cell, &means, &plan, &mut progress)?;
    say::note(&cells::summary("watched", &watched));
    say::note(&format!(
        "same bytes: {}",
        cells::bytes(&plain.run)? == cells::bytes(&watched.run)?
    ));
    say::note(&format!("{:?}\n{:?}", plain.cost, watched.cost));
    let log = tailbound_paths::log::Log::open(std::io::BufReader::new(log)).map_err(Failure::cannot)?;
    say::note(&format!("{} records", log.count()));
    let trace = tailbound_trace::symbols::Symbols::parse(&symbols);
    let at = |name: &str| trace.address(name).unwrap_or_default();
    let marks = tailbound_paths::wakeups::Marks {
        entry: at("asm_sysvec_apic_timer_interrupt"),
        interrupt: at("hrtimer_interrupt"),
        schedule: at("__schedule"),
    };
    let mut wakeups = tailbound_paths::wakeups::WakeUps::new(marks);
    let mut sections = tailbound_paths::sections::Sections::new((0, u64::MAX));
    log.each(|r| {
        wakeups.add(&r);
        sections.add(&r, |_, _| {});
    })
    .map_err(Failure::cannot)?;
    for kind in tailbound_paths::sections::SectionKind::ALL {
        println!("{kind:?}");
        for ((a, b), t) in sections.table(kind).into_iter().take(5) {
            println!("  {:8} n {} sum {} {} -> {}", t.longest_ns, t.n, t.sum_ns, trace.name(a).unwrap_or("?"), trace.name(b).unwrap_or("?"));
        }
    }
    let mut samples = Vec::new();
    for raw in &plain.run.raw {
        samples.extend(tailbound_core::runfile::unpack_raw(raw).map_err(Failure::cannot)?);
    }
    let start: u64 = plain.run.events.iter().find(|e| e.event == "clock-start").and_then(|e| e.text.parse().ok()).unwrap_or(0);
    println!("start {start} samples {} wakeups {}", samples.len(), wakeups.all.len());
    let mut by: std::collections::HashMap<u64, Vec<_>> = std::collections::HashMap::new();
    for w in &wakeups.all {
        by.entry(w.thread).or_default().push(*w);
    }
    let mut most: Vec<_> = by.into_values().collect();
    most.sort_by_key(Vec::len);
    let own = most.pop().unwrap_or_default();
    println!("own {} first due {:?} last due {:?}", own.len(), own.first().map(|w| w.due_ns), own.last().map(|w| w.due_ns));
    let judged: Vec<_> = own.iter().copied().filter(|w| w.due_ns >= start).take(samples.len()).collect();
    println!("{:?}", tailbound_paths::wakeups::fit(&judged, &samples));
    for (w, s) in judged.iter().zip(&samples).take(5) {
        println!("{s} {w:?} {}", w.user_ns as i64 - w.due_ns as i64 - s);
    }
    Ok(ExitCode::SUCCESS)
}
