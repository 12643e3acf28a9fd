// SPDX-License-Identifier: MIT OR Apache-2.0
//! A second kernel below Linux: of a timer that wakes one of its threads, where its time and the thread are.
//!
//! Context: HOT. Pure but for what is read of the guest.
//! Where they lie depends on how that kernel was configured, so both are found by what happens: a time is no pointer and
//! no small number, and the thread is what is on the CPU next. Linux knows such a thread too, and that is what is told.
//! Source: Xenomai 3 include/cobalt/kernel/{timer,thread}.h, EVL include/evl/{timer,thread}.h, Dovetail's `dovetail_altsched_context`.

/// The timer's time is one of its first words.
const TIME_WORDS: u64 = 6;
/// Less is a count, a priority or a flag; more is a pointer.
const TIMES: core::ops::Range<u64> = 1 << 20..1 << 62;
/// Bytes around the timer in which its thread is found.
const NEAR: i64 = 4096;

/// See the module.
#[derive(Clone, Copy, Default)]
pub struct Second {
    /// Bytes from a timer to the thread.
    thread_at: Option<i64>,
    /// The timer that woke a thread, where that one is not known yet.
    asked: Option<u64>,
}

impl Second {
    /// A thread is on the CPU: is it in the neighbourhood of the timer that was asked about?
    pub fn switched(&mut self, thread: u64, read: impl Fn(u64) -> Option<u64>) {
        let Some(timer) = self.asked.take() else { return };
        let near = (-NEAR..NEAR).step_by(8);
        let mut found = near.filter(|at| read(timer.wrapping_add_signed(*at)) == Some(thread));
        self.thread_at = found.next();
    }

    /// The thread that this timer wakes, and when it was due. None: not known yet.
    pub fn woken(&mut self, timer: u64, read: impl Fn(u64) -> Option<u64>) -> Option<(u64, u64)> {
        let Some(at) = self.thread_at else {
            self.asked = Some(timer);
            return None;
        };
        let mut words = (0..TIME_WORDS).filter_map(|word| read(timer.wrapping_add(word * 8)));
        let due = words.find(|word| TIMES.contains(word))?;
        Some((read(timer.wrapping_add_signed(at))?, due))
    }
}
