// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which code of the kernel a run executed: what QEMU translated, as it translates each block before it executes it.
//!
//! Units: bytes, addresses of the guest. A QEMU begins with nothing translated, also where it goes on from
//! a snapshot, so that what a log has is of its own run. Seldom something else is served between the two, so that a
//! block was translated and not executed. Only a log of [`crate::plan::Plan::with_code`] knows of it.

use std::io::{Read, Seek, SeekFrom};

use crate::log::{Log, LogError};
use crate::record::{self, kind};

/// From where to where code was executed: each range once, in the order of the addresses. Ranges may lie over each other:
/// a block also begins where the run was interrupted within one.
///
/// # Errors
/// [`LogError`]
pub fn code(log: &mut (impl Read + Seek)) -> Result<Vec<(u64, u64)>, LogError> {
    log.seek(SeekFrom::Start(0))?;
    let mut all = Vec::new();
    Log::open(&mut *log)?.each(|r| {
        if r.kind == kind::CODE {
            let (begin, bytes) = record::code::place(r.value);
            all.push((begin, begin.saturating_add(bytes)));
        }
    })?;
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::log::tests::made;

    #[test]
    fn ranges_are_told_once_with_their_whole_address() {
        let of = |at, bytes| (7, kind::CODE, 0, record::code::value(at, bytes));
        let records = [
            of(0xffff_ffff_8100_0010, 0x20),
            (9, kind::STATE, 1, 5),
            of(0xffff_ffff_8100_0000, 3),
            of(0xffff_ffff_8100_0010, 0x20),
            of(0xffff_8000_0810_0000, 4),
        ];
        let all = super::code(&mut Cursor::new(made(&records))).unwrap();
        let wanted = [
            (0xffff_8000_0810_0000, 0xffff_8000_0810_0004),
            (0xffff_ffff_8100_0000, 0xffff_ffff_8100_0003),
            (0xffff_ffff_8100_0010, 0xffff_ffff_8100_0030),
        ];
        assert_eq!(all, wanted);
    }
}
