// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the host's side costs: a measurement that is asked for, no test of this machine.

use std::io::Write as _;
use std::sync::atomic::AtomicBool;

use tailbound_box::stimulus::{StimulusPlan, StimulusProgress, StimulusShape, StimulusSpacing};
use tailbound_import::stimulus::StimulusRecorder;
use tailbound_stimulus::{Streaming, Via, measure};
use tailbound_sys::clock::{CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID, now_ns};

use crate::pty_box::{PtyBox, Weather};
use crate::simulated_box::SimulatedBox;

#[test]
#[ignore = "a measurement of 20 s: cargo test -p tailbound-stimulus --test port cost -- --ignored --nocapture"]
fn cpu_time_of_the_host_at_10_khz() {
    let of = SimulatedBox::new(|_, number| Some(400 + number * 7_919 % 2_100));
    let Some(at) = PtyBox::new(of, Weather::default()) else { return };
    let plan = StimulusPlan {
        period_ns: 100_000,
        duration_ns: 20_000_000_000,
        channels: 1,
        shape: StimulusShape::Toggle,
        spacing: StimulusSpacing::Even,
        deadline_ns: None,
    };
    let mut recorder = StimulusRecorder::new(|_: &StimulusProgress| {});
    let before = now_ns(CLOCK_THREAD_CPUTIME_ID);
    let via = Via::Pico(at.port.clone());
    let record = measure(&via, &plan, Streaming::Samples, &mut recorder, &AtomicBool::new(false));
    let spent_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - before;
    let record = record.expect("measured");
    let came = record.channels[0].streamed.as_ref().map_or(0, |account| account.came);
    let share = spent_ns * 10_000 / plan.duration_ns;
    let text = format!("{came} samples, {}.{:02} % of a CPU\n", share / 100, share % 100);
    std::io::stderr().write_all(text.as_bytes()).expect("told");
}

/// For a try by hand: `TAILBOUND_BOX_PORT=FILE` gets the port's name, and the box answers for a minute.
#[test]
#[ignore = "a box to try verbs with: TAILBOUND_BOX_PORT=FILE cargo test -p tailbound-stimulus --test port served -- --ignored"]
fn a_box_is_served() {
    let Some(file) = std::env::var_os("TAILBOUND_BOX_PORT") else { return };
    let of = SimulatedBox::new(|_, number| Some(400 + number * 7_919 % 2_100));
    let Some(at) = PtyBox::new(of, Weather::default()) else { return };
    std::fs::write(&file, at.port.display().to_string()).expect("written");
    let until = now_ns(CLOCK_MONOTONIC) + 60_000_000_000;
    while now_ns(CLOCK_MONOTONIC) < until && std::path::Path::new(&file).exists() {
        tailbound_sys::ipc::wait_readable(&[], 100).expect("a wait");
    }
}
