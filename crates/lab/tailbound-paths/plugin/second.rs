// SPDX-License-Identifier: MIT OR Apache-2.0
//! A second kernel below Linux: of a timer that wakes one of its threads, where its time and the thread are.
//!
//! Context: HOT. Pure but for what is read of the guest.
//! Where they lie depends on how that kernel was configured, so both are found by what happens: a time is no pointer and
//! no small number, and a later one the next time; the thread is what is on the CPU next. Linux knows such a thread too, and
//! that is what is told.
//! Source: Xenomai 3 include/cobalt/kernel/{timer,thread}.h, EVL include/evl/{timer,thread}.h, Dovetail's `dovetail_altsched_context`.

/// The timer's time is one of its first words.
const TIME_WORDS: usize = 6;
/// Less is a count, a priority or a flag; more is a pointer, or two of them.
const TIMES: core::ops::Range<u64> = 1 << 20..1 << 62;
/// Bytes around the timer in which its thread is found.
const NEAR: i64 = 4096;

/// A timer that wakes a thread.
#[derive(Clone, Copy)]
struct Timer {
    at: u64,
    /// What its first words held last.
    words: [u64; TIME_WORDS],
    /// Which of them have held a time whenever it was seen, and a later one each time.
    times: [bool; TIME_WORDS],
}

/// See the module.
#[derive(Clone, Copy, Default)]
pub struct Second {
    /// Bytes from a timer to the thread.
    thread_at: Option<i64>,
    /// The first timer of that kind that was seen twice, or may be.
    timer: Option<Timer>,
    /// The timer that woke a thread, where that one is not known yet.
    asked: Option<u64>,
}

impl Second {
    /// A thread is on the CPU: is it in the neighbourhood of the timer that was asked about? `pointer` reads one of
    /// `pointer_bytes`.
    pub fn switched(&mut self, thread: u64, pointer_bytes: usize, pointer: impl Fn(u64) -> Option<u64>) {
        let Some(timer) = self.asked.take() else { return };
        let near = (-NEAR..NEAR).step_by(pointer_bytes);
        let mut found = near.filter(|at| pointer(timer.wrapping_add_signed(*at)) == Some(thread));
        self.thread_at = found.next();
    }

    /// The thread that this timer wakes, and when it was due. None: not known yet. `word` reads 64 bits.
    pub fn woken(
        &mut self,
        timer: u64,
        word: impl Fn(u64) -> Option<u64>,
        pointer: impl Fn(u64) -> Option<u64>,
    ) -> Option<(u64, u64)> {
        let mut words = [0; TIME_WORDS];
        for (nth, place) in words.iter_mut().enumerate() {
            *place = word(timer.wrapping_add(nth as u64 * 8))?;
        }
        let Some(known) = self.timer.as_mut().filter(|known| known.at == timer || self.thread_at.is_some())
        else {
            self.timer = Some(Timer { at: timer, words, times: words.map(|word| TIMES.contains(&word)) });
            self.asked = Some(timer);
            return None;
        };
        if known.at == timer {
            for ((is, now), before) in known.times.iter_mut().zip(words).zip(known.words) {
                *is &= TIMES.contains(&now) && now > before;
            }
            known.words = words;
        }
        let Some(at) = self.thread_at else {
            self.asked = Some(timer);
            return None;
        };
        let (_, due) = known.times.iter().zip(words).find(|(is, _)| **is)?;
        Some((pointer(timer.wrapping_add_signed(at))?, due))
    }
}
