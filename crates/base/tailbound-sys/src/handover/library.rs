// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hand-over by objects of the C library: condition variable, semaphore, barrier.
//!
//! Context: HOT (the ends), SETUP (`make`). What is measured is the library this program is
//! linked with (musl where it is static) and the futexes below it. The objects lie in the
//! channel's words, shared between processes where asked for.
//! Source: pthread_cond_broadcast(3p), sem_post(3), pthread_barrier_wait(3p).

use std::sync::atomic::Ordering;

use tailbound_rt::Wake;
use tailbound_rt::handover::{Give, Take};

use super::site::Site;
use crate::error::SysError;
use crate::futex::Scope;

/// Where in the words each object lies: far enough apart for the largest.
const MUTEX: usize = 0;
const CONDITION: usize = 32;
const COUNT: usize = 64;
const OTHER: usize = 0;

const _: () = assert!(
    size_of::<libc::pthread_mutex_t>() <= 128
        && size_of::<libc::pthread_cond_t>() <= 128
        && size_of::<libc::sem_t>() <= 128
        && size_of::<libc::pthread_barrier_t>() <= 128
);

fn object<T>(site: &Site, word: usize) -> *mut T {
    site.word(word).as_ptr().cast()
}

fn shared(site: &Site) -> i32 {
    match site.scope {
        Scope::Private => libc::PTHREAD_PROCESS_PRIVATE,
        Scope::Shared => libc::PTHREAD_PROCESS_SHARED,
    }
}

fn ok(code: i32, call: &'static str) -> Result<(), SysError> {
    if code == 0 { Ok(()) } else { Err(SysError::code(call, "", code)) }
}

/// A counter, a mutex and a condition. Broadcast while the mutex is held, as POSIX advises where
/// scheduling has to be predictable.
pub(super) struct Condvar {
    site: Site,
    seen: u32,
}

impl Condvar {
    pub(super) fn new(site: Site) -> Self {
        Self { site, seen: 0 }
    }

    pub(super) fn make(site: &Site) -> Result<(), SysError> {
        // SAFETY: attribute objects on the stack, initialised before use; the objects lie in
        // zeroed, aligned words that nobody else uses yet and that are never moved.
        unsafe {
            let mut mutex: libc::pthread_mutexattr_t = std::mem::zeroed();
            ok(libc::pthread_mutexattr_init(&raw mut mutex), "pthread_mutexattr_init")?;
            ok(
                libc::pthread_mutexattr_setpshared(&raw mut mutex, shared(site)),
                "pthread_mutexattr_setpshared",
            )?;
            ok(
                libc::pthread_mutex_init(object(site, MUTEX), &raw const mutex),
                "pthread_mutex_init",
            )?;
            let mut condition: libc::pthread_condattr_t = std::mem::zeroed();
            ok(libc::pthread_condattr_init(&raw mut condition), "pthread_condattr_init")?;
            ok(
                libc::pthread_condattr_setpshared(&raw mut condition, shared(site)),
                "pthread_condattr_setpshared",
            )?;
            ok(
                libc::pthread_cond_init(object(site, CONDITION), &raw const condition),
                "pthread_cond_init",
            )
        }
    }
}

impl Give for Condvar {
    fn give(&mut self) -> Result<(), i32> {
        // SAFETY: objects initialised by `make`.
        unsafe {
            let locked = libc::pthread_mutex_lock(object(&self.site, MUTEX));
            if locked != 0 {
                return Err(locked);
            }
            self.site.word(COUNT).fetch_add(1, Ordering::Relaxed);
            libc::pthread_cond_broadcast(object(&self.site, CONDITION));
            libc::pthread_mutex_unlock(object(&self.site, MUTEX));
        }
        Ok(())
    }
}

impl Take for Condvar {
    fn take(&mut self) -> Wake {
        // SAFETY: objects initialised by `make`; the mutex is held where the wait wants it.
        unsafe {
            let locked = libc::pthread_mutex_lock(object(&self.site, MUTEX));
            if locked != 0 {
                return Wake::Failed(locked);
            }
            while self.site.word(COUNT).load(Ordering::Relaxed) == self.seen {
                libc::pthread_cond_wait(object(&self.site, CONDITION), object(&self.site, MUTEX));
            }
            libc::pthread_mutex_unlock(object(&self.site, MUTEX));
        }
        self.seen = self.seen.wrapping_add(1);
        Wake::Due
    }
}

/// A semaphore.
pub(super) struct Semaphore(pub(super) Site);

impl Semaphore {
    pub(super) fn make(site: &Site) -> Result<(), SysError> {
        let between = i32::from(site.scope == Scope::Shared);
        // SAFETY: zeroed, aligned words that nobody else uses yet.
        match unsafe { libc::sem_init(object(site, OTHER), between, 0) } {
            0 => Ok(()),
            _ => Err(SysError::last("sem_init", "")),
        }
    }
}

impl Give for Semaphore {
    fn give(&mut self) -> Result<(), i32> {
        // SAFETY: initialised by `make`.
        match unsafe { libc::sem_post(object(&self.0, OTHER)) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
        }
    }
}

impl Take for Semaphore {
    fn take(&mut self) -> Wake {
        // SAFETY: initialised by `make`.
        if unsafe { libc::sem_wait(object(&self.0, OTHER)) } == 0 {
            return Wake::Due;
        }
        match std::io::Error::last_os_error().raw_os_error().unwrap_or(0) {
            libc::EINTR => Wake::Interrupted,
            errno => Wake::Failed(errno),
        }
    }
}

/// A barrier that the sender is meant to reach last.
pub(super) struct Barrier(pub(super) Site);

impl Barrier {
    pub(super) fn make(site: &Site, receivers: u32) -> Result<(), SysError> {
        // SAFETY: an attribute object on the stack, initialised before use; zeroed, aligned
        // words that nobody else uses yet.
        unsafe {
            let mut attributes: libc::pthread_barrierattr_t = std::mem::zeroed();
            ok(libc::pthread_barrierattr_init(&raw mut attributes), "pthread_barrierattr_init")?;
            ok(
                libc::pthread_barrierattr_setpshared(&raw mut attributes, shared(site)),
                "pthread_barrierattr_setpshared",
            )?;
            let all = receivers.saturating_add(1);
            ok(
                libc::pthread_barrier_init(object(site, OTHER), &raw const attributes, all),
                "pthread_barrier_init",
            )
        }
    }

    fn wait(&self) -> Result<(), i32> {
        // SAFETY: initialised by `make`.
        match unsafe { libc::pthread_barrier_wait(object(&self.0, OTHER)) } {
            0 | libc::PTHREAD_BARRIER_SERIAL_THREAD => Ok(()),
            errno => Err(errno),
        }
    }
}

impl Give for Barrier {
    fn give(&mut self) -> Result<(), i32> {
        self.wait()
    }
}

impl Take for Barrier {
    fn take(&mut self) -> Wake {
        self.wait().map_or_else(Wake::Failed, |()| Wake::Due)
    }
}
