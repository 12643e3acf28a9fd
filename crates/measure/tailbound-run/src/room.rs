// SPDX-License-Identifier: MIT OR Apache-2.0
//! Room for a run file: looked at for the whole plan, taken for the next minutes.
//!
//! Context: SETUP and COLD. Units: bytes.
//! Room for all of a long run would be taken from everybody else for days (on tmpfs: from memory),
//! and a kill would leave it taken. So the start checks that the whole would fit and leaves others a
//! margin, takes room for a look ahead and for the records of the end, and the supervisor takes more in
//! time. What a kill leaves taken is that little; it goes with the file, or when the file is replaced.
//! Source: fallocate(2) with `FALLOC_FL_KEEP_SIZE`, statvfs(3), proc_meminfo(5).

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tailbound_core::plan::Plan;
use tailbound_sys::file::reserve;
use tailbound_sys::scratch;

/// Seconds for which room is taken ahead; half of it is the least there is while a run goes on.
const AHEAD_S: u64 = 600;
/// Most that is taken in one step beside the records of the end.
const STEP_MAX: u64 = 16 << 20;
/// Left for others on a disk: a twentieth of it, at most so much.
const MARGIN_PART: u64 = 20;
const MARGIN_MAX: u64 = 256 << 20;
/// Left for others of the memory that is available, where the file lies in memory: a quarter.
const MEMORY_PART: u64 = 4;

/// What a plan's run file will hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Estimate {
    /// Header, histograms, ends: written whatever happens.
    ends: u64,
    /// For each second of the schedule.
    per_s: u64,
    seconds: u64,
}

impl Estimate {
    /// About what `plan` will write: header and ends, a line a second and thread, raw samples.
    pub(crate) fn of(plan: &Plan) -> Self {
        let threads = plan.tasks.map_or(plan.cpus.len().max(1) as u64, u64::from);
        let seconds = u64::try_from(plan.duration_ns() / 1_000_000_000).unwrap_or(0);
        let raw = if plan.raw { plan.activations.saturating_mul(4) } else { 0 };
        Self {
            ends: (128u64 << 10).saturating_add(threads.saturating_mul(512 << 10)),
            per_s: threads.saturating_mul((raw / seconds.max(1)).saturating_add(460)),
            seconds: seconds.max(u64::from(raw > 0)),
        }
    }

    pub(crate) fn total(self) -> u64 {
        self.ends.saturating_add(self.per_s.saturating_mul(self.seconds))
    }

    fn step(self) -> u64 {
        self.per_s.saturating_mul(AHEAD_S.min(self.seconds)).min(STEP_MAX)
    }
}

/// Why a file's room cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum NoRoom {
    /// The file system has too little.
    #[error(
        "disk full: {free_mib} MiB free, {need_mib} MiB needed, plus {margin_mib} MiB left for others"
    )]
    Disk {
        /// What is free.
        free_mib: u64,
        /// What the run needs.
        need_mib: u64,
        /// What is left for others.
        margin_mib: u64,
    },
    /// The memory has too little.
    #[error(
        "the folder lies in memory: {available_mib} MiB available, of which a quarter is left for others, {need_mib} MiB needed"
    )]
    Memory {
        /// What is available.
        available_mib: u64,
        /// What the run needs.
        need_mib: u64,
    },
    /// It was refused.
    #[error(transparent)]
    Refused(#[from] io::Error),
}

/// Room taken for one file.
#[derive(Debug)]
pub(crate) struct Room {
    file: File,
    estimate: Estimate,
    taken: u64,
    refused: bool,
}

impl Room {
    /// Checks that all of `plan` would fit into the folder of `path`, and takes the first step for `file`.
    ///
    /// # Errors
    /// What is missing, for a person.
    pub(crate) fn take(file: &File, path: &Path, plan: &Plan) -> Result<Self, NoRoom> {
        let estimate = Estimate::of(plan);
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // A file that will be replaced gives back what it has.
        let old = path.symlink_metadata().map_or(0, |m| m.blocks().saturating_mul(512));
        fits(estimate.total(), old, &Free::of(folder))?;
        let file = file.try_clone()?;
        let mut room = Self { file, estimate, taken: 0, refused: false };
        room.grow(0)?;
        Ok(room)
    }

    /// Takes more where less than half a step is left; says once that there is no more.
    pub(crate) fn top_up(&mut self) -> Option<String> {
        let written = self.file.metadata().ok()?.len();
        let least =
            written.saturating_add(self.estimate.ends).saturating_add(self.estimate.step() / 2);
        if self.taken >= least || self.refused {
            return None;
        }
        let e = self.grow(written).err()?;
        self.refused = true;
        Some(format!(
            "no more space can be reserved for the run file ({e}): the reserved space lasts for about {}; after that the file grows as long as there is free space",
            tailbound_core::units::format_span(self.lasts_ns(written))
        ))
    }

    fn grow(&mut self, written: u64) -> io::Result<()> {
        let to = written.saturating_add(self.estimate.ends).saturating_add(self.estimate.step());
        reserve(&self.file, to).map_err(|e| io::Error::from_raw_os_error(e.errno))?;
        self.taken = to;
        Ok(())
    }

    fn lasts_ns(&self, written: u64) -> i64 {
        let left = self.taken.saturating_sub(written).saturating_sub(self.estimate.ends);
        let seconds = left / self.estimate.per_s.max(1);
        i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000_000)
    }

    /// Gives back what was taken and not used.
    pub(crate) fn give_back(self) -> io::Result<()> {
        self.file.set_len(self.file.metadata()?.len())
    }
}

/// What a folder has for everybody; `None`: not known, or without a limit.
#[derive(Debug, Default)]
struct Free {
    /// Free for this user, and the whole file system.
    disk: Option<(u64, u64)>,
    /// Available memory, where the folder lies in memory.
    memory: Option<u64>,
}

impl Free {
    fn of(folder: &Path) -> Self {
        let in_memory = scratch::in_memory(folder).unwrap_or(false);
        Self {
            disk: scratch::free_and_whole_bytes(folder).ok().flatten(),
            memory: in_memory.then(tailbound_load::available_bytes).flatten(),
        }
    }
}

/// Do `bytes` fit, with what the old file gives back, and leave others their margin?
fn fits(bytes: u64, old: u64, free: &Free) -> Result<(), NoRoom> {
    let mib = |n: u64| n.div_ceil(1 << 20);
    if let Some((free, whole)) = free.disk {
        let margin = (whole / MARGIN_PART).min(MARGIN_MAX);
        let free = free.saturating_add(old);
        if free < bytes.saturating_add(margin) {
            let (need_mib, margin_mib) = (mib(bytes), mib(margin));
            return Err(NoRoom::Disk { free_mib: free >> 20, need_mib, margin_mib });
        }
    }
    if let Some(available) = free.memory {
        let available = available.saturating_add(old);
        if available - available / MEMORY_PART < bytes {
            return Err(NoRoom::Memory { available_mib: available >> 20, need_mib: mib(bytes) });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn a_month() -> Estimate {
        Estimate { ends: MIB, per_s: 1600, seconds: 30 * 86_400 }
    }

    #[test]
    fn others_keep_their_margin() {
        let total = a_month().total();
        assert!(total > 3 << 30, "{total}");
        let free = |disk, memory| Free { disk, memory };
        assert!(fits(total, 0, &free(None, None)).is_ok(), "what is not known is no reason");
        assert!(fits(total, 0, &free(Some((total + 256 * MIB, 1 << 40)), None)).is_ok());
        let e = fits(total, 0, &free(Some((total + 255 * MIB, 1 << 40)), None))
            .expect_err("disk")
            .to_string();
        assert!(e.contains("plus 256 MiB left for others"), "{e}");
        assert!(
            fits(total, MIB, &free(Some((total + 255 * MIB, 1 << 40)), None)).is_ok(),
            "replaced"
        );
        assert!(fits(95, 0, &free(Some((100, 100)), None)).is_ok());
        assert!(fits(96, 0, &free(Some((100, 100)), None)).is_err());
        assert!(fits(75, 0, &free(None, Some(100))).is_ok());
        let e = fits(76, 0, &free(Some((1 << 40, 1 << 40)), Some(100)))
            .expect_err("memory")
            .to_string();
        assert!(e.contains("lies in memory"), "{e}");
    }

    #[test]
    fn room_is_taken_in_steps_and_given_back() {
        use std::io::Write as _;
        let mut file = tempfile::tempfile().expect("a file");
        let blocks = |f: &File| f.metadata().expect("a file").blocks() * 512;
        let mut room = Room {
            file: file.try_clone().expect("a second descriptor"),
            estimate: a_month(),
            taken: 0,
            refused: false,
        };
        room.grow(0).expect("room");
        let first = blocks(&file);
        if first == 0 {
            return tailbound_testing::skip("fallocate", "this file system cannot reserve room");
        }
        let step = a_month().step();
        assert!((MIB + step..MIB + step + MIB).contains(&first), "{first}, not gigabytes");
        assert_eq!((room.top_up(), room.taken), (None, MIB + step), "there is enough");
        file.write_all(&vec![b'x'; usize::try_from(step / 2 + 1).expect("small")])
            .expect("written");
        assert_eq!(room.top_up(), None);
        assert_eq!(room.taken, step / 2 + 1 + MIB + step, "the next minutes");
        assert!(blocks(&file) >= room.taken);
        room.give_back().expect("given back");
        assert!(blocks(&file) < step, "{}", blocks(&file));
    }
}
