// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads what a program wrote into the ring.
//!
//! Units: ns. A record of another length or kind is none.

use tailbound_sys::calls;
use tailbound_trace::blame::{BlameNote, BlameNoteKind};
use tailbound_trace::symbols::Symbols;

use super::layout::{FRAMES, OWNER_BYTES, OWNERS, told};
use super::programs::{KIND_LOCK, KIND_SWITCH, KIND_TIMER};

fn bytes<const N: usize>(from: &[u8], at: i16) -> Option<[u8; N]> {
    let at = usize::try_from(at).ok()?;
    from.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// The number of 64 bits at `at`.
pub(super) fn double(from: &[u8], at: i16) -> Option<u64> {
    bytes(from, at).map(u64::from_ne_bytes)
}

fn word(from: &[u8], at: i16) -> Option<u32> {
    bytes(from, at).map(u32::from_ne_bytes)
}

fn name(from: &[u8], at: i16) -> Option<String> {
    let comm: [u8; 16] = bytes(from, at)?;
    let end = comm.iter().position(|b| *b == 0).unwrap_or(comm.len());
    Some(String::from_utf8_lossy(comm.get(..end)?).into_owned())
}

/// One record, with the names of functions; times get `apart_ns` more.
pub(super) fn read(from: &[u8], symbols: &Symbols, apart_ns: i64) -> Option<BlameNote> {
    let kind = match word(from, told::KIND)? {
        KIND_SWITCH => BlameNoteKind::Switch,
        KIND_TIMER => BlameNoteKind::Timer,
        KIND_LOCK => BlameNoteKind::Lock,
        _ => return None,
    };
    let tid = word(from, told::TID)?.cast_signed();
    // The stack of a wait for a lock is the thread's own; the name is of whoever had the CPU when it was over.
    let other = match kind {
        BlameNoteKind::Lock => format!("thread {tid}"),
        _ => format!("{}-{}", name(from, told::COMM)?, word(from, told::OTHER)?.cast_signed()),
    };
    let taken = double(from, told::STACK_BYTES)?.cast_signed();
    let frames = usize::try_from(taken).unwrap_or(0).min(FRAMES * 8) / 8;
    let frame = |i: usize| {
        let address = double(from, told::STACK + i16::try_from(i * 8).ok()?)?;
        symbols.name(address).map(str::to_owned)
    };
    let owner = |i: i16| {
        let at = told::OWNER + i * OWNER_BYTES;
        let pid = word(from, at + 16).filter(|p| *p > 0)?;
        Some(format!("{}-{pid}", name(from, at)?))
    };
    let call = double(from, told::SYSCALL)?.cast_signed();
    let frames: Vec<String> = (0..frames).filter_map(frame).collect();
    // The register has a number of a call only while the thread is in one.
    let in_call = frames.iter().any(|f| f.starts_with("entry_SYSCALL") || f.starts_with("el0_svc"));
    Some(BlameNote {
        kind,
        tid,
        t_ns: i64::try_from(double(from, told::T)?).ok()?.saturating_add(apart_ns),
        latency_ns: i64::try_from(double(from, told::LATENCY)?).unwrap_or(i64::MAX),
        cpu: word(from, told::CPU)?,
        other,
        frames,
        system_call: (in_call && call >= 0).then(|| calls::name(call)),
        owners: (0..OWNERS as i16).map_while(owner).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_with_names_and_a_foreign_one_is_none() {
        let symbols = Symbols::parse("1000 T f\n2000 t g\n");
        let mut raw = vec![0u8; told::BYTES];
        let mut put = |at: i16, value: &[u8]| {
            let at = usize::try_from(at).unwrap();
            raw.get_mut(at..at + value.len()).unwrap().copy_from_slice(value);
        };
        put(told::KIND, &KIND_SWITCH.to_ne_bytes());
        put(told::TID, &7u32.to_ne_bytes());
        put(told::T, &100u64.to_ne_bytes());
        put(told::OTHER, &9u32.to_ne_bytes());
        put(told::COMM, b"cc1\0");
        put(told::SYSCALL, &(-1i64).to_ne_bytes());
        put(told::STACK_BYTES, &16u64.to_ne_bytes());
        put(told::STACK, &0x1004u64.to_ne_bytes());
        put(told::STACK + 8, &0x2004u64.to_ne_bytes());
        put(told::OWNER, b"low\0");
        put(told::OWNER + 16, &3u32.to_ne_bytes());
        let one = read(&raw, &symbols, 5).unwrap();
        assert_eq!((one.kind, one.tid, one.t_ns), (BlameNoteKind::Switch, 7, 105));
        assert_eq!((one.other.as_str(), one.system_call), ("cc1-9", None));
        assert_eq!((one.frames, one.owners), (vec!["f".into(), "g".into()], vec!["low-3".into()]));
        for length in 0..raw.len() {
            let _ = read(raw.get(..length).unwrap(), &symbols, 0);
        }
        *raw.first_mut().unwrap() = 99;
        assert_eq!(read(&raw, &symbols, 0), None);
    }
}
