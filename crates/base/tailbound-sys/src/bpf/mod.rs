// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs in the kernel (BPF): their maps, loading them, and letting them run at trace events.
//!
//! Context: SETUP (load, attach), COLD (maps, ring). Everything is held by descriptors: what a killed process
//! leaves is nothing. The kernel proves each program safe before it takes it; its words about one
//! that it refuses are in the error.
//! Not here: their instructions (`tailbound_trace::bpf`), what they do (`tailbound-record`, `tailbound-monitor`).
//! Source: bpf(2), include/uapi/linux/bpf.h (union bpf_attr), Documentation/bpf/ringbuf.rst.

mod ring;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::error::{SysError, check};

pub use ring::{Ring, RingWaiter};

const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP: libc::c_int = 1;
const MAP_UPDATE: libc::c_int = 2;
const MAP_DELETE: libc::c_int = 3;
const MAP_NEXT: libc::c_int = 4;
const PROG_LOAD: libc::c_int = 5;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;

const PROG_TYPE_TRACING: u32 = 26;
const ATTACH_TRACE_RAW_TP: u32 = 23;

/// What the programs are under: helpers that read the kernel's memory are for such alone. They are ours, and given
/// under this licence as well.
const LICENCE: &[u8] = b"Dual MIT/GPL\0";
/// Bytes of the kernel's words about a refused program, and how many of their last are told.
const LOG_BYTES: usize = 256 << 10;
const LOG_TOLD: usize = 600;
/// Longest name that the kernel keeps.
const NAME_BYTES: usize = 15;

/// What a map is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// Values by keys.
    Hash = 1,
    /// Values by numbers from 0.
    Array = 2,
    /// A ring that programs write and [`Ring`] reads.
    Ring = 27,
}

#[repr(C)]
#[derive(Default)]
struct CreateAttr {
    kind: u32,
    key: u32,
    value: u32,
    entries: u32,
    flags: u32,
    inner: u32,
    node: u32,
    name: [u8; 16],
}

#[repr(C)]
#[derive(Default)]
struct ElementAttr {
    map: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct LoadAttr {
    kind: u32,
    instructions: u32,
    code: u64,
    licence: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_type: u32,
    btf: u32,
    func_info_size: u32,
    func_info: u64,
    func_infos: u32,
    line_info_size: u32,
    line_info: u64,
    line_infos: u32,
    attach_btf_id: u32,
    attach_program: u32,
    pad: u32,
}

#[repr(C)]
#[derive(Default)]
struct AttachAttr {
    name: u64,
    program: u32,
    pad: u32,
}

fn named(name: &str) -> [u8; 16] {
    let mut out = [0; 16];
    for (to, from) in out.iter_mut().take(NAME_BYTES).zip(name.bytes()) {
        *to = if from.is_ascii_alphanumeric() { from } else { b'_' };
    }
    out
}

/// bpf(2); the pointers in `attr` must be good for `command`.
///
/// # Safety
/// `attr` is the part of union bpf_attr that `command` takes, and every address in it is of live memory of the
/// length that the command reads or writes there.
unsafe fn call<T>(command: libc::c_int, attr: &mut T) -> libc::c_long {
    let size = libc::c_long::try_from(size_of::<T>()).unwrap_or(0);
    // SAFETY: a live struct of this size, and what the caller promises of its addresses.
    unsafe {
        libc::syscall(libc::SYS_bpf, libc::c_long::from(command), std::ptr::from_mut(attr), size)
    }
}

fn descriptor(raw: libc::c_long, what: &str) -> Result<OwnedFd, SysError> {
    let raw = check(raw, "bpf", what).map_err(|e| {
        e.needs("root, or CAP_BPF and CAP_PERFMON; lockdown=confidentiality forbids it")
    })?;
    let raw = i32::try_from(raw).unwrap_or(-1);
    // SAFETY: a fresh descriptor of the kernel's, ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

fn short(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn address<T: ?Sized>(of: &T) -> u64 {
    std::ptr::from_ref(of).cast::<u8>() as usize as u64
}

/// A map.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    key: usize,
    value: usize,
}

/// Programs know a map by the number of its descriptor.
impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Map {
    /// Makes one; of a ring `entries` are its bytes (pages times a power of two) and there are no keys.
    ///
    /// # Errors
    /// EPERM: not allowed; ENOMEM; EINVAL: a kind that this kernel does not know.
    pub fn make(
        kind: MapKind,
        key: usize,
        value: usize,
        entries: u32,
        name: &str,
    ) -> Result<Self, SysError> {
        let mut attr = CreateAttr {
            kind: kind as u32,
            key: short(key),
            value: short(value),
            entries,
            name: named(name),
            ..CreateAttr::default()
        };
        // SAFETY: BPF_MAP_CREATE takes this part of the union, without addresses.
        let raw = unsafe { call(MAP_CREATE, &mut attr) };
        Ok(Self { fd: descriptor(raw, &format!("map {name}"))?, key, value })
    }

    fn raw(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    fn attr(&self, key: &[u8]) -> Result<ElementAttr, SysError> {
        if key.len() != self.key {
            return Err(SysError::code("bpf", "a key of another length", libc::EINVAL));
        }
        let map = u32::try_from(self.raw()).unwrap_or(u32::MAX);
        Ok(ElementAttr { map, key: address(key), ..ElementAttr::default() })
    }

    /// Sets the value of `key`.
    ///
    /// # Errors
    /// E2BIG: it is full; EINVAL: lengths that are not the map's.
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<(), SysError> {
        let mut attr = self.attr(key)?;
        if value.len() != self.value {
            return Err(SysError::code("bpf", "a value of another length", libc::EINVAL));
        }
        attr.value = address(value);
        // SAFETY: key and value are live and as long as the map's, as was looked at.
        check(unsafe { call(MAP_UPDATE, &mut attr) }, "bpf", "set a value").map(drop)
    }

    /// The value of `key`; `None` when there is none.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut value = vec![0u8; self.value];
        let mut attr = self.attr(key).ok()?;
        attr.value = value.as_mut_ptr() as usize as u64;
        // SAFETY: the key is as long as the map's, and the value has room for one of the map's: kinds that
        // have one for each CPU are not made here.
        let done = unsafe { call(MAP_LOOKUP, &mut attr) };
        (done >= 0).then_some(value)
    }

    /// Takes `key` out; `false` when it was not there.
    pub fn remove(&self, key: &[u8]) -> bool {
        let Ok(mut attr) = self.attr(key) else { return false };
        // SAFETY: the key is live and as long as the map's, as was looked at.
        unsafe { call(MAP_DELETE, &mut attr) >= 0 }
    }

    /// All keys, `most` at most: those that come and go meanwhile may be among them or not.
    #[must_use]
    pub fn keys(&self, most: usize) -> Vec<Vec<u8>> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        while keys.len() < most {
            let mut next = vec![0u8; self.key];
            let map = u32::try_from(self.raw()).unwrap_or(u32::MAX);
            let mut attr = ElementAttr { map, ..ElementAttr::default() };
            attr.key = keys.last().map_or(0, |k| address(k.as_slice()));
            attr.value = next.as_mut_ptr() as usize as u64;
            // SAFETY: none, or a live key of the map's length; and room for the next one.
            if unsafe { call(MAP_NEXT, &mut attr) } < 0 {
                break;
            }
            keys.push(next);
        }
        keys
    }
}

/// A program that the kernel took.
#[derive(Debug)]
pub struct Program {
    fd: OwnedFd,
}

/// A program at its event, until it is dropped.
#[derive(Debug)]
pub struct Attached {
    _fd: OwnedFd,
    _program: Program,
}

impl Program {
    /// Loads a program for the trace event of this BTF type.
    ///
    /// # Errors
    /// EPERM: not allowed; EINVAL, EACCES: the kernel does not take it, with the end of what it says.
    pub fn load(code: &[u64], attach_btf_id: u32, name: &str) -> Result<Self, SysError> {
        let what = format!("program {name}");
        let mut attr = LoadAttr {
            kind: PROG_TYPE_TRACING,
            instructions: short(code.len()),
            code: address(code),
            licence: address(LICENCE),
            name: named(name),
            attach_type: ATTACH_TRACE_RAW_TP,
            attach_btf_id,
            ..LoadAttr::default()
        };
        // SAFETY: code and licence are live and as long as said; there is no log.
        let raw = unsafe { call(PROG_LOAD, &mut attr) };
        match descriptor(raw, &what) {
            Ok(fd) => Ok(Self { fd }),
            Err(e) if e.errno == libc::EPERM => Err(e),
            Err(first) => {
                let mut log = vec![0u8; LOG_BYTES];
                attr.log_level = 1;
                attr.log_size = short(log.len());
                attr.log = log.as_mut_ptr() as usize as u64;
                // SAFETY: as above, with a log of the length said.
                match descriptor(unsafe { call(PROG_LOAD, &mut attr) }, &what) {
                    Ok(fd) => Ok(Self { fd }),
                    Err(_) => {
                        Err(SysError::code("bpf", format!("{what}: {}", end_of(&log)), first.errno))
                    }
                }
            }
        }
    }

    /// Lets it run at its event.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn attach(self, name: &str) -> Result<Attached, SysError> {
        let program = u32::try_from(self.fd.as_raw_fd()).unwrap_or(u32::MAX);
        let mut attr = AttachAttr { program, ..AttachAttr::default() };
        // SAFETY: BPF_RAW_TRACEPOINT_OPEN without a name: the program says where.
        let raw = unsafe { call(RAW_TRACEPOINT_OPEN, &mut attr) };
        Ok(Attached { _fd: descriptor(raw, &format!("event of {name}"))?, _program: self })
    }
}

/// The last words of the kernel about a program, in one line.
fn end_of(log: &[u8]) -> String {
    let text = log.split(|b| *b == 0).next().unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().filter(|l| !l.starts_with("processed ")).collect();
    let joined = lines.join(" | ");
    let from = joined.char_indices().rev().nth(LOG_TOLD).map_or(0, |(at, _)| at);
    joined.get(from..).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
