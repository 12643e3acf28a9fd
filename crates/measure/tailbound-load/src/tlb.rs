// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walks over more pages than the TLBs hold, a read from each, on every CPU; after each walk
//! the thread takes a permission away and unmaps pages, and the CPUs of all others must forget
//! what they knew.
//!
//! Context: the threads are the load; SETUP elsewhere. Units: bytes, pages walked over.
//! Threads of one process: mappings are shot down where they are shared.
//! Not here: the walk itself (`tailbound_sys::mapping`); faults and unmapping alone (`mmap`).

use tailbound_core::units;
use tailbound_sys::mapping::{Access, Mapping};
use tailbound_sys::{SysError, sched};

use crate::error::LoadError;
use crate::failure::{Explain, Failure};
use crate::kind::{CPUS, LoadKind, Note, Start, Started};
use crate::machine;
use crate::options::Reader;
use crate::spin::Threads;

pub(crate) static KIND: LoadKind = LoadKind {
    name: "tlb",
    unit: "pages",
    about: "walks over more pages than TLBs hold, beside threads that change mappings: page walks, shoot-downs",
    options: &[
        (
            "size",
            "bytes each thread walks over (default 64M, at most an eighth of what is available)",
        ),
        (
            "shootdown",
            "no: walks alone (default yes: after each walk pages lose a permission, and are unmapped)",
        ),
        CPUS,
    ],
    coarse: false,
    command: None,
    prepare: |r| Ok(Start::new(Options::read(r)?, start)),
};

/// 16,384 pages of 4 KiB: ten times the second level of a large core.
const SIZE_DEFAULT_BYTES: usize = 64 << 20;
/// What is protected and unmapped after each walk.
const SHOT_BYTES: usize = 256 << 10;

/// What is walked over, and whether it is shot at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    size: Option<usize>,
    shootdown: Option<bool>,
}

impl Options {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        Ok(Self { size: r.bytes("size")?, shootdown: r.yes_no("shootdown")? })
    }
}

fn start(options: Options, note: Note<'_>) -> Started {
    let cpus = sched::affinity(0)?;
    if options.shootdown == Some(true) && cpus.len() < 2 {
        let why = "a CPU alone shoots at nobody";
        return Err(Failure::TooFewCpus { option: "shootdown=yes", why });
    }
    let after_walk = match options.shootdown.unwrap_or(cpus.len() > 1) {
        true => AfterWalk::Shootdown,
        false => AfterWalk::NextWalk,
    };
    let bytes = machine::block_bytes(options.size, SIZE_DEFAULT_BYTES, cpus.len(), note)?;
    note(format!(
        "{} bytes under each of {} threads, {}",
        units::grouped(bytes as u64),
        cpus.len(),
        match after_walk {
            AfterWalk::Shootdown => "with shoot-downs",
            AfterWalk::NextWalk => "without shoot-downs",
        }
    ));
    let threads = Threads::new(cpus.len())?;
    for (slot, cpu) in cpus.into_iter().enumerate() {
        threads.spawn(slot, Some(cpu), move |count| {
            walk(bytes, after_walk, count).remedy("write a smaller size=")
        })?;
    }
    Ok(Box::new(threads))
}

/// What a thread does after each walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterWalk {
    NextWalk,
    /// Pages lose a permission, and are unmapped.
    Shootdown,
}

fn walk(bytes: usize, after: AfterWalk, count: &dyn Fn(u64)) -> Result<(), SysError> {
    let mut mapping = Mapping::new(bytes)?;
    // Written: pages only read would all be the one page of zeros.
    mapping.touch(1, &|_| {});
    loop {
        mapping.walk(count);
        if after == AfterWalk::Shootdown {
            let mut shot = Mapping::new(SHOT_BYTES)?;
            shot.touch(1, &|_| {});
            shot.protect(Access::Read)?;
            shot.walk(&|_| {});
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::read;

    #[test]
    fn options_are_read() {
        let asked = read("tlb:size=4M,shootdown=no", Options::read);
        assert_eq!(asked, Options { size: Some(4 << 20), shootdown: Some(false) });
        assert_eq!(read("tlb", Options::read), Options { size: None, shootdown: None });
    }
}
