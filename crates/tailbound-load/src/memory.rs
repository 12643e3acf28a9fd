// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random reads and writes over more memory than the last cache holds, one thread per CPU.
//!
//! Context: the threads are the load; SETUP elsewhere. Units: bytes, accesses.
//! Not here: how much memory there is (`machine`).

use std::hint::black_box;

use tailbound_core::units;
use tailbound_sys::sched;

use crate::machine;
use crate::spin::Threads;
use crate::worker::Load;

/// Default of each thread when the caches are unknown or small.
const BLOCK_MIN_BYTES: usize = 64 << 20;
/// Beyond this a block takes long to fill and misses no more: hypervisors report caches of
/// hundreds of megabytes that a guest has no share of.
const BLOCK_DEFAULT_MAX_BYTES: usize = 256 << 20;
/// Together the threads' blocks are this many times the last cache.
const CACHES: usize = 4;
/// At most this part of the available memory is taken by default.
const AVAILABLE_PART: u64 = 8;
/// The smallest block worth calling memory.
const BLOCK_FLOOR_BYTES: usize = 1 << 20;
/// The largest block: 32 random bits choose a word.
const BLOCK_MAX_WORDS: usize = u32::MAX as usize;
/// Accesses between two additions to the count.
const BATCH: u64 = 1024;

pub(crate) fn start(
    block: Option<usize>,
    note: &mut dyn FnMut(String),
) -> Result<Box<dyn Load>, String> {
    let cpus = sched::affinity(0).map_err(|e| e.to_string())?;
    let available = machine::available_bytes();
    let bytes = match block {
        Some(bytes) if bytes / size_of::<u64>() > BLOCK_MAX_WORDS => {
            return Err(
                "a block of more than 32 GiB is not supported: write a smaller block=".into()
            );
        }
        Some(bytes) => {
            let wanted = u64::try_from(bytes.saturating_mul(cpus.len())).unwrap_or(u64::MAX);
            if let Some(available) = available.filter(|a| wanted > *a) {
                return Err(format!(
                    "{} threads of {} bytes are more than the {} bytes available: write a smaller block=",
                    cpus.len(),
                    units::grouped(bytes as u64),
                    units::grouped(available)
                ));
            }
            bytes
        }
        None => default_block(machine::last_cache_bytes(), available, cpus.len()),
    };
    note(format!("{} bytes in each of {} threads", units::grouped(bytes as u64), cpus.len()));
    let threads = Threads::new(cpus.len())?;
    for (slot, cpu) in cpus.into_iter().enumerate() {
        threads.spawn(slot, Some(cpu), move |count| wander(bytes, slot as u64, count))?;
    }
    Ok(Box::new(threads))
}

/// Four times the last cache shared out, 64 to 256 MiB each; together no more than an
/// eighth of what is available.
fn default_block(cache: Option<usize>, available: Option<u64>, threads: usize) -> usize {
    let threads = threads.max(1);
    let wanted = (cache.unwrap_or(0).saturating_mul(CACHES) / threads).max(BLOCK_MIN_BYTES);
    let allowed = available
        .and_then(|a| usize::try_from(a / AVAILABLE_PART).ok())
        .map_or(usize::MAX, |a| a / threads);
    wanted
        .min(BLOCK_DEFAULT_MAX_BYTES)
        .min(allowed)
        .max(BLOCK_FLOOR_BYTES)
        .min(BLOCK_MAX_WORDS.saturating_mul(size_of::<u64>()))
}

/// Every second access is a write. Addresses do not depend on what was read: many are
/// under way at once, as in real programs.
fn wander(bytes: usize, seed: u64, count: &dyn Fn(u64)) -> Result<(), String> {
    let words = (bytes / size_of::<u64>()).min(BLOCK_MAX_WORDS);
    let mut block: Vec<u64> = Vec::new();
    block.try_reserve_exact(words).map_err(|e| format!("{bytes} bytes: {e}"))?;
    // Written, not just reserved: page faults are another load.
    block.extend(0..words as u64);
    let mut x = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed.wrapping_add(1)) | 1;
    let mut sum = 0u64;
    loop {
        for _ in 0..BATCH / 2 {
            for write in [false, true] {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                // The high 32 bits times the length: an index without a division.
                let at = ((x >> 32) * words as u64) >> 32;
                if let Some(word) = block.get_mut(at as usize) {
                    if write {
                        *word = x;
                    } else {
                        sum = sum.wrapping_add(*word);
                    }
                }
            }
        }
        black_box(sum);
        count(BATCH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_stays_within_an_eighth_of_memory() {
        const MIB: usize = 1 << 20;
        let gib = 1u64 << 30;
        assert_eq!(default_block(Some(8 * MIB), Some(32 * gib), 2), 64 * MIB);
        assert_eq!(default_block(Some(480 * MIB), Some(32 * gib), 2), 256 * MIB);
        assert_eq!(default_block(Some(480 * MIB), Some(gib), 2), 64 * MIB);
        assert_eq!(default_block(None, Some(gib / 4), 4), 8 * MIB);
        assert_eq!(default_block(None, None, 0), 64 * MIB);
        assert_eq!(default_block(None, Some(0), 4), MIB);
    }
}
