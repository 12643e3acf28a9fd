// SPDX-License-Identifier: MIT OR Apache-2.0
//! A storm of mappings: map, touch every page, unmap. One process per task; or threads of one
//! process that also change permissions, each of which empties the TLBs of all CPUs the
//! others run on.
//!
//! Context: the tasks are the load; SETUP elsewhere. Units: bytes, pages touched.
//! Not here: the mapping itself (`tailbound_sys::mapping`), memory that stays (`memory`).

use tailbound_core::units;
use tailbound_sys::mapping::{Access, Mapping};
use tailbound_sys::{SysError, sched};

use crate::error::LoadError;
use crate::failure::Explain;
use crate::kind::{CPUS, LoadKind, Note, Start, Started};
use crate::machine;
use crate::options::Reader;
use crate::spin::Threads;
use crate::storm;

pub(crate) static KIND: LoadKind = LoadKind {
    name: "mmap",
    unit: "pages",
    about: "maps memory, touches every page, unmaps it: page faults and memory management",
    options: &[
        (
            "size",
            "bytes at a time in each task (default 64M, at most an eighth of what is available)",
        ),
        ("tasks", "processes, or threads with shootdown=yes (default: 1 per CPU)"),
        (
            "shootdown",
            "yes: threads of one process, at least 2, that also take write permission away and give it back: TLB shoot-downs (default no)",
        ),
        CPUS,
    ],
    coarse: false,
    command: None,
    prepare: |r| Ok(Start::new(Options::read(r)?, start)),
};

/// Long enough that unmapping it takes a kernel without preemption hundreds of µs.
const BLOCK_DEFAULT_BYTES: usize = 64 << 20;
const SMALLER: &str = "write a smaller size= or fewer tasks=";

/// What is mapped, and whether the others notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    size: Option<usize>,
    tasks: Option<usize>,
    shootdown: bool,
}

impl Options {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        let it = Self {
            size: r.bytes("size")?,
            tasks: r.tasks("tasks")?,
            shootdown: r.yes_no("shootdown")?.unwrap_or(false),
        };
        if it.shootdown && it.tasks == Some(1) {
            let why = "shootdown=yes needs at least 2: a thread alone shoots at nobody";
            return Err(r.bad("tasks", why));
        }
        Ok(it)
    }
}

fn start(options: Options, note: Note<'_>) -> Started {
    let cpus = sched::affinity(0)?.len().max(1);
    // A single thread has nobody to shoot at.
    let fewest = if options.shootdown { 2 } else { 1 };
    let tasks = options.tasks.unwrap_or(cpus.max(fewest));
    let bytes = machine::block_bytes(options.size, BLOCK_DEFAULT_BYTES, tasks, note)?;
    let what = if options.shootdown { "threads of one process" } else { "processes" };
    note(format!("{} bytes at a time in each of {tasks} {what}", units::grouped(bytes as u64)));
    if !options.shootdown {
        return storm::start(tasks, |_, count| {
            loop {
                one(bytes, count).remedy(SMALLER)?;
            }
        });
    }
    let threads = Threads::new(tasks)?;
    for slot in 0..tasks {
        threads.spawn(slot, None, move |count| {
            loop {
                one_protected(bytes, count).remedy(SMALLER)?;
            }
        })?;
    }
    Ok(Box::new(threads))
}

fn one(bytes: usize, count: &dyn Fn(u64)) -> Result<(), SysError> {
    Mapping::new(bytes)?.touch(1, count);
    Ok(())
}

fn one_protected(bytes: usize, count: &dyn Fn(u64)) -> Result<(), SysError> {
    let mut mapping = Mapping::new(bytes)?;
    mapping.touch(1, count);
    for access in [Access::Read, Access::Write] {
        mapping.protect(access)?;
        mapping.touch(2, count);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::read;

    #[test]
    fn options_are_read() {
        let asked = read("mmap:size=4M,tasks=2,shootdown=yes", Options::read);
        assert_eq!(asked, Options { size: Some(4 << 20), tasks: Some(2), shootdown: true });
        let usual = read("mmap", Options::read);
        assert_eq!(usual, Options { size: None, tasks: None, shootdown: false });
    }
}
