// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the bytes of a record to what it says.
//!
//! Units: ns. osnoise counts whole µs, hwlat too: their values are
//! multiplied here, and their resolution is said where they are kept.
//! Source: the kernel's `format` files; trace_entries.h for the units.

use std::collections::BTreeMap;

use crate::format::{EventFormat, Field, FormatError};

const NS_PER_US: u64 = 1000;

/// Where timerlat took a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerlatContext {
    /// In the timer's interrupt handler.
    Irq,
    /// In the woken thread, still in the kernel.
    Thread,
    /// On the return to the kernel from user space (timerlat_fd only).
    User,
}

/// What one record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// timerlat: one look at one activation.
    Timerlat {
        /// Where it was taken.
        context: TimerlatContext,
        /// From the timer's due time.
        latency_ns: i64,
    },
    /// osnoise: one period of a CPU.
    Osnoise {
        /// All that was taken away.
        noise_ns: i64,
        /// Length of the look.
        runtime_ns: i64,
        /// Longest single gap.
        single_ns_max: i64,
        /// Gaps by source: hardware (nothing the kernel knows of), NMI, interrupt, softirq, thread.
        sources: [u64; 5],
    },
    /// hwlat: a gap above the threshold while interrupts were off.
    Hwlat {
        /// Between the two clock reads of one look.
        inner_ns: i64,
        /// Between two looks.
        outer_ns: i64,
        /// NMIs meanwhile.
        nmis: u64,
    },
    /// A thread set a high-resolution timer.
    TimerStart {
        /// Which, by its address.
        timer: u64,
        /// Its earliest expiry, on its own clock.
        due_ns: i64,
    },
    /// The interrupt found a timer expired.
    TimerExpire {
        /// Which, by its address.
        timer: u64,
        /// What the interrupt took for now, on the timer's clock.
        now_ns: i64,
    },
    /// A CPU goes over to another thread.
    SwitchTo {
        /// Which one.
        pid: i32,
    },
}

/// One record with its time and place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When, on the instance's trace clock.
    pub t_ns: u64,
    /// Which CPU.
    pub cpu: u32,
    /// The thread that ran there.
    pub pid: i32,
    /// What.
    pub record: Record,
}

/// The fields of the kinds that are understood.
#[derive(Clone, Copy, Debug)]
enum Layout {
    Timerlat([Field; 2]),
    Osnoise([Field; 8]),
    Hwlat([Field; 3]),
    Start([Field; 2]),
    Expire([Field; 2]),
    Switch([Field; 1]),
}

/// Knows this kernel's layouts.
#[derive(Clone, Debug)]
pub struct Decoder {
    pid: Option<Field>,
    kinds: BTreeMap<u16, Layout>,
}

fn fields<const N: usize>(
    format: &EventFormat,
    names: [&str; N],
) -> Result<[Field; N], FormatError> {
    let mut out = [Field { offset: 0, size: 0, signed: false }; N];
    for (slot, name) in out.iter_mut().zip(names) {
        *slot = format.field(name)?;
    }
    Ok(out)
}

impl Decoder {
    /// A decoder of the kinds in `formats`; kinds it has no use for are passed over.
    ///
    /// # Errors
    /// A kind that lacks a field.
    pub fn new(formats: &[EventFormat]) -> Result<Self, FormatError> {
        let mut kinds = BTreeMap::new();
        for f in formats {
            let layout = match f.name.as_str() {
                "timerlat" => Layout::Timerlat(fields(f, ["context", "timer_latency"])?),
                "osnoise" => {
                    let names = ["noise", "runtime", "max_sample", "hw_count", "nmi_count"];
                    let counts = ["irq_count", "softirq_count", "thread_count"];
                    let (a, b) = (fields(f, names)?, fields(f, counts)?);
                    Layout::Osnoise([a[0], a[1], a[2], a[3], a[4], b[0], b[1], b[2]])
                }
                "hwlat" => Layout::Hwlat(fields(f, ["duration", "outer_duration", "nmi_count"])?),
                "hrtimer_start" => Layout::Start(fields(f, ["hrtimer", "softexpires"])?),
                "hrtimer_expire_entry" => Layout::Expire(fields(f, ["hrtimer", "now"])?),
                "sched_switch" => Layout::Switch(fields(f, ["next_pid"])?),
                _ => continue,
            };
            kinds.insert(f.id, layout);
        }
        let pid = formats.iter().find_map(|f| f.field("common_pid").ok());
        Ok(Self { pid, kinds })
    }

    /// What `bytes` says, and the thread that ran when it was written; `None` for kinds that
    /// are not understood and for records that are too short.
    #[must_use]
    pub fn decode(&self, bytes: &[u8]) -> Option<(i32, Record)> {
        let id = u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?);
        let int = |f: &Field| f.get(bytes);
        let count = |f: &Field| f.get(bytes).map(i64::cast_unsigned);
        let us = |f: &Field| {
            let ns = f.get(bytes)?.cast_unsigned().saturating_mul(NS_PER_US);
            Some(i64::try_from(ns).unwrap_or(i64::MAX))
        };
        let record = match self.kinds.get(&id)? {
            Layout::Timerlat([context, latency]) => Record::Timerlat {
                context: match int(context)? {
                    0 => TimerlatContext::Irq,
                    1 => TimerlatContext::Thread,
                    2 => TimerlatContext::User,
                    _ => return None,
                },
                latency_ns: int(latency)?,
            },
            Layout::Osnoise([noise, runtime, single, hw, nmi, irq, softirq, thread]) => {
                Record::Osnoise {
                    noise_ns: us(noise)?,
                    runtime_ns: us(runtime)?,
                    single_ns_max: us(single)?,
                    sources: [
                        count(hw)?,
                        count(nmi)?,
                        count(irq)?,
                        count(softirq)?,
                        count(thread)?,
                    ],
                }
            }
            Layout::Hwlat([inner, outer, nmis]) => {
                Record::Hwlat { inner_ns: us(inner)?, outer_ns: us(outer)?, nmis: count(nmis)? }
            }
            Layout::Start([timer, due]) => {
                Record::TimerStart { timer: count(timer)?, due_ns: int(due)? }
            }
            Layout::Expire([timer, now]) => {
                Record::TimerExpire { timer: count(timer)?, now_ns: int(now)? }
            }
            Layout::Switch([next]) => Record::SwitchTo { pid: i32::try_from(int(next)?).ok()? },
        };
        let pid = self.pid.and_then(|f| f.get(bytes)).and_then(|p| i32::try_from(p).ok());
        Some((pid.unwrap_or(0), record))
    }
}
