// SPDX-License-Identifier: MIT OR Apache-2.0
//! An HdrHistogram log (`.hlog`), for its plotters and libraries.
//!
//! Units: ns. Two histograms per thread: tag `NAME.wakeup` as a stopwatch at the thread
//! saw it, tag `NAME.due` with the missed activations, free of coordinated omission. A bucket goes in
//! with its middle; three significant digits. Negative values have no place there and are counted
//! in a comment.
//! Source: HdrHistogram log format 1.3 and encoding V2, whose reference is its Java implementation.
//! The crate of that name would bring six packages for these 60 lines.

use std::fmt::Write as _;

use base64::Engine as _;
use tailbound_core::{Distribution, Run};

use crate::label;

/// Significant decimal digits.
const DIGITS: i32 = 3;
/// log2 of half the sub-buckets of a bucket: 2 * 10^3 values are told apart, rounded up to 2^11.
const HALF_BITS: u32 = 10;
const HALF: u64 = 1 << HALF_BITS;
const COOKIE: u32 = 0x1c84_9303 | 0x10;
const COOKIE_COMPRESSED: u32 = 0x1c84_9304 | 0x10;

/// `run` as a log.
pub(super) fn text(run: &Run) -> String {
    let mut out = String::from("#[Histogram log format version 1.3]\n");
    let _ = writeln!(out, "#[{}, values in ns]", plain(&run.header.tool));
    let start = crate::worst::clocks(run).map(|c| c.realtime_ns);
    if let Some(start) = start {
        let _ = writeln!(
            out,
            "#[StartTime: {} (seconds since epoch), {}]",
            thousandths(start),
            tailbound_core::utc::from_ns(start)
        );
    }
    out.push_str("\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n");
    for t in &run.threads {
        let name: String = label::thread(run, t)
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        for (kind, d) in [("wakeup", &t.wakeup), ("due", &t.due())] {
            let counts = Counts::of(d);
            let _ = writeln!(
                out,
                "Tag={name}.{kind},{},{},{},{}",
                thousandths(0),
                thousandths(run.measured_ns()),
                // In ms, as that format has it for values in ns.
                thousandths(counts.max.cast_signed().saturating_mul(1000)),
                base64::engine::general_purpose::STANDARD.encode(counts.compressed())
            );
            if d.n > 0 && d.max_ns.is_none() {
                let _ = writeln!(out, "#[{name}.{kind}: the greatest value is not known]");
            }
            let left_out = d.early.total().saturating_add(d.unbinned);
            if left_out > 0 {
                let _ = writeln!(
                    out,
                    "#[{name}.{kind}: {left_out} early or unbinned values are not in it]"
                );
            }
        }
    }
    out
}

/// ns as seconds with three decimals.
fn thousandths(ns: i64) -> String {
    let ms = ns / 1_000_000;
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && *c != ']').collect()
}

/// Counts by the index of that format.
struct Counts {
    counts: Vec<u64>,
    max: u64,
}

impl Counts {
    fn of(d: &Distribution) -> Self {
        // Where the source does not say which is the greatest, it is below the end of the last bucket.
        let occupied = d.late.buckets().filter(|b| b.count > 0);
        let end = occupied.map(|b| b.low_ns.saturating_add(b.width_ns - 1)).max();
        let max = match d.max_ns {
            Some(max) => u64::try_from(max).unwrap_or(0),
            None => end.unwrap_or(0),
        };
        let mut counts = vec![0u64; index(max).saturating_add(1)];
        for b in d.late.buckets() {
            let middle = b.low_ns.saturating_add(b.width_ns / 2).min(max);
            if let Some(count) = counts.get_mut(index(middle)) {
                *count = count.saturating_add(b.count);
            }
        }
        Self { counts, max }
    }

    /// Runs of zeros as one negative number, counts as themselves; zigzag, seven bits a byte and
    /// eight in a ninth.
    fn payload(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut zeros = 0i64;
        for count in &self.counts {
            if *count == 0 {
                zeros += 1;
                continue;
            }
            if zeros > 0 {
                put(&mut out, -zeros);
                zeros = 0;
            }
            put(&mut out, i64::try_from(*count).unwrap_or(i64::MAX));
        }
        out
    }

    fn compressed(&self) -> Vec<u8> {
        let payload = self.payload();
        let mut plain = Vec::new();
        plain.extend(COOKIE.to_be_bytes());
        plain.extend(length(&payload).to_be_bytes());
        plain.extend(0i32.to_be_bytes());
        plain.extend(DIGITS.to_be_bytes());
        plain.extend(1i64.to_be_bytes());
        // The range that a reader must be able to hold; at least twice the least value.
        plain.extend(self.max.clamp(2, i64::MAX as u64).to_be_bytes());
        plain.extend(1f64.to_be_bytes());
        plain.extend(payload);
        let packed = miniz_oxide::deflate::compress_to_vec_zlib(&plain, 6);
        let mut out = Vec::new();
        out.extend(COOKIE_COMPRESSED.to_be_bytes());
        out.extend(length(&packed).to_be_bytes());
        out.extend(packed);
        out
    }
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

/// Where a value is counted.
fn index(value: u64) -> usize {
    let mask = 2 * HALF - 1;
    let bits = 64 - (value | mask).leading_zeros();
    let bucket = bits - (HALF_BITS + 1);
    let sub = value >> bucket;
    let at = ((u64::from(bucket) + 1) << HALF_BITS) + sub - HALF;
    usize::try_from(at).unwrap_or(usize::MAX)
}

fn put(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    for _ in 0..8 {
        let [low, ..] = rest.to_le_bytes();
        rest >>= 7;
        if rest == 0 {
            out.push(low & 0x7f);
            return;
        }
        out.push(low | 0x80);
    }
    let [low, ..] = rest.to_le_bytes();
    out.push(low);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_where_that_library_counts_them() {
        // From its `countsArrayIndex` for three digits and a least value of 1.
        for (value, at) in [(0, 0), (1, 1), (2047, 2047), (2048, 2048), (2050, 2049), (4096, 3072)]
        {
            assert_eq!(index(value), at, "{value}");
        }
    }

    #[test]
    fn values_whose_greatest_is_not_known_stay_in_their_buckets() {
        let mut d = Distribution::default();
        d.add_many(20_000, 5);
        d.max_ns = None;
        let counts = Counts::of(&d);
        assert!(counts.max >= 20_000 && counts.max < 20_200, "{}", counts.max);
        let at: Vec<usize> = (0..counts.counts.len()).filter(|i| counts.counts[*i] > 0).collect();
        assert_eq!((at.len(), counts.counts[at[0]]), (1, 5));
        assert!(at[0] > index(19_800), "{at:?}");
    }

    #[test]
    fn numbers_are_zigzag_in_groups_of_seven_bits() {
        let bytes = |v| {
            let mut out = Vec::new();
            put(&mut out, v);
            out
        };
        assert_eq!(
            (bytes(0), bytes(-1), bytes(1), bytes(64)),
            (vec![0], vec![1], vec![2], vec![0x80, 1])
        );
        assert_eq!(bytes(i64::MAX).len(), 9);
    }
}
