// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a client has of a measurement, and how far it can be believed.

use super::request::LatmonRequest;
use super::second::LatmonSecond;

/// What a box sent of one measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatmonRecord {
    request: LatmonRequest,
    seconds: Vec<LatmonSecond>,
    cells: Vec<u32>,
    last_overruns: Option<u32>,
}

/// Whether the histogram can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatmonCells<'a> {
    /// As many cells of 1 µs as were asked for; the last has everything beyond too.
    Whole(&'a [u32]),
    /// None was asked for.
    NotAsked,
    /// It did not come, or not as a whole.
    Cut,
    /// An answer was later than the period: Zephyr counts it in the cell of what is left after whole periods.
    Folded,
    /// It has fewer samples than the frames.
    TooFew {
        /// Samples of its cells.
        cells: u64,
        /// Samples of the frames.
        frames: u64,
    },
}

impl LatmonRecord {
    pub(super) fn new(request: LatmonRequest) -> Self {
        Self { request, seconds: Vec::new(), cells: Vec::new(), last_overruns: None }
    }

    pub(super) fn add(&mut self, second: LatmonSecond) {
        self.seconds.push(second);
    }

    pub(super) fn end(&mut self, overruns: u32) {
        self.last_overruns = Some(overruns);
    }

    /// The number of cells from then on.
    pub(super) fn add_cell(&mut self, count: u32) -> usize {
        self.cells.push(count);
        self.cells.len()
    }

    /// What was asked for.
    #[must_use]
    pub fn request(&self) -> LatmonRequest {
        self.request
    }

    /// The frames that have samples, in their order.
    #[must_use]
    pub fn seconds(&self) -> &[LatmonSecond] {
        &self.seconds
    }

    /// Samples of all frames.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.seconds.iter().map(|s| u64::from(s.samples)).sum()
    }

    /// Pulses without an answer in time, and periods that late answers took.
    #[must_use]
    pub fn overruns(&self) -> u64 {
        let frames: u64 = self.seconds.iter().map(|s| u64::from(s.overruns)).sum();
        frames + self.last_overruns.map_or(0, u64::from)
    }

    /// Sum of all latencies.
    #[must_use]
    pub fn sum_ns(&self) -> u128 {
        self.seconds.iter().map(|s| u128::from(s.sum_ns)).sum()
    }

    /// The least and the greatest latency; `None` without a sample.
    #[must_use]
    pub fn extremes_ns(&self) -> Option<(u32, u32)> {
        let least = self.seconds.iter().map(|s| s.min_ns).min()?;
        Some((least, self.seconds.iter().map(|s| s.max_ns).max()?))
    }

    /// The box said that it stopped.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.last_overruns.is_some()
    }

    /// The histogram.
    #[must_use]
    pub fn cells(&self) -> LatmonCells<'_> {
        let asked = self.request.cells() as usize;
        if asked == 0 {
            return LatmonCells::NotAsked;
        }
        if self.cells.len() < asked {
            return LatmonCells::Cut;
        }
        let greatest_us = self.extremes_ns().map_or(0, |(_, greatest)| greatest / 1000);
        if greatest_us > self.request.period_us() {
            return LatmonCells::Folded;
        }
        let (cells, frames) = (self.cell_samples(), self.samples());
        if cells < frames {
            return LatmonCells::TooFew { cells, frames };
        }
        LatmonCells::Whole(&self.cells)
    }

    /// Samples of the cells that are in no frame: Zephyr's box counts its warm-up in cells alone.
    #[must_use]
    pub fn warm_up_samples(&self) -> u64 {
        self.cell_samples().saturating_sub(self.samples())
    }

    fn cell_samples(&self) -> u64 {
        self.cells.iter().map(|n| u64::from(*n)).sum()
    }
}
