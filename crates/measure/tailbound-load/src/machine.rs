// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much memory and disk a load may take: the one place where that is decided, and refused.
//!
//! Context: SETUP. Units: bytes.
//! What is asked for is refused where it would leave nobody else anything, with the figures. What
//! nobody asked for is made smaller, and said so where it is much smaller than usual.
//! Not here: what control groups leave (`groups`).
//! Source: proc_meminfo(5), /sys/devices/system/cpu/cpu*/cache, statvfs(3).

use std::fs;
use std::path::Path;

use tailbound_core::units;
use tailbound_sys::scratch;

use crate::failure::Failure;
use crate::groups;
use crate::kind::Note;

/// At most this part of the available memory is taken by default.
const AVAILABLE_PART: u64 = 8;
/// Of what is available or free, a part of this size is left for others, whatever is asked for.
const MARGIN_PART: u64 = 10;
/// ... and at least so much memory.
const MEMORY_MARGIN_BYTES: u64 = 8 << 20;
/// ... and at least so much of a disk.
const DISK_MARGIN_BYTES: u64 = 64 << 20;
/// What a note begins with that a reader of the figures must know of: the load is smaller than
/// usual.
pub(crate) const REDUCED: &str = "reduced: ";

/// What there is of something, and who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    all: u64,
    /// After the margin for others.
    bytes: u64,
    whose: String,
}

impl Room {
    pub(crate) fn new(bytes: u64, margin_least: u64, whose: impl Into<String>) -> Self {
        let margin = (bytes / MARGIN_PART).max(margin_least);
        Self { all: bytes, bytes: bytes.saturating_sub(margin), whose: whose.into() }
    }

    /// Memory that can be had without pushing anyone out: of the machine, or what is left in the
    /// control group where that is less. `None`: not known.
    pub(crate) fn memory() -> Option<Self> {
        let meminfo = fs::read_to_string("/proc/meminfo").ok();
        let machine = meminfo.as_deref().and_then(mem_available);
        let machine = machine.map(|bytes| (bytes, "this machine".to_owned()));
        let (bytes, whose) = [machine, groups::memory_left(Path::new("/"))]
            .into_iter()
            .flatten()
            .min_by_key(|(bytes, _)| *bytes)?;
        Some(Self::new(bytes, MEMORY_MARGIN_BYTES, whose))
    }

    /// What may be written in a folder. `None`: its file system has no limit of its own.
    pub(crate) fn disk(dir: &Path) -> Result<Option<Self>, Failure> {
        let free = scratch::free_bytes(dir)?;
        Ok(free.map(|free| Self::new(free, DISK_MARGIN_BYTES, dir.display().to_string())))
    }

    /// Is `wanted` more than there is? Then `what` it is, is refused with the figures.
    pub(crate) fn refuse(
        &self,
        wanted: u64,
        what: &str,
        instead: &'static str,
    ) -> Result<(), Failure> {
        if wanted <= self.bytes {
            return Ok(());
        }
        Err(Failure::NoRoom {
            what: what.to_owned(),
            wanted_bytes: wanted,
            left_bytes: self.bytes,
            whose: self.whose.clone(),
            instead,
        })
    }

    /// One part in `of`.
    pub(crate) fn part(&self, of: u64) -> u64 {
        self.all / of.max(1)
    }

    /// Said of a load that was made smaller.
    pub(crate) fn reduced(&self, is: &str, usual: &str) -> String {
        format!(
            "{REDUCED}{is} instead of {usual}: {} bytes are to be had of {}",
            units::grouped(self.bytes),
            self.whose
        )
    }
}

/// What each of `tasks` may take of the memory: `asked`, or `usual` where nothing was asked for,
/// but together no more than an eighth of what is available.
///
/// # Errors
/// What was asked for is more than is available.
pub(crate) fn block_bytes(
    asked: Option<usize>,
    usual: usize,
    tasks: usize,
    note: Note<'_>,
) -> Result<usize, Failure> {
    share(asked, usual, tasks.max(1), Room::memory().as_ref(), note)
}

fn share(
    asked: Option<usize>,
    usual: usize,
    tasks: usize,
    room: Option<&Room>,
    note: Note<'_>,
) -> Result<usize, Failure> {
    let Some(room) = room else { return Ok(asked.unwrap_or(usual)) };
    if let Some(bytes) = asked {
        let wanted = u64::try_from(bytes.saturating_mul(tasks)).unwrap_or(u64::MAX);
        let what = format!("{tasks} tasks of {} bytes", units::grouped(bytes as u64));
        let instead = "write a smaller size= (of `memory`: block=) or fewer tasks=";
        return room.refuse(wanted, &what, instead).map(|()| bytes);
    }
    let part = usize::try_from(room.part(AVAILABLE_PART)).unwrap_or(usize::MAX) / tasks;
    // Whole pages of any machine, and never nothing.
    let bytes = (usual.min(part) & !0xffff).max(0x1_0000);
    if bytes < usual / 2 {
        let of = |n: usize| format!("{} bytes", units::grouped(n as u64));
        note(room.reduced(&format!("{} in each of {tasks} tasks", of(bytes)), &of(usual)));
    }
    Ok(bytes)
}

/// Size of the largest cache of CPU 0, if the kernel tells.
pub(crate) fn last_cache_bytes() -> Option<usize> {
    (0..8)
        .filter_map(|i| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{i}/size");
            cache_size(fs::read_to_string(path).ok()?.trim())
        })
        .max()
}

fn cache_size(text: &str) -> Option<usize> {
    let kib = text.strip_suffix('K').map(|n| (n, 1 << 10));
    let (number, factor) = kib.or_else(|| text.strip_suffix('M').map(|n| (n, 1 << 20)))?;
    number.parse::<usize>().ok()?.checked_mul(factor)
}

/// Memory that can be had without pushing anyone out: MemAvailable, or what is left in
/// the control group if that is less.
#[must_use]
pub fn available_bytes() -> Option<u64> {
    Room::memory().map(|room| room.all)
}

fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_is_modest_and_a_wish_is_checked() {
        const MIB: usize = 1 << 20;
        let mut said = Vec::new();
        let room = |bytes: u64| Room::new(bytes, 0, "this machine");
        let mut share = |asked, usual, tasks, bytes: u64| {
            super::share(asked, usual, tasks, Some(&room(bytes)), &mut |text| said.push(text))
        };
        assert_eq!(share(None, 64 * MIB, 2, 32 << 30).ok(), Some(64 * MIB));
        assert_eq!(share(None, 48 * MIB, 2, 640 << 20).ok(), Some(40 * MIB));
        assert_eq!(share(Some(5000), 64 * MIB, 2, 1 << 20).ok(), Some(5000));
        assert_eq!(share(Some(MIB), MIB, 9, 10 << 20).ok(), Some(MIB));
        let refused = share(Some(MIB), MIB, 10, 10 << 20).unwrap_err().to_string();
        let figures = ["10 tasks", "10,485,760 bytes", "9,437,184", "this machine", "size="];
        assert!(figures.iter().all(|f| refused.contains(f)), "{refused}");
        assert_eq!(share(None, 64 * MIB, 2, 64 << 20).ok(), Some(4 * MIB));
        assert_eq!(share(None, 64 * MIB, 2, 0).ok(), Some(1 << 16));
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said.iter().all(|s| s.starts_with(REDUCED) && s.contains("67,108,864")));
    }

    #[test]
    fn a_margin_is_left_to_others() {
        assert_eq!(Room::new(100 << 30, DISK_MARGIN_BYTES, "").bytes, 90 << 30);
        assert_eq!(Room::new(100 << 20, DISK_MARGIN_BYTES, "").bytes, 36 << 20);
        let full = Room::new(1 << 20, DISK_MARGIN_BYTES, "/var/tmp");
        let refused = full.refuse(4096, "2 files", "choose another path=").unwrap_err().to_string();
        assert!(refused.contains("more than the 0 that /var/tmp has"), "{refused}");
    }

    #[test]
    fn sizes_of_the_kernel() {
        assert_eq!(cache_size("32K"), Some(32 << 10));
        assert_eq!(cache_size("12M"), Some(12 << 20));
        assert_eq!(cache_size("?"), None);
        assert_eq!(mem_available("MemFree: 1 kB\nMemAvailable:   2 kB\n"), Some(2048));
        assert_eq!(mem_available("MemFree: 1 kB\n"), None);
    }
}
