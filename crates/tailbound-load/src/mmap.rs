// SPDX-License-Identifier: MIT OR Apache-2.0
//! A storm of mappings: map, touch every page, unmap. One process per task; or threads of one
//! process that also change permissions, each of which empties the TLBs of all CPUs the
//! others run on.
//!
//! Context: the tasks are the load; SETUP elsewhere. Units: bytes, pages touched.
//! Not here: the mapping itself (`tailbound_sys::mapping`), memory that stays (`memory`).

use tailbound_core::units;
use tailbound_sys::mapping::Mapping;
use tailbound_sys::{SysError, sched};

use crate::machine;
use crate::options::Mmap as Options;
use crate::spin::Threads;
use crate::storm;
use crate::worker::Load;

/// Long enough that unmapping it takes a kernel without preemption hundreds of µs.
const BLOCK_DEFAULT_BYTES: usize = 64 << 20;

pub(crate) fn start(
    options: &Options,
    note: &mut dyn FnMut(String),
) -> Result<Box<dyn Load>, String> {
    let cpus = sched::affinity(0).map_err(|e| e.to_string())?.len().max(1);
    // A single thread has nobody to shoot at.
    let fewest = if options.shootdown { 2 } else { 1 };
    let tasks = options.tasks.unwrap_or(cpus.max(fewest));
    let bytes = machine::block_bytes(options.size, BLOCK_DEFAULT_BYTES, tasks, note)?;
    let what = if options.shootdown { "threads of one process" } else { "processes" };
    note(format!("{} bytes at a time in each of {tasks} {what}", units::grouped(bytes as u64)));
    if !options.shootdown {
        return storm::start(tasks, |_, count| {
            loop {
                one(bytes, count).map_err(refused)?;
            }
        });
    }
    let threads = Threads::new(tasks)?;
    for slot in 0..tasks {
        threads.spawn(slot, None, move |count| {
            loop {
                one_protected(bytes, count).map_err(refused)?;
            }
        })?;
    }
    Ok(Box::new(threads))
}

fn refused(error: SysError) -> String {
    format!("{error}: write a smaller size= or fewer tasks=")
}

fn one(bytes: usize, count: &dyn Fn(u64)) -> Result<(), SysError> {
    Mapping::new(bytes)?.touch(1, count);
    Ok(())
}

fn one_protected(bytes: usize, count: &dyn Fn(u64)) -> Result<(), SysError> {
    let mut mapping = Mapping::new(bytes)?;
    mapping.touch(1, count);
    for writable in [false, true] {
        mapping.protect(writable)?;
        mapping.touch(2, count);
    }
    Ok(())
}
