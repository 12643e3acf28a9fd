// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hand-over by a System V semaphore.
//!
//! Context: HOT (`End`), SETUP (the rest). Source: semop(2), semctl(2), ipc_namespaces(7).
//! A set outlives its users until somebody removes it. In an IPC namespace of its own it dies
//! with the last process of it; where that is not permitted, somebody has to watch.

use tailbound_rt::Wake;
use tailbound_rt::handover::{Give, Take};

use crate::error::{SysError, check};

/// One semaphore. The process that made it removes it.
#[derive(Debug)]
pub(super) struct Set {
    id: i32,
    own: bool,
}

impl Set {
    pub(super) fn new() -> Result<Self, SysError> {
        // SAFETY: semget(2) on integers.
        let id = unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) };
        check(id, "semget", "")?;
        Ok(Self { id, own: true })
    }
    pub(super) fn adopt(id: i32) -> Self {
        Self { id, own: false }
    }
    pub(super) fn id(&self) -> i32 {
        self.id
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        if self.own {
            drop(remove_semaphores(self.id));
        }
    }
}

/// Removes a set; those who wait for it are told.
///
/// # Errors
/// EINVAL when it is gone already.
pub fn remove_semaphores(id: i32) -> Result<(), SysError> {
    // SAFETY: semctl(2) on integers; IPC_RMID has no fourth argument.
    let removed = unsafe { libc::semctl(id, 0, libc::IPC_RMID) };
    check(removed, "semctl", "IPC_RMID").map(drop)
}

/// Gives the calling thread, and those and the processes it creates later, System V objects and
/// message queues of their own, which end with the last of them.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN; EINVAL without CONFIG_IPC_NS.
pub fn own_ipc_namespace() -> Result<(), SysError> {
    // SAFETY: unshare(2) on an integer.
    check(unsafe { libc::unshare(libc::CLONE_NEWIPC) }, "unshare", "CLONE_NEWIPC")
        .map(drop)
        .map_err(|e| e.needs("CAP_SYS_ADMIN"))
}

/// Either end.
pub(super) struct End(pub(super) i32);

fn operate(id: i32, by: i16) -> Result<(), i32> {
    let mut operation = libc::sembuf { sem_num: 0, sem_op: by, sem_flg: 0 };
    // SAFETY: semop(2) reads one live operation.
    match unsafe { libc::semop(id, &raw mut operation, 1) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
    }
}

impl Give for End {
    fn give(&mut self) -> Result<(), i32> {
        operate(self.0, 1)
    }
}

impl Take for End {
    fn take(&mut self) -> Wake {
        match operate(self.0, -1) {
            Ok(()) => Wake::Due,
            Err(libc::EINTR) => Wake::Interrupted,
            Err(errno) => Wake::Failed(errno),
        }
    }
}
