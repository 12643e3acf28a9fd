// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU's main loop runs only while the thread of its virtual CPUs waits.
//!
//! A thread of its own beside each counted guest.
//! Why: a virtual CPU that halts says so before what it executed last is added to the count. A main
//! loop that comes by in between moves virtual time on to the next timer from a count that is short by
//! those instructions; they are added behind it, and the guest wakes up that much too late: about 200
//! instructions at one wake-up of 30,000 on an idle host, seen in QEMU 7.2, and so one run of a thousand
//! wake-ups in thirty was another. Two threads cannot be told from outside to exclude each other, but
//! one of them can be made to wait where it waits anyway: at ppoll(2), until the other waits on its
//! condition variable. QEMU asks its main loop to come before that, so nothing is waited for in vain.
//! Source: QEMU softmmu/icount.c (`icount_start_warp_timer`), accel/tcg/tcg-accel-ops-rr.c,
//! util/main-loop.c; seccomp_unotify(2); proc_pid_stat(5); docs/virtual-time.md.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tailbound_sys::error::SysError;
use tailbound_sys::held_calls::{Call, HeldCalls, PendingCall};
use tailbound_sys::process::Pid;

use crate::error::{LabError, QemuError};

/// How often it is looked whether all is over.
const LOOK: Duration = Duration::from_millis(100);
/// How often the virtual CPUs are looked at while the main loop waits for them: for a C library
/// whose condition variables wait by another call.
const LOOK_WAITING: Duration = Duration::from_millis(1);
/// A main loop that has a timer of the host's clock is let go on after this time in any case: virtual
/// CPUs execute nothing once such a timer is due, until it has run. QEMU's last no longer than a second.
const HOST_TIMER: Duration = Duration::from_secs(2);

/// Why the two are not kept in turn.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotInTurn {
    /// The kernel lets no calls be held.
    #[error(transparent)]
    NotHeld(#[from] SysError),
    /// Another QEMU than those known.
    #[error("it waits by a call that is not known")]
    Unseen,
    /// What a thread does cannot be read.
    #[error("{path}: {why}")]
    Unread { path: String, why: std::io::Error },
    /// KVM runs the guest in the host's time.
    #[error("KVM runs the guest")]
    Kvm,
}

/// Keeps the two in turn until dropped, which must not be before QEMU has ended.
#[derive(Debug)]
pub(crate) struct InTurn {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Until it is known, the main loop runs freely.
    virtual_cpus: OnceLock<VirtualCpus>,
    /// Did the main loop ever come to its ppoll(2)?
    seen: AtomicBool,
    /// The main loop runs freely again.
    at_will: AtomicBool,
    over: AtomicBool,
}

/// The thread that executes them.
#[derive(Debug)]
struct VirtualCpus {
    thread: Pid,
    /// `/proc/PID/task/TID/stat`.
    stat: File,
}

impl InTurn {
    /// Begins to let calls go on.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(qemu: Pid, calls: HeldCalls) -> Result<Self, LabError> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("in-turn".to_owned())
            .spawn(move || keep(qemu, &calls, &theirs))
            .map_err(QemuError::Thread)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// From now on it does not.
    pub(crate) fn at_will(&self) {
        self.shared.at_will.store(true, Ordering::Release);
    }

    /// From now on, the main loop of `qemu` runs only while this thread of it waits.
    ///
    /// # Errors
    /// Why the one or the other cannot be seen.
    pub(crate) fn behind(&self, qemu: Pid, thread: Pid) -> Result<(), NotInTurn> {
        if !self.shared.seen.load(Ordering::Acquire) {
            return Err(NotInTurn::Unseen);
        }
        let path = format!("/proc/{qemu}/task/{thread}/stat");
        let stat = File::open(&path).map_err(|why| NotInTurn::Unread { path, why })?;
        let _once = self.shared.virtual_cpus.set(VirtualCpus { thread, stat });
        Ok(())
    }
}

impl Drop for InTurn {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn keep(qemu: Pid, calls: &HeldCalls, shared: &Shared) {
    let mut main_loop: Option<(PendingCall, Instant)> = None;
    while !shared.over.load(Ordering::Acquire) {
        let next = calls.next(if main_loop.is_some() { LOOK_WAITING } else { LOOK });
        let at_will = shared.at_will.load(Ordering::Acquire);
        let virtual_cpus = shared.virtual_cpus.get().filter(|_| !at_will);
        let its_turn = match next {
            Ok(Some(held)) if held.thread == qemu && held.call == Call::Poll => {
                shared.seen.store(true, Ordering::Release);
                main_loop = Some((held, Instant::now()));
                virtual_cpus.is_none_or(VirtualCpus::wait)
            }
            Ok(Some(held)) => {
                calls.go_on(held);
                virtual_cpus.is_some_and(|v| v.thread == held.thread)
            }
            Ok(None) => virtual_cpus.is_none_or(VirtualCpus::wait),
            Err(_ended) => return,
        };
        let due = |(held, since): &mut (PendingCall, Instant)| {
            held.limited && since.elapsed() > HOST_TIMER
        };
        if let Some((held, _)) = main_loop.take_if(|main_loop| its_turn || due(main_loop)) {
            calls.go_on(held);
        }
    }
}

impl VirtualCpus {
    /// Is the thread asleep: neither running nor waiting for a page or a disk?
    fn wait(&self) -> bool {
        let mut text = [0_u8; 128];
        let n = self.stat.read_at(&mut text, 0).unwrap_or(0);
        let text = text.get(..n).unwrap_or_default();
        // The name in brackets may hold anything; its end is the last bracket.
        let end = text.iter().rposition(|b| *b == b')');
        end.and_then(|at| text.get(at + 2)).is_some_and(|state| *state == b'S')
    }
}
