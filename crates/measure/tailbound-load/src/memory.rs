// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random reads and writes over more memory than the last cache holds, one thread per CPU.
//!
//! Context: the threads are the load; SETUP elsewhere. Units: bytes, accesses.
//! Not here: how much memory there is (`machine`).

use std::hint::black_box;
use std::io;

use tailbound_core::units;
use tailbound_sys::sched;

use crate::error::LoadError;
use crate::failure::{Explain, Failure};
use crate::kind::{CPUS, LoadKind, Note, Start, Started};
use crate::machine;
use crate::options::Reader;
use crate::spin::Threads;

pub(crate) static KIND: LoadKind = LoadKind {
    name: "memory",
    unit: "accesses",
    about: "random reads and writes beyond the last cache, one thread per CPU",
    options: &[
        ("block", "bytes each thread uses, for example 64M (default: beyond the last cache)"),
        CPUS,
    ],
    coarse: false,
    command: None,
    prepare: |r| Ok(Start::new(Options::read(r)?, start)),
};

/// Default of each thread when the caches are unknown or small.
const BLOCK_MIN_BYTES: usize = 64 << 20;
/// Beyond this a block takes long to fill and misses no more: hypervisors report caches of
/// hundreds of megabytes that a guest has no share of.
const BLOCK_DEFAULT_MAX_BYTES: usize = 256 << 20;
/// Together the threads' blocks are this many times the last cache.
const CACHES: usize = 4;
/// The largest block: 32 random bits choose a word.
const BLOCK_MAX_WORDS: usize = u32::MAX as usize;
/// Accesses between two additions to the count.
const BATCH: u64 = 1024;

/// How much memory each thread uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    block: Option<usize>,
}

impl Options {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        Ok(Self { block: r.bytes("block")? })
    }
}

fn start(Options { block }: Options, note: Note<'_>) -> Started {
    let cpus = sched::affinity(0)?;
    if block.is_some_and(|bytes| bytes / size_of::<u64>() > BLOCK_MAX_WORDS) {
        let why = Failure::Plain("a block of more than 32 GiB is not supported");
        return Err(why.remedy("write a smaller block="));
    }
    let usual = usual_block(machine::last_cache_bytes(), cpus.len());
    let bytes = machine::block_bytes(block, usual, cpus.len(), note)?;
    note(format!("{} bytes in each of {} threads", units::grouped(bytes as u64), cpus.len()));
    let threads = Threads::new(cpus.len())?;
    for (slot, cpu) in cpus.into_iter().enumerate() {
        threads.spawn(slot, Some(cpu), move |count| wander(bytes, slot as u64, count))?;
    }
    Ok(Box::new(threads))
}

/// Four times the last cache shared out, 64 to 256 MiB each.
fn usual_block(cache: Option<usize>, threads: usize) -> usize {
    let wanted = cache.unwrap_or(0).saturating_mul(CACHES) / threads.max(1);
    wanted.clamp(BLOCK_MIN_BYTES, BLOCK_DEFAULT_MAX_BYTES)
}

/// Every second access is a write. Addresses do not depend on what was read: many are
/// under way at once, as in real programs.
fn wander(bytes: usize, seed: u64, count: &dyn Fn(u64)) -> Result<(), Failure> {
    let words = (bytes / size_of::<u64>()).min(BLOCK_MAX_WORDS);
    let mut block: Vec<u64> = Vec::new();
    let reserved = block.try_reserve_exact(words).map_err(io::Error::from);
    reserved.on(format_args!("{bytes} bytes"))?;
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
    use crate::options::read;

    #[test]
    fn options_are_read() {
        assert_eq!(read("memory:block=2M", Options::read), Options { block: Some(2 << 20) });
        assert_eq!(read("memory", Options::read), Options { block: None });
    }

    #[test]
    fn the_blocks_are_several_times_the_cache_within_reason() {
        const MIB: usize = 1 << 20;
        assert_eq!(usual_block(Some(8 * MIB), 2), 64 * MIB);
        assert_eq!(usual_block(Some(40 * MIB), 2), 80 * MIB);
        assert_eq!(usual_block(Some(480 * MIB), 2), 256 * MIB);
        assert_eq!(usual_block(None, 0), 64 * MIB);
    }
}
