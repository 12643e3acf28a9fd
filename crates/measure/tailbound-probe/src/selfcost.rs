// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tool itself costs, measured where it runs: reading the clock, recording.
//!
//! Context: SETUP. Units: ns. Takes about a millisecond.

use tailbound_core::number::Real as _;
use tailbound_core::record::SelfCost;
use tailbound_rt::recorder::{Recorder, Writer};
use tailbound_sys::clock;
use tailbound_sys::error::SysError;
use tailbound_sys::mem::Prefaulted;

const ROUNDS: u32 = 9;
const READS: u32 = 500;
const RECORDS: u32 = 2_000;

/// Measures `clock_read_ns` and `record_ns` (medians of nine rounds) on `clock`.
///
/// # Errors
/// When there is no memory for a scratch recorder.
pub fn measure(clock: i32) -> Result<SelfCost, SysError> {
    let scratch = Prefaulted::<Recorder>::new()?;
    let mut writer = Writer::new(&scratch, 0, 1_000_000);
    touch_rare_paths(&scratch, &mut writer);
    let reads = median(|| {
        let begin = clock::now_ns(clock);
        for _ in 1..READS {
            std::hint::black_box(clock::now_ns(clock));
        }
        f64::from(READS).recip() * (clock::now_ns(clock) - begin).real()
    });
    let mut activation = 0u64;
    let records = median(|| {
        let begin = clock::now_ns(clock);
        for i in 0..RECORDS {
            // A spread of errors, so that more than one bucket is touched.
            writer.wake(activation, 0, 3_000 + i64::from(i % 64) * 97, 0);
            activation += 1;
        }
        f64::from(RECORDS).recip() * (clock::now_ns(clock) - begin).real()
    });
    Ok([("clock_read_ns".to_owned(), reads), ("record_ns".to_owned(), records)].into())
}

/// Brings the recorder's rare paths into memory again, where the program's code was given back.
///
/// # Errors
/// When there is no memory for a scratch recorder.
pub fn fetch_rare_paths() -> Result<(), SysError> {
    let scratch = Prefaulted::<Recorder>::new()?;
    touch_rare_paths(&scratch, &mut Writer::new(&scratch, 0, 1_000_000));
    Ok(())
}

/// Takes every rare path of the recorder once, so that its code is in memory before the loop
/// needs it: missed activations, over range, early, exceedance, raw sample, end of a second.
fn touch_rare_paths(scratch: &Recorder, writer: &mut Writer<'_>) {
    scratch.set_threshold_ns(0);
    scratch.record_raw();
    writer.wake(0, 0, 20_000_000_000, 20_000);
    writer.wake(1, 0, -1, 0);
    writer.wake(2, 2_000_000_000, 2_000_000_500, 0);
}

fn median(mut round: impl FnMut() -> f64) -> f64 {
    let mut all: Vec<f64> = (0..ROUNDS).map(|_| round()).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}
