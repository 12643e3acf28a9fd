// SPDX-License-Identifier: MIT OR Apache-2.0
//! A histogram as the bytes of one column.
//!
//! Units: ns, values. Pairs of numbers in LEB128 (unsigned, seven bits a byte, the lowest first), in the order of
//! values: how much higher the bucket begins than the one before ended, its width, how many values. Values before
//! the due time are not in it: they are in the run file.

use tailbound_core::histogram::{Bucket, Histogram};

/// What is said where they are damaged.
pub(crate) const UNREADABLE: &str =
    "a histogram cannot be read; `tailbound store rebuild` makes it again";

/// An unsigned number, seven bits a byte, the lowest first.
fn put(mut n: u64, to: &mut Vec<u8>) {
    loop {
        let [low, ..] = (n & 0x7f).to_le_bytes();
        n >>= 7;
        if n == 0 {
            to.push(low);
            return;
        }
        to.push(low | 0x80);
    }
}

fn take(from: &mut &[u8]) -> Option<u64> {
    let mut n = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        n |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

/// The bytes of a histogram.
#[must_use]
pub fn packed(of: &Histogram) -> Vec<u8> {
    let mut all = Vec::new();
    let mut end = 0;
    for b in of.buckets() {
        put(b.low_ns - end, &mut all);
        put(b.width_ns, &mut all);
        put(b.count, &mut all);
        end = b.low_ns + b.width_ns;
    }
    all
}

/// The buckets of such bytes; `None`: they are damaged.
#[must_use]
pub fn unpacked(mut bytes: &[u8]) -> Option<Vec<Bucket>> {
    let mut all = Vec::new();
    let mut end = 0u64;
    while !bytes.is_empty() {
        let low_ns = end.checked_add(take(&mut bytes)?)?;
        let width_ns = take(&mut bytes)?;
        let count = take(&mut bytes)?;
        end = low_ns.checked_add(width_ns)?;
        all.push(Bucket { low_ns, width_ns, count });
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_come_back_and_are_small() {
        let mut h = tailbound_core::Distribution::default().late;
        for n in 0..1000u64 {
            h.add(2_000 + n * n, 1 + n % 7);
        }
        let bytes = packed(&h);
        assert_eq!(unpacked(&bytes), Some(h.buckets().collect()));
        assert!(bytes.len() < 5 * h.buckets().count() + 8, "{}", bytes.len());
        assert_eq!(unpacked(&[]), Some(Vec::new()));
        assert_eq!(unpacked(bytes.get(..bytes.len() - 1).unwrap_or_default()), None);
        assert_eq!(unpacked(&[0xff; 11]), None);
    }
}
