// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs loads by themselves and prints what they do: the smallest program around this
//! crate, used by its tests and by `bench/hackbench.sh`.
//!
//! Usage: `load [--duration TIME] SPEC...`; without a duration until every
//! load has ended or someone presses Ctrl-C. Not here: measuring (`tailbound measure`).

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tailbound_core::Spec;
use tailbound_core::units;
use tailbound_load::{Loads, STATUS_FD, StartOptions, worker_main};

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|w| w == "load-worker") {
        return worker_main(words.get(1).map_or("", String::as_str), STATUS_FD);
    }
    let mut duration = None;
    if words.first().is_some_and(|w| w == "--duration") && words.len() >= 2 {
        duration = Some(words[1].clone());
        words.drain(..2);
    }
    match run(&words, duration.as_deref()) {
        Ok(code) => code,
        Err(e) => {
            let _closed = writeln!(io::stderr(), "load: {e}");
            ExitCode::from(2)
        }
    }
}

fn run(words: &[String], duration: Option<&str>) -> Result<ExitCode, String> {
    let specs: Result<Vec<Spec>, _> = words.iter().map(|w| w.parse()).collect();
    let specs = specs.map_err(|e: tailbound_core::SpecError| e.to_string())?;
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    let limit = duration.map(units::parse_ns).transpose().map_err(|e| e.to_string())?;
    let limit = limit.map(|ns| Duration::from_nanos(ns.unsigned_abs()));
    let out = |text: String| writeln!(io::stdout(), "{text}").map_err(|e| e.to_string());
    let start = Instant::now();
    let mut loads = Loads::start(&specs, &StartOptions::new(exe)).map_err(|e| e.to_string())?;
    let mut shown = Instant::now();
    while loads.any_running() && limit.is_none_or(|limit| start.elapsed() < limit) {
        loads.wait_for_news(Duration::from_millis(100));
        let t_ns = i64::try_from(start.elapsed().as_nanos()).unwrap_or(i64::MAX);
        loads.keep_phases(t_ns, i64::MAX);
        if shown.elapsed() >= Duration::from_secs(1) {
            shown = Instant::now();
            for s in loads.poll() {
                out(format!("{}: {:.0} {}/s", s.name, s.rate(), s.unit))?;
            }
        }
    }
    for end in loads.stop() {
        let span = units::format_ns_i64(end.span_ns);
        out(format!("{}: {} {} in {span}", end.name, units::grouped(end.total), end.unit))?;
        if let Some(ns) = end.elapsed_ns {
            out(format!("Time: {}.{:03}", ns / 1_000_000_000, ns / 1_000_000 % 1000))?;
        }
    }
    for (load, note) in loads.notes() {
        out(format!("note: {load}: {note}"))?;
    }
    let findings = loads.findings();
    for f in &findings {
        out(format!("{}: {}", f.id, f.title))?;
    }
    let failed = findings.iter().any(|f| f.id == "load-failed" || f.id == "load-idle");
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
