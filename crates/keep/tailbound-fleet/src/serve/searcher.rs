// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks at the series that runs came for, one after the other, and keeps what it found: pages only read it.
//!
//! A thread of its own, behind everything else of the machine: it rests as long as it works. Which series wait is in the store, so that
//! runs which came by another way (`store add`) are found, and those of a server that was killed. A series whose runs come faster
//! than it is looked at is looked at once for several of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tailbound_core::utc;
use tailbound_store::{Store, StoreError, StoreLocation, Whose};
use tailbound_sys::sched::{self, Attributes};

use super::clock::Clock;
use super::log::log;
use crate::regressions::look_at;

/// Series that are asked for at a time.
const TOGETHER: u32 = 32;
/// How often it is looked for runs that came by another way, and again after an error.
const EVERY: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_secs(10);
/// After a run came in.
const AFTER_ANSWERS: Duration = Duration::from_millis(300);
const SCHED_BATCH: i32 = 3;
const NICE: i32 = 10;

#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    ring: Condvar,
    ending: AtomicBool,
}

/// See the module.
pub(super) struct Searcher(Arc<Bell>);

impl Searcher {
    /// Begins it. `told` is given the identity of each system of which a series was looked at.
    pub(super) fn begin(
        place: &StoreLocation,
        clock: &Clock,
        told: Option<Sender<String>>,
    ) -> Self {
        let bell = Arc::<Bell>::default();
        let (hears, place, clock) = (Arc::clone(&bell), place.clone(), clock.clone());
        std::thread::spawn(move || {
            // Where it may not, it is as everybody.
            let _ = sched::set(
                0,
                &Attributes { policy: SCHED_BATCH, nice: NICE, ..Attributes::default() },
            );
            search(&hears, &place, &clock, told.as_ref());
        });
        Self(bell)
    }

    /// A run came in.
    pub(super) fn came_in(&self) {
        self.0.wake();
    }
}

impl Drop for Searcher {
    fn drop(&mut self) {
        self.0.ending.store(true, Ordering::SeqCst);
        self.0.wake();
    }
}

impl Bell {
    fn wake(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ring.notify_all();
    }

    /// Waits until it rings, or for `time`.
    fn wait(&self, time: Duration) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ring.wait_timeout_while(rung, time, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }
}

fn search(bell: &Bell, place: &StoreLocation, clock: &Clock, told: Option<&Sender<String>>) {
    let mut store = None;
    let mut pause = EVERY;
    while !bell.is_ending() {
        bell.wait(pause);
        // Runs that come together are looked at together, and answered first.
        std::thread::park_timeout(AFTER_ANSWERS);
        pause = EVERY;
        while !bell.is_ending() {
            match look_at_some(&mut store, bell, place, clock, told) {
                Ok(0) => break,
                Ok(_) => {}
                Err(e) => {
                    log(&format!("looking for what became worse: {e}"));
                    // The connection may be broken for good.
                    (store, pause) = (None, AGAIN);
                    break;
                }
            }
        }
    }
}

/// Looks at some series; how many.
fn look_at_some(
    store: &mut Option<Store>,
    bell: &Bell,
    place: &StoreLocation,
    clock: &Clock,
    told: Option<&Sender<String>>,
) -> Result<usize, StoreError> {
    let now = || utc::rfc3339((clock.0)());
    let store = match store {
        Some(store) => store,
        None => store.insert(Store::open(place, &now())?),
    };
    let due = store.due_series(Whose::All, TOGETHER)?;
    for series in &due {
        let began = Instant::now();
        look_at(store, series, &now())?;
        if let Some(told) = told {
            // Who tells ends with the server alone.
            let _ = told.send(series.system.clone());
        }
        if bell.is_ending() {
            break;
        }
        std::thread::park_timeout(began.elapsed());
    }
    Ok(due.len())
}
