// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a sample has its time, its CPU and the tracepoint's bytes: what its event was opened with says.
//!
//! Units: bytes; ns on perf's clock.
//! Source: perf_event_open(2), PERF_RECORD_SAMPLE; include/uapi/linux/perf_event.h.

use super::PerfError;
use crate::dat::part::Part;

/// Bits of `sample_type`, in the order of their fields.
const IDENTIFIER: u64 = 1 << 16;
const IP: u64 = 1;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const ID: u64 = 1 << 6;
const STREAM_ID: u64 = 1 << 9;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const RAW: u64 = 1 << 10;
/// Bits of `read_format`.
const TIME_ENABLED: u64 = 1;
const TIME_RUNNING: u64 = 1 << 1;
const READ_ID: u64 = 1 << 2;
const GROUP: u64 = 1 << 3;
const READ_LOST: u64 = 1 << 4;

/// How the samples of one event are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampleLayout {
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
}

/// A tracepoint's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawSample<'a> {
    pub(super) t_ns: u64,
    pub(super) cpu: u32,
    /// As the tracepoint's `format` file describes it.
    pub(super) bytes: &'a [u8],
}

impl SampleLayout {
    /// What samples of it lack that is needed.
    pub(super) fn lacks(self) -> Option<&'static str> {
        [(TIME, "time (-T)"), (CPU, "CPU (--sample-cpu)"), (RAW, "raw data (-R)")]
            .into_iter()
            .find(|(bit, _)| self.sample_type & bit == 0)
            .map(|(_, what)| what)
    }

    /// Does a sample begin with the number of its event?
    pub(super) fn names_event(self) -> bool {
        self.sample_type & IDENTIFIER != 0
    }

    /// The record in the body of a sample.
    ///
    /// # Errors
    /// [`PerfError::Ends`]: it is shorter than it says.
    pub(super) fn sample<'a>(self, body: &mut Part<'a>) -> Result<RawSample<'a>, PerfError> {
        let has = |bit: u64| self.sample_type & bit != 0;
        let (mut t_ns, mut cpu) = (0, 0);
        for bit in [IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD] {
            if !has(bit) {
                continue;
            }
            let word = body.u64()?;
            match bit {
                TIME => t_ns = word,
                CPU => cpu = u32::try_from(word & 0xffff_ffff).unwrap_or(0),
                _ => {}
            }
        }
        if has(READ) {
            self.skip_counts(body)?;
        }
        if has(CALLCHAIN) {
            let frames = body.u64()?;
            skip_words(body, frames)?;
        }
        let length = body.u32()?;
        let bytes = body.bytes(usize::try_from(length).unwrap_or(usize::MAX))?;
        Ok(RawSample { t_ns, cpu, bytes })
    }

    fn skip_counts(self, body: &mut Part<'_>) -> Result<(), PerfError> {
        let words = |bits: &[u64]| {
            bits.iter()
                .fold(0u64, |n, bit| n.saturating_add(u64::from(self.read_format & bit != 0)))
        };
        let times = words(&[TIME_ENABLED, TIME_RUNNING]);
        let of_one = words(&[READ_ID, READ_LOST]).saturating_add(1);
        let counters = match self.read_format & GROUP {
            0 => 1,
            _ => body.u64()?,
        };
        skip_words(body, times.saturating_add(of_one.saturating_mul(counters)))
    }
}

fn skip_words(body: &mut Part<'_>, words: u64) -> Result<(), PerfError> {
    let bytes = words.saturating_mul(8);
    body.bytes(usize::try_from(bytes).unwrap_or(usize::MAX))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    #[test]
    fn what_stands_before_the_raw_bytes_is_passed_over() {
        let layout = SampleLayout {
            sample_type: IDENTIFIER | IP | TID | TIME | CPU | PERIOD | READ | CALLCHAIN | RAW,
            read_format: GROUP | READ_ID | TIME_ENABLED,
        };
        assert_eq!(layout.lacks(), None);
        // Two counters with their numbers; a chain of one.
        let mut body = words(&[7, 0xdead, 1 << 32, 5_000, 3, 1, 2, 99, 10, 11, 20, 21, 1, 0xbeef]);
        body.extend(4u32.to_le_bytes());
        body.extend(*b"abcd");
        let sample = layout.sample(&mut Part::new(&body, 0, "a sample")).unwrap();
        assert_eq!(sample, RawSample { t_ns: 5_000, cpu: 3, bytes: b"abcd" });
        for end in 0..body.len() {
            let cut = body.get(..end).unwrap_or_default();
            assert!(layout.sample(&mut Part::new(cut, 0, "a sample")).is_err(), "{end}");
        }
    }

    #[test]
    fn lengths_beyond_all_measure_are_refused() {
        let layout = SampleLayout { sample_type: TIME | CPU | CALLCHAIN | RAW, read_format: 0 };
        let body = words(&[1, 2, u64::MAX]);
        assert!(layout.sample(&mut Part::new(&body, 0, "a sample")).is_err());
        let without = SampleLayout { sample_type: TIME | RAW, read_format: 0 };
        assert_eq!(without.lacks(), Some("CPU (--sample-cpu)"));
    }
}
