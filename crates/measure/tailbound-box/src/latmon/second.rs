// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a box says of a second.

/// Bytes of a frame.
pub const LATMON_FRAME_BYTES: usize = 24;

/// One frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatmonSecond {
    /// Sum of all latencies.
    pub sum_ns: u64,
    /// The least; anything without samples.
    pub min_ns: u32,
    /// The greatest.
    pub max_ns: u32,
    /// Answers that did not come in time, and periods that late ones took.
    pub overruns: u32,
    /// Answers that were timed.
    pub samples: u32,
}

impl LatmonSecond {
    /// As it is sent.
    #[must_use]
    pub fn bytes(&self) -> [u8; LATMON_FRAME_BYTES] {
        let words = [self.min_ns, self.max_ns, self.overruns, self.samples];
        let all = self.sum_ns.to_be_bytes().into_iter();
        let all = all.chain(words.into_iter().flat_map(u32::to_be_bytes));
        let mut bytes = [0; LATMON_FRAME_BYTES];
        bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = byte);
        bytes
    }

    /// A frame as it came.
    #[must_use]
    pub fn read(bytes: &[u8; LATMON_FRAME_BYTES]) -> Self {
        let word = |at: usize| {
            bytes.iter().skip(at).take(4).fold(0u32, |sum, byte| sum << 8 | u32::from(*byte))
        };
        Self {
            sum_ns: u64::from(word(0)) << 32 | u64::from(word(4)),
            min_ns: word(8),
            max_ns: word(12),
            overruns: word(16),
            samples: word(20),
        }
    }

    /// What in it cannot be; `None` of a sound frame.
    #[must_use]
    pub fn contradiction(&self) -> Option<&'static str> {
        let n = u64::from(self.samples);
        let (least, greatest) = (u64::from(self.min_ns), u64::from(self.max_ns));
        if n == 0 {
            return (self.sum_ns != 0 || self.max_ns != 0).then_some("latencies of no samples");
        }
        if least > greatest {
            return Some("the least latency is greater than the greatest");
        }
        let within = least.saturating_mul(n)..=greatest.saturating_mul(n);
        (!within.contains(&self.sum_ns))
            .then_some("the sum does not fit its least, greatest and number")
    }

    /// One more sample.
    pub(super) fn add(&mut self, latency_ns: u64) {
        let ns = u32::try_from(latency_ns).unwrap_or(u32::MAX);
        self.min_ns = if self.samples == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns = self.sum_ns.saturating_add(u64::from(ns));
        self.samples = self.samples.saturating_add(1);
    }
}
