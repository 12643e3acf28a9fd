// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records of the kernel's performance events: what a CPU did at a moment, and what programs were mapped.
//!
//! Units: ns. Records as [`FIELDS`] asks for them; one of another length is none.
//! Not here: the ring they come from (`tailbound_sys::perf_cpu`), names of functions (`tailbound-record`).
//! Source: perf_event_open(2), include/uapi/linux/perf_event.h.

use tailbound_core::sampled::Spent;

/// What a sample has: address, thread, time, CPU, callers (bits of `sample_type`).
pub const FIELDS: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 5;

const MAP_OF_CODE: u32 = 10;
const COMM: u32 = 3;
const FORK: u32 = 7;
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
const MODE: u16 = 7;
const MODE_KERNEL: u16 = 1;
const MODE_USER: u16 = 2;
/// Callers above this are no addresses but say whose the next ones are.
const CONTEXT: u64 = -4095i64 as u64;
/// Most callers.
const CHAIN_MAX: usize = 256;

/// Whose code ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The kernel's.
    Kernel,
    /// A program's.
    User,
    /// A guest's, or a hypervisor's.
    Other,
}

/// What a CPU did at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Where it was.
    pub address: u64,
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// When.
    pub t_ns: u64,
    /// Which CPU.
    pub cpu: u32,
    /// Whose code.
    pub mode: Mode,
    /// The kernel's functions, the innermost first.
    pub chain: Vec<u64>,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerfRecord {
    /// See [`Sample`].
    Sample(Sample),
    /// A thread has a name from here on; a process, where both numbers are the same.
    Comm(i32, i32, String),
    /// A process mapped code: the begin, the length, where in the file it lies, the file.
    Map(i32, u64, u64, u64, String),
    /// A process began as a copy of another (the second).
    Fork(i32, i32),
    /// So many records found no room.
    Lost(u64),
}

/// Reads one after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn word(&mut self) -> Option<u32> {
        let (first, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_ne_bytes(*first))
    }

    fn double(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*first))
    }

    fn number(&mut self) -> Option<i32> {
        self.word().map(u32::cast_signed)
    }

    fn text(&self) -> String {
        let text = self.0.split(|b| *b == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }
}

/// When the record of this kind was made: a sample has its time, of the others it stands before the CPU at the end
/// (`sample_id_all`).
#[must_use]
pub fn time_ns(kind: u32, bytes: &[u8]) -> u64 {
    let at = if kind == SAMPLE { Some(16) } else { bytes.len().checked_sub(16) };
    let time = at.and_then(|at| bytes.get(at..)).and_then(|b| Fields(b).double());
    time.unwrap_or(0)
}

/// The record of this kind and `misc`, whose bytes behind the header are `bytes`; `None` for one that is not wanted.
#[must_use]
pub fn record(kind: u32, misc: u16, bytes: &[u8]) -> Option<PerfRecord> {
    let mut f = Fields(bytes);
    Some(match kind {
        SAMPLE => {
            let address = f.double()?;
            let (pid, tid, t_ns, cpu) = (f.number()?, f.number()?, f.double()?, f.word()?);
            f.word()?;
            let n = usize::try_from(f.double()?).ok()?.min(CHAIN_MAX);
            let chain = (0..n).map_while(|_| f.double()).filter(|a| *a < CONTEXT).collect();
            let mode = match misc & MODE {
                MODE_KERNEL => Mode::Kernel,
                MODE_USER => Mode::User,
                _ => Mode::Other,
            };
            PerfRecord::Sample(Sample { address, pid, tid, t_ns, cpu, mode, chain })
        }
        COMM => PerfRecord::Comm(f.number()?, f.number()?, f.text()),
        FORK => PerfRecord::Fork(f.number()?, f.number()?),
        LOST => {
            f.double()?;
            PerfRecord::Lost(f.double()?)
        }
        MAP_OF_CODE => {
            let (pid, _) = (f.number()?, f.number()?);
            let (begin, length, offset) = (f.double()?, f.double()?, f.double()?);
            // Device, inode, its generation, protection and flags.
            for _ in 0..4 {
                f.double()?;
            }
            PerfRecord::Map(pid, begin, length, offset, f.text())
        }
        _ => return None,
    })
}

const SOFTIRQ: [&str; 3] = ["handle_softirqs", "__do_softirq", "run_ksoftirqd"];
const INTERRUPT: [&str; 9] = [
    "asm_sysvec_",
    "sysvec_",
    "asm_common_interrupt",
    "common_interrupt",
    "el1h_64_irq",
    "el0t_64_irq",
    "el1_irq",
    "el0_irq",
    "__irq_svc",
];
const IDLE: [&str; 3] = ["do_idle", "cpu_startup_entry", "cpuidle_enter"];

/// What it went to, by the thread, whose code it was, and the names of the kernel's functions, the innermost first.
pub fn spent<'a>(pid: i32, mode: Mode, chain: impl Iterator<Item = &'a str>) -> Spent {
    match mode {
        Mode::User => return Spent::User,
        Mode::Other => return Spent::Other,
        Mode::Kernel => {}
    }
    let is = |name: &str, of: &[&str]| of.iter().any(|o| name.starts_with(o));
    for name in chain {
        if is(name, &SOFTIRQ) {
            return Spent::Softirq;
        }
        if is(name, &INTERRUPT) {
            return Spent::Interrupt;
        }
        if pid == 0 && is(name, &IDLE) {
            return Spent::Idle;
        }
    }
    Spent::Kernel
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(0x1234u64.to_ne_bytes());
        [7i32, 8].iter().for_each(|n| out.extend(n.to_ne_bytes()));
        out.extend(99u64.to_ne_bytes());
        [3u32, 0].iter().for_each(|n| out.extend(n.to_ne_bytes()));
        [3u64, -128i64 as u64, 0x10, 0x20].iter().for_each(|n| out.extend(n.to_ne_bytes()));
        out
    }

    #[test]
    fn a_sample_is_read_and_a_short_one_is_none() {
        let bytes = sample();
        assert_eq!((time_ns(SAMPLE, &bytes), time_ns(COMM, &bytes)), (99, 0x10));
        assert_eq!(time_ns(COMM, &[0; 15]), 0);
        let Some(PerfRecord::Sample(s)) = record(SAMPLE, MODE_KERNEL, &bytes) else { panic!() };
        assert_eq!((s.address, s.pid, s.tid, s.t_ns, s.cpu), (0x1234, 7, 8, 99, 3));
        assert_eq!((s.mode, s.chain), (Mode::Kernel, vec![0x10, 0x20]));
        for kind in 0..20 {
            for length in 0..bytes.len() {
                let _ = record(kind, 0, bytes.get(..length).unwrap());
            }
        }
        assert_eq!(record(SAMPLE, 0, bytes.get(..39).unwrap()), None);
        assert_eq!(record(99, 0, &bytes), None);
    }

    #[test]
    fn names_maps_and_losses_are_read() {
        let mut comm = [7i32, 8].map(i32::to_ne_bytes).concat();
        comm.extend(b"cc1\0\0\0\0\0");
        assert_eq!(record(COMM, 0, &comm), Some(PerfRecord::Comm(7, 8, "cc1".to_owned())));
        let mut map = [7i32, 7].map(i32::to_ne_bytes).concat();
        [0x1000u64, 0x2000, 0x3000, 0, 0, 0, 0].iter().for_each(|n| map.extend(n.to_ne_bytes()));
        map.extend(b"/bin/x\0\0");
        let read = record(MAP_OF_CODE, 0, &map);
        assert_eq!(read, Some(PerfRecord::Map(7, 0x1000, 0x2000, 0x3000, "/bin/x".to_owned())));
        let lost = [1u64, 5].map(u64::to_ne_bytes).concat();
        assert_eq!(record(LOST, 0, &lost), Some(PerfRecord::Lost(5)));
    }

    #[test]
    fn the_innermost_decides_what_the_time_went_to() {
        let of = |pid, chain: &[&str]| spent(pid, Mode::Kernel, chain.iter().copied());
        assert_eq!(of(0, &["pv_native_safe_halt", "default_idle", "do_idle"]), Spent::Idle);
        assert_eq!(of(5, &["copy_page", "do_syscall_64"]), Spent::Kernel);
        let soft = ["net_rx_action", "handle_softirqs", "irq_exit_rcu", "asm_sysvec_x", "do_idle"];
        assert_eq!(of(0, &soft), Spent::Softirq);
        assert_eq!(of(0, &["virtqueue", "asm_common_interrupt", "do_idle"]), Spent::Interrupt);
        assert_eq!(spent(0, Mode::User, ["do_idle"].into_iter()), Spent::User);
    }
}
