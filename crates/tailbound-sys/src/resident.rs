// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives the program's own unchanged pages back, for a process that stays for years and was large only while it began.
//!
//! Context: SETUP. Units: bytes. Only private mappings of a file that cannot be written and of which no page was ever changed: what is
//! needed of them again is read from the file, which mostly is in memory anyway. Relocated data has changed pages, and stays.
//! Source: madvise(2), proc_pid_smaps(5).

use std::fs;

use crate::error::{SysError, check};

/// One mapping, as smaps describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    begin: usize,
    end: usize,
}

/// Mappings of files that can be read again as they are.
fn unchanged(smaps: &str) -> Vec<Place> {
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
                (Some(begin), Some(end)) if is_ours && is_file => Some(Place { begin, end }),
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
        assert_eq!(unchanged(SMAPS), [Place { begin: 0x40_0000, end: 0x45_2000 }]);
    }

    #[test]
    fn a_program_goes_on_without_its_pages() {
        let text = vec!["a"; 1000].concat();
        release_program().unwrap();
        assert_eq!(text.chars().filter(|c| *c == 'a').count(), 1000);
    }
}
