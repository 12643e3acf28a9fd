// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the loops' own halves live, and how a handle finds one.
//!
//! Context: HOT (`with`, `clock`), SETUP (`claim`, `release`).
//! A handle is a number: the slot and how often it was used. It is looked up in a static table
//! and never followed, so that whatever a program passes is either the handle it was given or
//! refused. One thread at a time may be inside a slot; a second one is told so and never waits.
//! Compiled a second time without the standard library by the link probe.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use tailbound_rt::jobs::Jobs;

use crate::codes::{TB_ERR_BUSY, TB_ERR_HANDLE, TB_RECORDERS_MAX};

/// What a handle points to as far as C knows.
#[repr(C)]
#[derive(Debug)]
pub struct tb_recorder {
    _private: [u8; 0],
}

/// Bits of a handle that number the slot, from 1.
const INDEX_BITS: u32 = 8;
const INDEX_MASK: usize = (1 << INDEX_BITS) - 1;

struct Slot {
    /// The handle that is good for this slot; 0: none.
    handle: AtomicUsize,
    /// How often it was used.
    uses: AtomicUsize,
    clock: AtomicI32,
    busy: AtomicBool,
    jobs: UnsafeCell<Option<Jobs<'static>>>,
}

// SAFETY: `jobs` is touched only between winning `busy` and giving it back.
unsafe impl Sync for Slot {}

static SLOTS: [Slot; TB_RECORDERS_MAX] = [const {
    Slot {
        handle: AtomicUsize::new(0),
        uses: AtomicUsize::new(0),
        clock: AtomicI32::new(0),
        busy: AtomicBool::new(false),
        jobs: UnsafeCell::new(None),
    }
}; TB_RECORDERS_MAX];

#[inline]
fn find(handle: usize) -> Option<&'static Slot> {
    let slot = SLOTS.get((handle & INDEX_MASK).wrapping_sub(1))?;
    (slot.handle.load(Ordering::Acquire) == handle).then_some(slot)
}

/// The clock of a loop.
#[inline]
pub(crate) fn clock(handle: usize) -> Option<i32> {
    find(handle).map(|slot| slot.clock.load(Ordering::Relaxed))
}

/// Is this a handle that was given out and not yet closed?
pub(crate) fn is_open(handle: usize) -> bool {
    find(handle).is_some()
}

/// Does `work` with a loop's own half, alone.
#[inline]
pub(crate) fn with(handle: usize, work: impl FnOnce(&mut Jobs<'static>) -> i32) -> i32 {
    let Some(slot) = find(handle) else { return TB_ERR_HANDLE };
    if slot.busy.swap(true, Ordering::Acquire) {
        return TB_ERR_BUSY;
    }
    // It may have been closed between the two looks.
    let status = if slot.handle.load(Ordering::Relaxed) == handle {
        // SAFETY: `busy` was won above: nobody else holds a reference.
        match unsafe { &mut *slot.jobs.get() } {
            Some(jobs) => work(jobs),
            None => TB_ERR_HANDLE,
        }
    } else {
        TB_ERR_HANDLE
    };
    slot.busy.store(false, Ordering::Release);
    status
}

/// Puts `jobs` into a free slot; its handle, or `None` if all are taken. Callers take turns.
pub(crate) fn claim(jobs: Jobs<'static>, clock: i32) -> Option<usize> {
    let free = |(_, slot): &(usize, &Slot)| slot.handle.load(Ordering::Relaxed) == 0;
    let (index, slot) = SLOTS.iter().enumerate().find(free)?;
    if slot.busy.swap(true, Ordering::Acquire) {
        return None;
    }
    let uses = slot.uses.load(Ordering::Relaxed).wrapping_add(1);
    slot.uses.store(uses, Ordering::Relaxed);
    slot.clock.store(clock, Ordering::Relaxed);
    // SAFETY: `busy` was won above: nobody else holds a reference.
    unsafe { *slot.jobs.get() = Some(jobs) };
    let handle = (uses << INDEX_BITS) | index.wrapping_add(1);
    slot.handle.store(handle, Ordering::Release);
    slot.busy.store(false, Ordering::Release);
    Some(handle)
}

/// Empties the slot: from here on the handle is refused, and nobody uses what the loop wrote to.
/// Callers take turns.
pub(crate) fn release(handle: usize) -> i32 {
    let Some(slot) = find(handle) else { return TB_ERR_HANDLE };
    if slot.busy.swap(true, Ordering::Acquire) {
        return TB_ERR_BUSY;
    }
    slot.handle.store(0, Ordering::Release);
    // SAFETY: `busy` was won above: nobody else holds a reference.
    unsafe { *slot.jobs.get() = None };
    slot.busy.store(false, Ordering::Release);
    crate::codes::TB_OK
}
