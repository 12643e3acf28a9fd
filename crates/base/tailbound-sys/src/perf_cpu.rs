// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples of all that one CPU does, whoever runs there, so many times a second.
//!
//! Context: SETUP (open), COLD (`read`). Units: ns of CLOCK_MONOTONIC. Records go out as they lie in the ring: what
//! is in them is for the caller to read.
//! Not here: samples of one thread by their times alone (`perf`).
//! Source: perf_event_open(2), linux/perf_event.h.

use crate::error::SysError;
use crate::perf::Source;
use crate::perf_ring::{
    Attributes, DISABLED, EXCLUDE_HV, EventState, PerfRing, USE_CLOCKID, Whose,
};

const COMM: u64 = 1 << 9;
const BY_FREQUENCY: u64 = 1 << 10;
const TASK: u64 = 1 << 13;
const TIMES_OF_ALL: u64 = 1 << 18;
const NO_USER_CALLERS: u64 = 1 << 22;
const MAPS_OF_CODE: u64 = 1 << 23;
/// Pages of data: at a thousand samples a second of 300 bytes almost a second.
const PAGES: usize = 64;
/// Callers of a sample; the kernel's own limit is 127.
const CALLERS: u16 = 48;

/// See the module.
#[derive(Debug)]
pub struct CpuSamples(PerfRing);

impl CpuSamples {
    /// Opens an event of `cpu`, off: `frequency` samples a second, with `fields`
    /// (PERF_SAMPLE_*).
    ///
    /// # Errors
    /// ENOENT or EOPNOTSUPP: no such counter here; EACCES: kernel.perf_event_paranoid; EINVAL: more
    /// than kernel.perf_event_max_sample_rate.
    pub fn open(cpu: u32, source: Source, frequency: u64, fields: u64) -> Result<Self, SysError> {
        let (kind, name) = source.kind();
        let attributes = Attributes {
            kind,
            period: frequency,
            sample_type: fields,
            flags: DISABLED
                | EXCLUDE_HV
                | USE_CLOCKID
                | BY_FREQUENCY
                | COMM
                | TASK
                | TIMES_OF_ALL
                | MAPS_OF_CODE
                | NO_USER_CALLERS,
            clock: libc::CLOCK_MONOTONIC,
            max_stack: CALLERS,
            ..Attributes::default()
        };
        let what = format!("{name} of CPU {cpu}");
        let needs = "root, CAP_PERFMON or kernel.perf_event_paranoid below 1";
        PerfRing::open(attributes, Whose::Cpu(cpu), PAGES, &what, needs).map(Self)
    }

    /// Lets it run.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn start(&self) -> Result<(), SysError> {
        self.0.run(EventState::Running)
    }

    /// Stops it.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn stop(&self) -> Result<(), SysError> {
        self.0.run(EventState::Stopped)
    }

    /// Hands over each record, the oldest first: its kind, its flags, and what is behind its header.
    pub fn read(&mut self, each: &mut dyn FnMut(u32, u16, &[u8])) {
        self.0.read(&mut |record, bytes| each(record.kind, record.flags, bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_sampled_while_this_test_runs_there() {
        const SAMPLE: u32 = 9;
        let mut all = match CpuSamples::open(0, Source::Clock, 500, 1) {
            Ok(samples) => samples,
            Err(e) => return tailbound_testing::skip("perf", e),
        };
        all.start().unwrap();
        let (mut n, begin) = (0, std::time::Instant::now());
        // A CPU is sampled whether it is idle or not.
        while n < 20 && begin.elapsed().as_secs() < 30 {
            std::thread::yield_now();
            all.read(&mut |kind, _, bytes| n += u32::from(kind == SAMPLE && bytes.len() == 8));
        }
        assert!(n >= 20, "{n} samples in 30 s");
    }
}
