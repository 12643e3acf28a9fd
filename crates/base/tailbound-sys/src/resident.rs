// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives the program's own unchanged pages back, for a process that stays for years and was large only while it began.
//!
//! Context: SETUP. Units: bytes. Only private mappings of a file that cannot be written and of which no page was ever changed: what is
//! needed of them again is read from the file, which mostly is in memory anyway. Relocated data has changed pages, and stays.
//! [`release_program`] asks the kernel which pages were changed; [`release_code`] does not, and also gives back what is locked.
//! Source: madvise(2) (MADV_DONTNEED_LOCKED: Linux 5.18), proc_pid_smaps(5), dl_iterate_phdr(3), elf(5).

use std::ffi::{c_int, c_void};
use std::fs;

use crate::error::{SysError, check};
use crate::mapping::page_bytes;

/// One mapping, as smaps describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AddressRange {
    begin: usize,
    end: usize,
}

/// Mappings of files that can be read again as they are.
fn unchanged(smaps: &str) -> Vec<AddressRange> {
    let mut places = Vec::new();
    let mut last = None;
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        if let Some((begin, end)) = first.split_once('-') {
            let address = |hex| usize::from_str_radix(hex, 16).ok();
            let is_ours = words.next().is_some_and(|p| matches!(p, "r-xp" | "r--p"));
            // Offset, device, inode, path.
            let is_file = words.nth(2).is_some_and(|inode| inode != "0")
                && words.next().is_some_and(|path| path.starts_with('/'));
            last = match (address(begin), address(end)) {
                (Some(begin), Some(end)) if is_ours && is_file => Some(AddressRange { begin, end }),
                _ => None,
            };
        } else if first == "Anonymous:" && words.next() == Some("0") {
            places.extend(last.take());
        }
    }
    places
}

/// Gives them back. What is used again comes back by itself.
///
/// # Errors
/// The kernel's description cannot be read (no CONFIG_PROC_PAGE_MONITOR), or refuses.
pub fn release_program() -> Result<(), SysError> {
    let smaps = fs::read_to_string("/proc/self/smaps")
        .map_err(|e| SysError::code("read", "/proc/self/smaps", e.raw_os_error().unwrap_or(0)))?;
    for place in unchanged(&smaps) {
        let bytes = place.end.saturating_sub(place.begin);
        let at = std::ptr::with_exposed_provenance_mut(place.begin);
        // SAFETY: a private mapping of a file, which nobody can write and nobody has changed: the pages that come back are the same.
        let done = unsafe { libc::madvise(at, bytes, libc::MADV_DONTNEED) };
        check(done, "madvise", "MADV_DONTNEED")?;
    }
    Ok(())
}

/// Gives back the program's code and constants, without those of libraries. For a process that is about to measure: what it took to
/// read the command line is not needed again. Threads that run fetch what is theirs again. A breakpoint that a debugger has set is lost.
///
/// # Errors
/// The kernel refuses: the memory is locked, and Linux older than 5.18.
pub fn release_code() -> Result<(), SysError> {
    let mut refused = None;
    let data = std::ptr::from_mut(&mut refused).cast::<c_void>();
    // SAFETY: the callback has the right type, and what `data` points to lives until the call returns.
    unsafe { libc::dl_iterate_phdr(Some(release_unwritten), data) };
    refused.map_or(Ok(()), Err)
}

/// Gives back what the first thread's stack needed once and does not need now; of another thread nothing.
///
/// # Errors
/// The kernel's list of mappings cannot be read, or it refuses: the memory is locked, and Linux older than 5.18.
pub fn release_stack() -> Result<(), SysError> {
    const MAPS: &str = "/proc/self/maps";
    let maps = fs::read_to_string(MAPS)
        .map_err(|e| SysError::code("read", MAPS, e.raw_os_error().unwrap_or(0)))?;
    let mark = 0_u8;
    let here = std::ptr::from_ref(&mark).addr();
    let Some(stack) = stack_around(&maps, here) else { return Ok(()) };
    let page = page_bytes();
    let end = here.saturating_sub(STACK_KEPT) / page * page;
    let place = std::ptr::with_exposed_provenance_mut(stack.begin);
    // SAFETY: of the calling thread's own stack what lies below all its frames, and below what those of this function's callees take.
    unsafe { give_back(place, end.saturating_sub(stack.begin)) }
}

/// Below the frame that asks: what it calls, and signal handlers.
const STACK_KEPT: usize = 64 << 10;

/// The first thread's stack, if `address` lies in it.
fn stack_around(maps: &str, address: usize) -> Option<AddressRange> {
    let line = maps.lines().find(|line| line.ends_with("[stack]"))?;
    let (begin, end) = line.split_whitespace().next()?.split_once('-')?;
    let number = |hex| usize::from_str_radix(hex, 16).ok();
    let stack = AddressRange { begin: number(begin)?, end: number(end)? };
    (stack.begin..stack.end).contains(&address).then_some(stack)
}

/// # Safety
/// Pages that come back as they are needed: of a file, or nobody's any more.
unsafe fn give_back(place: *mut c_void, bytes: usize) -> Result<(), SysError> {
    const DONTNEED_LOCKED: c_int = 24;
    // SAFETY: the caller's promise.
    let advise = |how| unsafe { libc::madvise(place, bytes, how) };
    let done = [libc::MADV_DONTNEED, DONTNEED_LOCKED].into_iter().map(advise).find(|d| *d == 0);
    check(done.unwrap_or(-1), "madvise", "MADV_DONTNEED_LOCKED").map(drop)
}

/// The program is the first object that is listed, and the last one looked at.
///
/// # Safety
/// To be called by dl_iterate_phdr(3), with an `Option<SysError>` behind `data`.
unsafe extern "C" fn release_unwritten(
    object: *mut libc::dl_phdr_info,
    _bytes: usize,
    data: *mut c_void,
) -> c_int {
    const LAST: c_int = 1;
    // SAFETY: dl_iterate_phdr(3) hands over an object and its program headers, which stay where they are during the call.
    let (begin, headers) = unsafe {
        let object = &*object;
        (object.dlpi_addr, std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()))
    };
    let page = page_bytes();
    for part in headers.iter().filter(|h| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_W == 0)
    {
        let at = |address| usize::try_from(address).unwrap_or(0);
        let from = at(begin.wrapping_add(part.p_vaddr)) / page * page;
        let to = at(begin.wrapping_add(part.p_vaddr).wrapping_add(part.p_memsz));
        let place = std::ptr::with_exposed_provenance_mut(from);
        // SAFETY: a part of the program that is never written: what is needed again is read from its file, and is the same.
        if let Err(e) = unsafe { give_back(place, to.saturating_sub(from)) } {
            // SAFETY: the caller's promise.
            unsafe { *data.cast::<Option<SysError>>() = Some(e) };
        }
    }
    LAST
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/tailbound
Size:                328 kB
Anonymous:             0 kB
00651000-00652000 r--p 00051000 08:02 173521 /usr/bin/tailbound
Anonymous:             4 kB
00652000-00655000 rw-p 00052000 08:02 173521 /usr/bin/tailbound
Anonymous:             0 kB
00e03000-00e24000 rw-p 00000000 00:00 0 [heap]
Anonymous:             0 kB
7ffd1000-7ffd3000 r-xp 00000000 00:00 0 [vdso]
Anonymous:             0 kB
";

    #[test]
    fn only_what_nobody_changed_is_given_back() {
        assert_eq!(unchanged(SMAPS), [AddressRange { begin: 0x40_0000, end: 0x45_2000 }]);
    }

    #[test]
    fn of_the_stack_the_part_below_its_frames_is_given_back() {
        let maps = "00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/tailbound\n\
            7ffd00000000-7ffd00100000 rw-p 00000000 00:00 0          [stack]\n";
        let stack = AddressRange { begin: 0x7ffd_0000_0000, end: 0x7ffd_0010_0000 };
        assert_eq!(stack_around(maps, 0x7ffd_000f_0000), Some(stack));
        assert_eq!(stack_around(maps, 0x40_0100), None);
        let text = vec!["a"; 1000].concat();
        release_stack().unwrap();
        assert_eq!(text.len(), 1000);
    }

    #[test]
    fn a_program_goes_on_without_its_pages() {
        let text = vec!["a"; 1000].concat();
        release_program().unwrap();
        release_code().unwrap();
        assert_eq!(text.chars().filter(|c| *c == 'a').count(), 1000);
    }
}
