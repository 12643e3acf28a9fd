// SPDX-License-Identifier: MIT OR Apache-2.0
//! The box's side of a measurement: samples in, frames and the histogram out.
//!
//! Unlike Zephyr's, a sample that is later than the period stays in the cell of its own latency.

use super::CELL_NS;
use super::request::LatmonRequest;
use super::second::LatmonSecond;

/// What a box counts for one request.
#[derive(Clone, Debug)]
pub struct LatmonCounting {
    request: LatmonRequest,
    second: LatmonSecond,
    cells: Vec<u32>,
}

impl LatmonCounting {
    /// Nothing counted.
    #[must_use]
    pub fn new(request: LatmonRequest) -> Self {
        let cells = vec![0; request.cells() as usize];
        Self { request, second: LatmonSecond::default(), cells }
    }

    /// A pulse was answered after so long.
    pub fn answered(&mut self, latency_ns: u64) {
        self.second.add(latency_ns);
        let us = latency_ns / CELL_NS;
        let periods = us.saturating_sub(1) / u64::from(self.request.period_us());
        self.overrun(u32::try_from(periods).unwrap_or(u32::MAX));
        let beyond = self.cells.len().saturating_sub(1);
        let cell = usize::try_from(us).unwrap_or(usize::MAX).min(beyond);
        if let Some(count) = self.cells.get_mut(cell) {
            *count = count.saturating_add(1);
        }
    }

    /// A pulse was not answered in time.
    pub fn unanswered(&mut self) {
        self.overrun(1);
    }

    fn overrun(&mut self, n: u32) {
        self.second.overruns = self.second.overruns.saturating_add(n);
    }

    /// The frame of the time since the last one; `None` without a sample: such a frame would say that all is over.
    pub fn take_second(&mut self) -> Option<LatmonSecond> {
        (self.second.samples > 0).then(|| std::mem::take(&mut self.second))
    }

    /// What is sent at the end: the rest of a second, the empty frame, the histogram.
    #[must_use]
    pub fn trailer(mut self) -> Vec<u8> {
        let rest = self.take_second();
        let empty = LatmonSecond { min_ns: 0, ..self.second };
        let frames = rest.into_iter().chain([empty]).flat_map(|frame| frame.bytes());
        frames.chain(self.cells.iter().flat_map(|n| n.to_be_bytes())).collect()
    }

    /// What is sent at the end of nothing: no pulses were asked for.
    #[must_use]
    pub fn nothing() -> Vec<u8> {
        LatmonSecond::default().bytes().to_vec()
    }
}
