// SPDX-License-Identifier: MIT OR Apache-2.0
//! What only the first process of a system does: mounts, modules, restart, and the two
//! I/O ports by which a guest of QEMU talks to its host without an interrupt.
//!
//! Context: SETUP, COLD. Source: mount(2), finit_module(2), reboot(2), ioperm(2),
//! tcsetattr(3); QEMU hw/watchdog (ib700), docs/specs/fw_cfg.txt.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::error::{SysError, check};

fn c_string(text: &str) -> Result<CString, SysError> {
    CString::new(text).map_err(|_| SysError::code("NUL byte in", text, libc::EINVAL))
}

/// Mounts a file system of `kind` on `target`.
///
/// # Errors
/// ENODEV where the kernel has no such file system, EBUSY where it is mounted already.
pub fn mount(kind: &str, target: &str, options: &str) -> Result<(), SysError> {
    let (kind_c, target_c, options_c) = (c_string(kind)?, c_string(target)?, c_string(options)?);
    // SAFETY: four NUL-terminated strings and flags.
    let done = unsafe {
        libc::mount(
            kind_c.as_ptr(),
            target_c.as_ptr(),
            kind_c.as_ptr(),
            0,
            options_c.as_ptr().cast(),
        )
    };
    check(done, "mount", &format!("{kind} on {target}")).map(drop)
}

/// Loads the kernel module in `file`, unpacked by the kernel where its name says that it is
/// compressed.
///
/// # Errors
/// EEXIST when it is loaded, ENOEXEC for another kernel's module, EOPNOTSUPP where the
/// kernel cannot unpack.
pub fn load_module(path: &Path) -> Result<(), SysError> {
    const COMPRESSED: libc::c_int = 4;
    let name = path.display().to_string();
    let file = File::open(path)
        .map_err(|e| SysError::code("open", &name, e.raw_os_error().unwrap_or(0)))?;
    let flags = if path.extension().is_some_and(|e| e == "ko") { 0 } else { COMPRESSED };
    // SAFETY: finit_module(2) on a live descriptor with an empty parameter string.
    let done =
        unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), c"".as_ptr(), flags) };
    check(done, "finit_module", &name).map(drop)
}

/// Restarts the machine at once, without a word to anyone: a guest that QEMU does not let
/// restart ends there.
///
/// # Errors
/// EPERM without CAP_SYS_BOOT. Does not come back otherwise.
pub fn restart() -> Result<(), SysError> {
    end(libc::RB_AUTOBOOT)
}

/// Turns the machine off at once; one that cannot do that halts.
///
/// # Errors
/// As [`restart`].
pub fn power_off() -> Result<(), SysError> {
    end(libc::RB_POWER_OFF)
}

/// Lets the machine stand still.
///
/// # Errors
/// As [`restart`].
pub fn halt() -> Result<(), SysError> {
    end(libc::RB_HALT_SYSTEM)
}

fn end(how: libc::c_int) -> Result<(), SysError> {
    // SAFETY: sync(2) and reboot(2) take no memory.
    let done = unsafe {
        libc::sync();
        libc::reboot(how)
    };
    check(done, "reboot", "").map(drop)
}

/// Makes a serial line carry bytes as they are.
///
/// # Errors
/// ENOTTY when it is none.
pub fn make_raw(line: &File) -> Result<(), SysError> {
    // SAFETY: all-zero bytes are a valid termios.
    let mut t: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: a live descriptor and a live termios.
    let done = unsafe {
        match libc::tcgetattr(line.as_raw_fd(), &raw mut t) {
            0 => {
                libc::cfmakeraw(&raw mut t);
                libc::tcsetattr(line.as_raw_fd(), libc::TCSANOW, &raw const t)
            }
            failed => failed,
        }
    };
    check(done, "tcsetattr", "serial line").map(drop)
}

/// Waits until everything written has left.
///
/// # Errors
/// EINTR, EIO.
pub fn drain(line: &File) -> Result<(), SysError> {
    // SAFETY: a live descriptor.
    check(unsafe { libc::tcdrain(line.as_raw_fd()) }, "tcdrain", "serial line").map(drop)
}

/// Lets the calling thread use `count` I/O ports from `first`.
///
/// # Errors
/// EPERM without CAP_SYS_RAWIO; ENOSYS where there are no such ports or the kernel does
/// not give them away (CONFIG_X86_IOPL_IOPERM).
#[cfg(target_arch = "x86_64")]
pub fn allow_ports(first: u16, count: u16) -> Result<(), SysError> {
    // SAFETY: ioperm(2) on integers.
    let done = unsafe {
        libc::syscall(libc::SYS_ioperm, libc::c_ulong::from(first), libc::c_ulong::from(count), 1)
    };
    check(done, "ioperm", "").map(drop)
}

/// There are no I/O ports here.
///
/// # Errors
/// Always ENOSYS.
#[cfg(not(target_arch = "x86_64"))]
pub fn allow_ports(_first: u16, _count: u16) -> Result<(), SysError> {
    Err(SysError::code("ioperm", "no I/O ports on this architecture", libc::ENOSYS))
}

/// The IB700 watchdog's port that starts it.
pub const WATCHDOG_PORT: u16 = 0x443;
/// QEMU's fw_cfg selector; the data port follows it.
pub const FW_CFG_PORT: u16 = 0x510;

/// Starts the IB700 watchdog, to expire in two seconds. Needs [`allow_ports`].
pub fn start_watchdog() {
    /// Its table of seconds begins with 30 and goes down by 2.
    #[cfg(target_arch = "x86_64")]
    const TWO_SECONDS: u8 = 14;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the port was allowed, or this faults; writing it touches no memory of ours.
    unsafe {
        std::arch::asm!("out dx, al", in("dx") WATCHDOG_PORT, in("al") TWO_SECONDS, options(nomem, nostack));
    }
}

/// Reads `bytes` bytes of fw_cfg item `item`. Needs [`allow_ports`] for two ports.
#[must_use]
pub fn fw_cfg(item: u16, bytes: usize) -> Vec<u8> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: the port was allowed, or this faults; touches no memory of ours.
        unsafe {
            std::arch::asm!("out dx, ax", in("dx") FW_CFG_PORT, in("ax") item, options(nomem, nostack));
        }
        fw_cfg_more(bytes)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (item, bytes);
        Vec::new()
    }
}

/// Reads on where [`fw_cfg`] ended.
#[must_use]
pub fn fw_cfg_more(bytes: usize) -> Vec<u8> {
    #[cfg(target_arch = "x86_64")]
    {
        (0..bytes)
            .map(|_| {
                let byte: u8;
                // SAFETY: the port was allowed, or this faults; touches no memory of ours.
                unsafe {
                    std::arch::asm!("in al, dx", in("dx") FW_CFG_PORT + 1, out("al") byte, options(nomem, nostack));
                }
                byte
            })
            .collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = bytes;
        Vec::new()
    }
}
