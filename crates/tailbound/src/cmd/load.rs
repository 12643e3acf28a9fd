// SPDX-License-Identifier: MIT OR Apache-2.0
//! `load`: the bare loads, beside whatever else measures.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use tailbound_core::Spec;
use tailbound_core::number::Real as _;
use tailbound_core::units;
use tailbound_load::{Loads, StartOptions};
use tailbound_sys::signal::Signals;

use crate::cli::LoadArgs;
use crate::say::{self, Failure};

/// `tailbound load`
pub(crate) fn load(args: &LoadArgs) -> Result<ExitCode, Failure> {
    let mut specs = Vec::new();
    for text in args.names.iter().flat_map(|n| tailbound_core::split_loads(n)) {
        let spec: Spec = text.parse().map_err(Failure::usage)?;
        tailbound_load::check(&spec).map_err(Failure::usage)?;
        specs.push(spec);
    }
    let length = args
        .duration
        .as_deref()
        .map(units::parse_ns)
        .transpose()
        .map_err(|e| Failure::usage(format!("--duration: {e}")))?;
    let length = length.map(|ns| Duration::from_nanos(u64::try_from(ns).unwrap_or(0)));
    let signals = Signals::block_and_open().map_err(Failure::cannot)?;
    let exe =
        std::env::current_exe().map_err(|e| Failure::cannot(format!("own path unknown: {e}")))?;
    let mut loads = Loads::start(&specs, &StartOptions::new(&exe)).map_err(Failure::cannot)?;
    loads.ready(Duration::from_secs(10)).map_err(Failure::cannot)?;
    let begun = Instant::now();
    let mut shown = Instant::now();
    loop {
        let left = length.map_or(Duration::from_secs(1), |l| l.saturating_sub(begun.elapsed()));
        let t_ns = i64::try_from(begun.elapsed().as_nanos()).unwrap_or(i64::MAX);
        for change in loads.keep_phases(t_ns, i64::MAX).into_iter().filter(|_| !args.quiet) {
            let what = if change.began { "begins" } else { "pauses" };
            say::note(&format!("{:>6.0} s  {} {what}", begun.elapsed().as_secs_f64(), change.spec));
        }
        let change = loads.next_change_ns(t_ns).map_or(i64::MAX, |at| (at - t_ns) / 1_000_000 + 1);
        let wait = i64::try_from(left.as_millis()).unwrap_or(i64::MAX).min(change).clamp(1, 1000);
        let wait = i32::try_from(wait).unwrap_or(1000);
        if signals.wait(wait).is_some()
            || length.is_some_and(|l| begun.elapsed() >= l)
            || !loads.any_running()
        {
            break;
        }
        let samples = loads.poll();
        if !args.quiet && shown.elapsed() >= Duration::from_secs(2) {
            shown = Instant::now();
            for s in &samples {
                say::note(&format!(
                    "{:>6.0} s  {:<12} {:>14.0} {}/s",
                    begun.elapsed().as_secs_f64(),
                    s.name,
                    s.rate(),
                    s.unit
                ));
            }
        }
    }
    let elapsed = begun.elapsed().as_secs_f64();
    let ends = loads.stop();
    let failed = ends.iter().any(|e| e.failure.is_some());
    if args.json {
        let list: Vec<_> = ends
            .iter()
            .map(|e| serde_json::json!({"name": e.name, "total": e.total, "unit": e.unit, "seconds": elapsed, "failure": e.failure}))
            .collect();
        say::answer_json(&serde_json::Value::Array(list))?;
    } else {
        for e in &ends {
            let rate = e.total.real() / elapsed.max(1e-9);
            if let Some(ns) = e.elapsed_ns {
                // As rt-tests' hackbench says it, for a finite number of messages.
                say::answer(&format!("Time: {}.{:03}", ns / 1_000_000_000, ns / 1_000_000 % 1000))?;
            }
            let failure = e.failure.as_ref().map(|f| format!("  FAILED: {f}")).unwrap_or_default();
            say::answer(&format!(
                "{:<12} {} {} in {elapsed:.1} s, {rate:.0} a second{failure}",
                e.name,
                units::grouped(e.total),
                e.unit
            ))?;
        }
    }
    Ok(ExitCode::from(if failed { 3 } else { 0 }))
}
