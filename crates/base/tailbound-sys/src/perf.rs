// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples of the kernel's performance events of the calling thread: when a handler in the
//! kernel took each, by its own clock.
//!
//! Context: SETUP (open), HOT (`take`: reads shared memory, no system call). Units: ns of
//! CLOCK_MONOTONIC_RAW, which handlers may read even where nothing can be locked.
//! Not here: the ring (`perf_ring`).
//! Source: perf_event_open(2), linux/perf_event.h.

use crate::counter::CLOCK_MONOTONIC_RAW;
use crate::error::SysError;
use crate::perf_ring::EventState;
use crate::perf_ring::{
    Attributes, DISABLED, EXCLUDE_HV, PerfRing, RECORD_LOST, RECORD_SAMPLE, SAMPLE_TIME,
    TYPE_HARDWARE, TYPE_SOFTWARE, USE_CLOCKID, Whose,
};

/// What makes a sample fall due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A hardware counter of cycles that overflows: an NMI on x86, an interrupt or pseudo-NMI on ARM.
    Cycles,
    /// A timer of the kernel: an ordinary interrupt.
    Clock,
}

const EXCLUDE_KERNEL: u64 = 1 << 5;
const PAGES: usize = 8;

impl Source {
    /// The kind of event, and its name.
    pub(crate) fn kind(self) -> (u32, &'static str) {
        match self {
            Self::Cycles => (TYPE_HARDWARE, "cycles"),
            Self::Clock => (TYPE_SOFTWARE, "cpu-clock"),
        }
    }
}

/// Samples of one thread.
#[derive(Debug)]
pub struct Samples {
    ring: PerfRing,
    lost: u64,
}

impl Samples {
    /// Opens an event of the calling thread, off: a sample each `period` cycles or ns.
    ///
    /// # Errors
    /// ENOENT or EOPNOTSUPP: no such counter here; EACCES: kernel.perf_event_paranoid.
    pub fn open(source: Source, period: u64) -> Result<Self, SysError> {
        let (kind, what) = source.kind();
        let attributes = Attributes {
            kind,
            period,
            sample_type: SAMPLE_TIME,
            flags: DISABLED | EXCLUDE_HV | USE_CLOCKID
                // The software clock samples by itself; cycles are to be those of the loop.
                | if source == Source::Cycles { EXCLUDE_KERNEL } else { 0 },
            clock: CLOCK_MONOTONIC_RAW,
            ..Attributes::default()
        };
        let needs = "root, CAP_PERFMON or kernel.perf_event_paranoid below 2";
        let ring = PerfRing::open(attributes, Whose::Thread(0), PAGES, what, needs)?;
        Ok(Self { ring, lost: 0 })
    }

    /// Lets it run.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn enable(&self) -> Result<(), SysError> {
        self.ring.run(EventState::Running)
    }

    /// The oldest sample's time.
    pub fn take(&mut self) -> Option<i64> {
        while let Some(record) = self.ring.next() {
            let first = self.ring.word(record.body);
            if record.kind == RECORD_LOST {
                let count = self.ring.word(record.body.wrapping_add(8));
                self.lost = self.lost.saturating_add(count);
            }
            self.ring.done(record);
            if record.kind == RECORD_SAMPLE {
                return i64::try_from(first).ok();
            }
        }
        None
    }

    /// Samples that found no room.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn samples_are_stamped_while_the_thread_runs() {
        let mut samples = match Samples::open(Source::Clock, 500_000) {
            Ok(samples) => samples,
            Err(e) => return tailbound_testing::skip("perf", e),
        };
        let begin = clock::now_ns(CLOCK_MONOTONIC_RAW);
        samples.enable().unwrap();
        let (mut n, mut last) = (0, begin);
        while n < 200 && clock::now_ns(CLOCK_MONOTONIC_RAW) - begin < 10_000_000_000 {
            while let Some(at) = samples.take() {
                let now = clock::now_ns(CLOCK_MONOTONIC_RAW);
                assert!(at >= last && at <= now, "{last} {at} {now}");
                last = at;
                n += 1;
            }
        }
        assert!(n >= 20, "{n} samples in 10 s");
        assert_eq!(samples.lost(), 0);
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "what this machine has is worth knowing")]
    fn a_counter_that_is_not_there_is_refused_with_its_name() {
        match Samples::open(Source::Cycles, 1 << 30) {
            Ok(_) => println!("this machine counts cycles"),
            Err(e) => assert!(e.to_string().contains("cycles"), "{e}"),
        }
    }
}
