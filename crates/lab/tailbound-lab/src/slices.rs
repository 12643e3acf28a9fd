// SPDX-License-Identifier: MIT OR Apache-2.0
//! Short slices for the CPUs of a counted guest: when they are possible, how long they are, what is said of them.
//!
//! Units: us and ns of virtual time.
//! QEMU executes the CPUs of a counted guest one after the other, each until the next timer of virtual time is due.
//! Since 8.1 that time is divided by their number, so that a timer which comes all the time makes all slices short.
//! Source: QEMU accel/tcg/tcg-accel-ops-rr.c, tcg-accel-ops-icount.c (`icount_percpu_budget`), net/filter-buffer.c.

use std::str::FromStr;

use tailbound_core::Run;
use tailbound_core::finding::{Finding, Impact};
use tailbound_core::lab::{CpuCount, Job, LabRecord};
use tailbound_core::number::Real as _;
use tailbound_core::record::Fact;
use tailbound_core::units::{self, ParseTimeError};

use crate::emulator::Emulator;
use crate::error::{LabError, OptionError};
use crate::machine::Machine;

/// Where nobody says how long: short beside a wake-up, and bearable on the host.
pub const SLICE_US: u32 = 4;
/// The longest that says anything: a tick of most kernels.
pub(crate) const SLICE_US_MAX: u32 = 4000;
/// How long the CPUs count to see their shares.
const COUNT_NS: u64 = 10_000_000;
/// The guest is stopped two seconds after it falls asleep for its snapshot. What it sleeps on from there is sliced already,
/// and each slice costs the host as much as one of the measurement.
pub(crate) const WAKES: &str = " tailbound.asleep_ms=2050";
/// The fact of a run that has the shares.
pub const SHARES: &str = "lab.cpu_shares_permille";

/// How long the slices of several CPUs are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Slice {
    /// [`SLICE_US`], where they are possible.
    #[default]
    Usual,
    /// As long as QEMU's timers make them.
    Long,
    /// So many microseconds.
    Us(u32),
}

/// What is wrong with the length of a slice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SliceError {
    /// It is no length of time.
    #[error("{0}")]
    Time(ParseTimeError),
    /// It is too short, too long, or no whole number of microseconds.
    #[error("QEMU takes no such length")]
    Length,
}

impl FromStr for Slice {
    type Err = LabError;
    fn from_str(text: &str) -> Result<Self, LabError> {
        if text == "off" {
            return Ok(Self::Long);
        }
        let wrong = |source| OptionError::Slice { text: text.to_owned(), source };
        let ns = units::parse_ns(text).map_err(|e| wrong(SliceError::Time(e)))?;
        let slice = Self::of_ns(u64::try_from(ns).unwrap_or(0));
        Ok(slice.ok_or_else(|| wrong(SliceError::Length))?)
    }
}

impl Slice {
    /// So many nanoseconds, if that is a length which is possible.
    #[must_use]
    pub fn of_ns(ns: u64) -> Option<Self> {
        let us = u32::try_from(ns / 1000).ok().filter(|us| (1..=SLICE_US_MAX).contains(us))?;
        ns.is_multiple_of(1000).then_some(Self::Us(us))
    }

    /// Its length for a counted guest of so many CPUs; 0 where no slice is ended.
    ///
    /// # Errors
    /// It was asked for and is not possible.
    pub(crate) fn us(
        self,
        cpus: u32,
        machine: &Machine,
        emulator: &Emulator,
    ) -> Result<u32, LabError> {
        let possible = cpus > 1 && machine.stops && emulator.shares_time();
        let asked = match self {
            Self::Long => return Ok(0),
            Self::Usual if possible => return Ok(SLICE_US),
            Self::Usual => return Ok(0),
            Self::Us(us) => us,
        };
        let refused = match cpus {
            0 => OptionError::SliceOfKvm { slice_us: asked },
            1 => OptionError::SliceOfOneCpu { slice_us: asked },
            _ if !machine.stops => OptionError::SliceOfMachine { slice_us: asked },
            _ if !emulator.shares_time() => OptionError::SliceOfQemu {
                slice_us: asked,
                version: emulator.number().unwrap_or("of unknown version").to_owned(),
            },
            _ => return Ok(asked),
        };
        Err(refused.into())
    }
}

/// The job with what sees the shares, where slices are ended.
pub(crate) fn counted(job: &Job, slice_us: u32) -> Job {
    Job { count_ns: if slice_us > 0 { COUNT_NS } else { 0 }, ..job.clone() }
}

/// Puts into `run` what is to be said of several CPUs; `counts`: what the guest counted.
pub(crate) fn say(run: &mut Run, record: &LabRecord, counts: &[u8]) {
    if record.smp < 2 || record.accelerator != "tcg" {
        return;
    }
    if record.slice_ns == 0 {
        run.findings.push(long(record));
        return;
    }
    let shares = shares(counts);
    let fact = match &shares {
        Some(shares) => Fact::of(shares.iter().map(|s| s.1).collect::<Vec<u64>>()),
        None => Fact::Unknown("the guest sent no counts".to_owned()),
    };
    run.header.machine.insert(SHARES.to_owned(), fact);
    run.findings.push(short(record, shares.as_deref()));
}

/// Each CPU and its share, in parts of a thousand.
fn shares(counts: &[u8]) -> Option<Vec<(u32, u64)>> {
    let counts: Vec<CpuCount> = serde_json::from_slice(counts).ok()?;
    let sum: u64 = counts.iter().map(|c| c.counted).sum();
    let part = |c: &CpuCount| {
        Some((c.cpu, c.counted.checked_mul(1000)?.checked_add(sum / 2)?.checked_div(sum)?))
    };
    let shares: Vec<(u32, u64)> = counts.iter().map(part).collect::<Option<_>>()?;
    (!shares.is_empty()).then_some(shares)
}

fn short(record: &LabRecord, shares: Option<&[(u32, u64)]>) -> Finding {
    let slices = units::format_ns(record.slice_ns.real());
    let title = format!(
        "the {} CPUs ran alternately, in slices that end each {slices} of virtual time",
        record.smp
    );
    let Some(shares) = shares else {
        return Finding::new("lab-smp", Impact::Doubt, title).meaning(
            "The share of virtual time that each CPU has is unknown: the guest sent no counts.",
        );
    };
    let each: Vec<String> = shares
        .iter()
        .map(|(cpu, share)| {
            let slower = 1000.0 / (*share).max(1).real();
            format!(
                "CPU {cpu} {:.1} % (so that its paths take {slower:.2} times as long)",
                (*share).real() / 10.0
            )
        })
        .collect();
    Finding::new("lab-smp", Impact::Notice, title)
        .meaning(format!(
            "While all are busy, each has a part of virtual time, measured at the start of this run: {}. While the others sleep it has all of it.",
            each.join(", ")
        ))
        .remedy("Compare runs of equal slices and equal load on the other CPUs, and no others: docs/virtual-time.md.")
}

fn long(record: &LabRecord) -> Finding {
    let title = format!("the {} CPUs ran alternately, in slices of virtual time", record.smp);
    Finding::new("lab-smp", Impact::Doubt, title)
        .meaning("QEMU runs the CPUs of a counted guest one after the other: a wake-up waits for other CPUs' slices, as on no real machine.")
        .remedy("Use --smp 1; or, on x86-64, QEMU 8.1 or later (`tailbound lab qemu fetch`) without `--slice off`, which makes slices short: docs/virtual-time.md.")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::arch::Arch;

    fn emulator(version: &str) -> Emulator {
        Emulator {
            program: PathBuf::new(),
            version: format!("QEMU emulator version {version}"),
            sandbox: true,
            beside: None,
            reason: None,
        }
    }

    #[test]
    fn slices_are_short_where_they_can_be_and_what_was_asked_for_is_never_left_out() {
        let (new, old) = (emulator("10.0.13"), emulator("7.2.22"));
        let pc = Machine::choose(Arch::X86_64, None, crate::Accelerator::Tcg).unwrap();
        let board = Machine::choose(Arch::Arm, None, crate::Accelerator::Tcg).unwrap();
        let us = |slice: Slice, cpus, machine, qemu| slice.us(cpus, machine, qemu);
        assert_eq!(us(Slice::Usual, 2, &pc, &new).unwrap(), SLICE_US);
        for (cpus, machine, qemu) in
            [(1, &pc, &new), (0, &pc, &new), (2, &pc, &old), (2, &board, &new)]
        {
            assert_eq!(us(Slice::Usual, cpus, machine, qemu).unwrap(), 0);
            assert!(us(Slice::Us(8), cpus, machine, qemu).is_err());
        }
        assert_eq!(us(Slice::Us(8), 4, &pc, &new).unwrap(), 8);
        assert_eq!(us(Slice::Long, 2, &pc, &new).unwrap(), 0);
        let e = us(Slice::Us(8), 2, &pc, &old).unwrap_err().to_string();
        assert!(e.contains("lab qemu fetch"), "{e}");
        assert_eq!("4us".parse::<Slice>().unwrap(), Slice::Us(4));
        assert_eq!("off".parse::<Slice>().unwrap(), Slice::Long);
        for wrong in ["0", "0us", "4", "1500ns", "1s", "-4us", ""] {
            assert_eq!(
                wrong.parse::<Slice>().unwrap_err().kind(),
                tailbound_core::FailureKind::Usage,
                "{wrong}"
            );
        }
    }

    #[test]
    fn shares_are_those_that_were_counted() {
        let counts = br#"[{"cpu":0,"counted":625},{"cpu":1,"counted":375}]"#;
        assert_eq!(shares(counts).unwrap(), [(0, 625), (1, 375)]);
        for nothing in [
            &b"[]"[..],
            b"",
            b"[{\"cpu\":0,\"counted\":0}]",
            b"[{\"cpu\":0,\"counted\":18446744073709551615}]",
        ] {
            assert_eq!(shares(nothing), None);
        }
    }
}
