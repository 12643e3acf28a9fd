// SPDX-License-Identifier: MIT OR Apache-2.0
//! What recording one wake-up costs, in ns, on this machine: `bench/record.sh` runs it.
//!
//! Each figure is of one batch of wake-ups, the rings emptied in between; the
//! loop around it is measured too and shown as `loop alone`. Caches are warm here: in a real
//! run the first touch after a sleep costs more, which `tailbound measure` reports itself.
//! Units: ns for one record.
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

use std::hint::black_box;
use std::time::Instant;

use tailbound_rt::Recorder;
use tailbound_rt::recorder::Writer;

const BATCH: u64 = 4000;
const BATCHES: usize = 501;
const INTERVAL_NS: i64 = 200_000;

/// What a batch does beside the plain record.
struct Case {
    name: &'static str,
    latency_ns: fn(u64) -> i64,
    missed: u64,
    setup: fn(&Recorder),
}

const CASES: &[Case] = &[
    Case { name: "steady", latency_ns: |_| 3_000, missed: 0, setup: |_| {} },
    Case { name: "spread over all buckets", latency_ns: spread, missed: 0, setup: |_| {} },
    Case { name: "early", latency_ns: |_| -700, missed: 0, setup: |_| {} },
    Case { name: "every one an exceedance", latency_ns: |_| 3_000, missed: 0, setup: exceed },
    Case {
        name: "raw samples kept",
        latency_ns: |_| 3_000,
        missed: 0,
        setup: Recorder::record_raw,
    },
    Case { name: "one missed each", latency_ns: |_| 250_000, missed: 1, setup: |_| {} },
];

fn exceed(recorder: &Recorder) {
    recorder.set_threshold_ns(0);
}

/// Every magnitude from 1 ns to 2 s equally often, in no order.
fn spread(i: u64) -> i64 {
    let mixed = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 33 >> (mixed % 31)).cast_signed()
}

fn main() {
    println!(
        "ns for one record       minimum  median  maximum   (of {BATCHES} batches of {BATCH})"
    );
    table(
        "loop alone",
        &mut batches(
            |i, _| {
                black_box(spread(black_box(i)));
            },
            &Recorder::new(),
        ),
    );
    for case in CASES {
        // Boxed: a recorder is larger than a stack should be asked for.
        let recorder = Box::new(Recorder::new());
        (case.setup)(&recorder);
        let mut writer = Writer::new(&recorder, 0, INTERVAL_NS);
        let mut activation = 0u64;
        let mut costs = batches(
            |i, _| {
                let due_ns = activation.cast_signed().wrapping_mul(INTERVAL_NS);
                let late_ns = (case.latency_ns)(black_box(i));
                writer.wake(activation, due_ns, due_ns.wrapping_add(late_ns), case.missed);
                activation += 1 + case.missed;
            },
            &recorder,
        );
        table(case.name, &mut costs);
    }
}

/// The cost of one call in each batch.
fn batches(mut each: impl FnMut(u64, &Recorder), recorder: &Recorder) -> Vec<f64> {
    let mut costs = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let start = Instant::now();
        for i in 0..BATCH {
            each(i, recorder);
        }
        let spent = start.elapsed();
        costs.push(spent.as_secs_f64() * 1e9 / BATCH as f64);
        while recorder.pop_raw().is_some() {}
        while recorder.pop_exceedance().is_some() {}
        while recorder.pop_second().is_some() {}
    }
    costs
}

fn table(name: &str, costs: &mut [f64]) {
    costs.sort_by(f64::total_cmp);
    let at = |i: usize| costs.get(i).copied().unwrap_or(f64::NAN);
    let (least, median, greatest) = (at(0), at(costs.len() / 2), at(costs.len() - 1));
    println!("{name:<24} {least:6.1}  {median:6.1}  {greatest:7.1}");
}
