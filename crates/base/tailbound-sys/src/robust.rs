// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lock with inheritance in memory that processes share, of which the kernel takes care when
//! its owner ends without releasing it.
//!
//! Context: SETUP in `register`, HOT in the lock itself (`futex`). Units: ns.
//! The kernel walks a thread's list of robust locks at its end and acts only on those whose word
//! holds the thread's id: the one lock can stay on the list for good, owned or not. It writes
//! into that word then, whoever has the memory by that time: so what is registered is never
//! unmapped.
//! Source: set_robust_list(2), robust-futexes.txt of the kernel.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering};

use crate::error::{SysError, check};
use crate::mem::Zeroed;
use crate::shared::Shared;

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
    pub reports: AtomicU32,
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

/// Tells the kernel that the calling thread may own the lock of `shelf`, and yields the shelf.
/// The thread can have no robust lock of the C library any more. The few bytes of the list are
/// never freed and the shelf is never unmapped, because the kernel reads the one and writes to the
/// other at the thread's end.
///
/// # Errors
/// ENOSYS on kernels without robust futexes.
pub fn register(shelf: Shared<Shelf>) -> Result<&'static Shelf, SysError> {
    // The addresses are used by the kernel: exposed, so that what it writes there is no surprise
    // to the compiler. The shelf consists of atomic integers, the list's head is never read here.
    let shelf = shelf.leak();
    let offset = isize::try_from(std::mem::offset_of!(Shelf, lock)).unwrap_or(0);
    let entry = std::ptr::from_ref(shelf).expose_provenance() | WITH_INHERITANCE;
    let head: *mut Head = Box::into_raw(Box::new(Head { next: entry, offset, pending: 0 }));
    shelf.next.store(head.expose_provenance(), Ordering::Relaxed);
    // SAFETY: set_robust_list(2) keeps the address of a list that lives for ever, of an entry in
    // memory that does.
    let done = unsafe { libc::syscall(libc::SYS_set_robust_list, head, size_of::<Head>()) };
    check(done, "set_robust_list", "").map(|_| shelf)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::futex::{self, Locked, Scope};
    use crate::sched::gettid;
    use std::os::fd::AsFd;

    #[test]
    fn the_next_owner_learns_of_the_death_though_nobody_waited() {
        let shelf = Shared::<Shelf>::new().expect("memory");
        let fd = shelf.as_fd().try_clone_to_owned().expect("descriptor");
        let owner = std::thread::spawn(move || {
            // Nobody holds the owner's mapping when the kernel writes to it.
            let own = register(Shared::from_fd(fd).expect("memory")).expect("robust futexes");
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
