// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches this machine for some seconds (argument, 3) as if every CPU were measured, and
//! writes what it found, what it watched with, and what the looks cost.

use std::io::Write;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tailbound_core::plan::Clock;
use tailbound_core::{CpuSet, Policy};
use tailbound_host::{Root, Watch, WatchPlan};

fn main() -> std::io::Result<()> {
    let seconds: u32 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(3);
    let plan = WatchPlan {
        cpus: CpuSet::default(),
        policy: Policy::Fifo(95),
        clock: Clock::Monotonic,
        threads: Vec::new(),
    };
    let mut out = std::io::stdout().lock();
    let begin = Instant::now();
    let root = Root::real();
    let switches = tailbound_host::Switches::now(&root);
    let mut watch = Watch::begin(&root, &plan, tailbound_host::inventory(&root), switches);
    writeln!(out, "# begin took {:?}", begin.elapsed())?;
    let (_keep, never) = mpsc::channel::<()>();
    for _ in 0..seconds {
        let _ = never.recv_timeout(Duration::from_secs(1));
        let begin = Instant::now();
        let found = watch.tick();
        let took = begin.elapsed();
        for f in found {
            writeln!(out, "{:?} {}: {}", f.impact, f.id, f.title)?;
        }
        writeln!(out, "# tick took {took:?}")?;
    }
    let begin = Instant::now();
    let (facts, found) = watch.end(&[]);
    let took = begin.elapsed();
    for f in found {
        writeln!(out, "{:?} {}: {}", f.impact, f.id, f.title)?;
    }
    for (name, fact) in facts {
        writeln!(out, "{name} = {}", fact.text())?;
    }
    writeln!(out, "# end took {took:?}")
}
