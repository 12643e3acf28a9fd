// SPDX-License-Identifier: MIT OR Apache-2.0
//! The line of a thread, and the frame that cyclictest redraws: policy, load, a line for each thread.

use crate::tally::CyclicTally;
use crate::unit::Unit;

/// What a thread's line has beside its figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    pub(crate) unit: Unit,
    pub(crate) priority: u8,
    pub(crate) interval_us: u64,
}

/// `T: 0 ( 1234) P:80 I:1000 C:   1000 Min:      3 Act:    5 Avg:    6 Max:      25`
pub(crate) fn line(columns: &Columns, number: usize, tid: i32, tally: &CyclicTally) -> String {
    let Columns { unit, priority, interval_us } = columns;
    let width = match unit {
        Unit::Micros => 5,
        Unit::Nanos => 8,
    };
    format!(
        "T:{number:2} ({tid:5}) P:{priority:2} I:{interval_us} C:{:7} Min:{:7} Act:{:width$} Avg:{:width$} Max:{:8}\n",
        tally.cycles,
        tally.least,
        tally.last,
        tally.average(),
        tally.greatest
    )
}

/// The lines of all threads.
pub(crate) fn lines(columns: &Columns, threads: &[(i32, &CyclicTally)]) -> String {
    let line =
        |(number, (tid, tally)): (usize, &(i32, &CyclicTally))| line(columns, number, *tid, tally);
    threads.iter().enumerate().map(line).collect()
}

/// `loadavg` is what /proc/loadavg holds.
pub(crate) fn frame(policy: &str, loadavg: &str, lines: &str) -> String {
    format!("policy: {policy}: loadavg: {}          \n\n{lines}", loadavg.trim_end())
}

/// Moves the cursor to the first line of a frame of so many threads.
pub(crate) fn up(threads: usize) -> String {
    format!("\x1b[{}A", threads.saturating_add(2))
}
