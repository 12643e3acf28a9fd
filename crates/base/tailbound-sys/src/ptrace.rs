// SPDX-License-Identifier: MIT OR Apache-2.0
//! Another process, one instruction at a time.
//!
//! Context: HOT in `step` (two system calls), SETUP elsewhere. A traced process belongs to the
//! thread that seized it, and is killed when that thread ends.
//! Not here: what each step proves (the probe).
//! Source: ptrace(2) PTRACE_SEIZE, PTRACE_SINGLESTEP, PTRACE_GETREGSET; waitpid(2).

use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::error::{SysError, check};
use crate::mem::Zeroed;
use crate::process::Pid;

const PTRACE_SINGLESTEP: libc::c_long = 9;
const PTRACE_GETREGSET: libc::c_long = 0x4204;
const PTRACE_SEIZE: libc::c_long = 0x4206;
const PTRACE_INTERRUPT: libc::c_long = 0x4207;
const PTRACE_O_EXITKILL: usize = 1 << 20;
const NT_PRSTATUS: usize = 1;
/// Longer than the general registers of any machine.
const REGISTERS_BYTES: usize = 1024;

/// Where the program counter is among the registers, and how wide, in bytes.
const PROGRAM_COUNTER: Option<(usize, usize)> = if cfg!(target_arch = "x86_64") {
    Some((16 * 8, 8))
} else if cfg!(target_arch = "aarch64") {
    Some((32 * 8, 8))
} else if cfg!(target_arch = "x86") {
    Some((12 * 4, 4))
} else if cfg!(target_arch = "arm") {
    Some((15 * 4, 4))
} else if cfg!(target_arch = "riscv64") {
    Some((0, 8))
} else {
    None
};

/// What a stepped process counts, for its tracer to see.
#[derive(Debug)]
#[repr(C)]
pub struct Steps {
    /// 1 when it may begin.
    pub go: AtomicU32,
    /// Rounds of its loop.
    pub rounds: AtomicU64,
}

// SAFETY: a struct of atomic integers.
unsafe impl Zeroed for Steps {}

/// Why a traced process stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The step was done.
    Stepped,
    /// A signal is about to be delivered, or another event of tracing (signal and event).
    Other(i32, i32),
    /// It has ended (the status of waitpid).
    Ended(i32),
}

/// A process seized by the calling thread.
#[derive(Debug)]
pub struct Traced(Pid);

fn call(request: libc::c_long, pid: Pid, address: usize, data: usize) -> Result<(), SysError> {
    // SAFETY: ptrace(2); `data` is a number or, for PTRACE_GETREGSET, the address of a live
    // iovec over a live buffer.
    let done = unsafe { libc::syscall(libc::SYS_ptrace, request, pid.0, address, data) };
    check(done, "ptrace", &format!("process {pid}"))
        .map(drop)
        .map_err(|e| e.needs("CAP_SYS_PTRACE, or kernel.yama.ptrace_scope below 2"))
}

impl Traced {
    /// Seizes `pid`, which dies with the calling thread from now on; it goes on running.
    ///
    /// # Errors
    /// EPERM where tracing is not allowed (Yama, a container's list of system calls).
    pub fn seize(pid: Pid) -> Result<Self, SysError> {
        call(PTRACE_SEIZE, pid, 0, PTRACE_O_EXITKILL)?;
        Ok(Self(pid))
    }

    /// Stops it, wherever it is.
    ///
    /// # Errors
    /// ESRCH when it has ended.
    pub fn halt(&self) -> Result<(), SysError> {
        call(PTRACE_INTERRUPT, self.0, 0, 0)?;
        match self.wait()? {
            Stop::Ended(status) => {
                Err(SysError::code("ptrace", format!("it has ended, status {status}"), libc::ESRCH))
            }
            _ => Ok(()),
        }
    }

    /// Lets it run for one instruction, and waits until it has.
    ///
    /// # Errors
    /// EIO on machines without single steps; ESRCH when it is gone.
    #[inline]
    pub fn step(&self) -> Result<Stop, SysError> {
        call(PTRACE_SINGLESTEP, self.0, 0, 0)?;
        self.wait()
    }

    fn wait(&self) -> Result<Stop, SysError> {
        let mut status = 0;
        loop {
            // SAFETY: waitpid(2) writes one live int.
            let got = unsafe { libc::waitpid(self.0.0, &raw mut status, libc::__WALL) };
            match check(got, "waitpid", "") {
                Err(e) if e.errno == libc::EINTR => {}
                done => break done.map(drop)?,
            }
        }
        if !libc::WIFSTOPPED(status) {
            return Ok(Stop::Ended(status));
        }
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        let stepped = signal == libc::SIGTRAP && event == 0;
        Ok(if stepped { Stop::Stepped } else { Stop::Other(signal, event) })
    }

    /// The address of its next instruction; `None` where we do not know this machine's registers.
    ///
    /// # Errors
    /// ESRCH when it does not stand still.
    pub fn next_instruction(&self) -> Result<Option<u64>, SysError> {
        let Some((at, bytes)) = PROGRAM_COUNTER else { return Ok(None) };
        let mut registers = [0u8; REGISTERS_BYTES];
        let mut place =
            libc::iovec { iov_base: registers.as_mut_ptr().cast(), iov_len: registers.len() };
        call(PTRACE_GETREGSET, self.0, NT_PRSTATUS, (&raw mut place).addr())?;
        let word = registers.get(at..at + bytes).unwrap_or(&[]);
        let value = word.iter().enumerate().map(|(i, b)| u64::from(*b) << (8 * i)).sum();
        Ok((place.iov_len >= at + bytes).then_some(value))
    }
}
