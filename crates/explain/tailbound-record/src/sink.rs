// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the events of followed threads are made into: late wake-ups (`blame`) or cycles (`watch`).
//!
//! Units: ns.

use tailbound_trace::blame::Follow;
use tailbound_trace::cycle::Cycles;
use tailbound_trace::event::Entry;

/// What the events of followed threads are made into.
pub trait Sink {
    /// This thread is of interest from here on.
    fn watch(&mut self, tid: i32);
    /// What the thread is called.
    fn name_thread(&mut self, tid: i32, name: &str);
    /// Events of some CPU were lost just before this time.
    fn lost(&mut self, t_ns: u64);
    /// What happened up to now is about to be handed over.
    fn polls(&mut self) {}
    /// The next event.
    fn entry(&mut self, e: &Entry);
    /// All that happened up to now was handed over.
    fn polled(&mut self) {}
}

macro_rules! sink {
    ($what:ty) => {
        impl Sink for $what {
            fn watch(&mut self, tid: i32) {
                self.watch(tid);
            }
            fn name_thread(&mut self, tid: i32, name: &str) {
                self.name_thread(tid, name);
            }
            fn lost(&mut self, t_ns: u64) {
                self.lost(t_ns);
            }
            fn entry(&mut self, e: &Entry) {
                self.entry(e);
            }
        }
    };
}
sink!(Follow);
sink!(Cycles);
