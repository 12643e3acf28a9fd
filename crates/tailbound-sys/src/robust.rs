// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lock with inheritance in memory that processes share, of which the kernel takes care when
//! its owner ends without releasing it.
//!
//! Context: SETUP in `register`, HOT in the lock itself (`futex`). Units: ns.
//! The kernel walks a thread's list of robust locks at its end and acts only on those whose word
//! holds the thread's id: the one lock can stay on the list for good, owned or not.
//! Source: set_robust_list(2), robust-futexes.txt of the kernel.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering};

use crate::error::{SysError, check};
use crate::mem::Zeroed;

/// Marks a lock with inheritance in the list.
const WITH_INHERITANCE: usize = 1;

/// What the holder of a lock and those who want it share.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Shelf {
    /// The list's next entry: an address in the holder's process.
    next: AtomicUsize,
    /// The lock.
    pub lock: AtomicU32,
    /// Rung to let the holder take it.
    pub turn: AtomicU32,
    /// Rung by the holder when it has it.
    pub told: AtomicU32,
    /// The holder is to end with the lock in its hands.
    pub die: AtomicU32,
    /// When the urgent task asked for it; 0: not yet.
    pub asked_ns: AtomicI64,
    /// The holder's first instruction after that.
    pub boosted_ns: AtomicI64,
    /// The holder's last instruction with the lock.
    pub released_ns: AtomicI64,
}

// SAFETY: a struct of atomic integers.
unsafe impl Zeroed for Shelf {}

/// struct robust_list_head.
#[repr(C)]
struct Head {
    next: usize,
    offset: isize,
    pending: usize,
}

/// Tells the kernel that the calling thread may own the lock of `shelf`. The thread can have no
/// robust lock of the C library any more; the few bytes of the list are never freed, because the
/// kernel reads them at the thread's end.
///
/// # Errors
/// ENOSYS on kernels without robust futexes.
pub fn register(shelf: &Shelf) -> Result<(), SysError> {
    let offset = isize::try_from(std::mem::offset_of!(Shelf, lock)).unwrap_or(0);
    let entry = std::ptr::from_ref(shelf).addr() | WITH_INHERITANCE;
    let head = Box::leak(Box::new(Head { next: entry, offset, pending: 0 }));
    shelf.next.store(std::ptr::from_ref(head).addr(), Ordering::Relaxed);
    // SAFETY: set_robust_list(2) keeps the address of a list that lives for ever.
    let done = unsafe {
        libc::syscall(libc::SYS_set_robust_list, std::ptr::from_ref(head), size_of::<Head>())
    };
    check(done, "set_robust_list", "").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::futex::{self, Locked, Scope};
    use crate::sched::gettid;
    use std::sync::Arc;

    #[test]
    fn the_next_owner_learns_of_the_death_though_nobody_waited() {
        let shelf = Arc::new(Shelf::default());
        let own = Arc::clone(&shelf);
        let owner = std::thread::spawn(move || {
            register(&own).expect("robust futexes");
            futex::lock_pi(&own.lock, gettid(), Scope::Shared)
        });
        assert_eq!(owner.join().expect("it ends"), Locked::Got);
        let tid = gettid();
        while shelf.lock.load(Ordering::Relaxed) & futex::OWNER_DIED == 0 {
            std::thread::yield_now();
        }
        assert_eq!(futex::lock_pi(&shelf.lock, tid, Scope::Shared), Locked::OwnerDied);
        assert_eq!(futex::unlock_pi(&shelf.lock, tid, Scope::Shared), Ok(()));
    }
}
