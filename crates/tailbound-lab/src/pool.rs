// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many cells on the host's cores, one guest per core.
//!
//! Context: COLD. What a guest does depends on nothing here: its time is what it executed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::boot::Progress;
use crate::cell::Cell;
use crate::error::LabError;
use crate::run::{Made, Means, run};

/// How often the caller hears something even when nothing happened.
const TICK: Duration = Duration::from_millis(200);

/// What happened.
#[derive(Debug)]
pub enum Happened {
    /// A cell moved on.
    Progress(usize, Progress),
    /// A cell is done.
    Done(usize, Box<Result<Made, LabError>>),
    /// Nothing: a chance to look at signals.
    Tick,
}

/// Makes all `cells`, at most `jobs` at a time, in their order as far as that goes.
/// `happened` is called in the calling thread.
pub fn run_all(cells: &[Cell], means: &Means<'_>, jobs: usize, happened: &mut dyn FnMut(Happened)) {
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel();
    let send = Mutex::new(send);
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, cells.len().max(1)) {
            let own = send.lock().map(|s| s.clone());
            let Ok(own) = own else { continue };
            let next = &next;
            // QEMU dies with the thread that started it: this one waits for it.
            scope.spawn(move || {
                while !means.stop.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(cell) = cells.get(at) else { return };
                    let made = run(cell, means, &mut |p| {
                        // The receiver lives as long as this scope.
                        drop(own.send(Happened::Progress(at, p)));
                    });
                    drop(own.send(Happened::Done(at, Box::new(made))));
                }
            });
        }
        drop(send);
        loop {
            match receive.recv_timeout(TICK) {
                Ok(what) => happened(what),
                Err(mpsc::RecvTimeoutError::Timeout) => happened(Happened::Tick),
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    });
}
