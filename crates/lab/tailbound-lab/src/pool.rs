// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many guests on the host's cores, one guest per core.
//!
//! What a guest does depends on nothing here: its time is what it executed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::boot::Progress;
use crate::cell::Cell;
use crate::error::LabError;
use crate::run::{Made, Means, run};

/// How often the caller hears something even when nothing happened.
const TICK: Duration = Duration::from_millis(200);

/// What happened to a task of type `R`, which tells `P` while it works.
#[derive(Debug)]
pub enum Happened<P, R> {
    /// A task begins.
    Begun(usize),
    /// A task moved on.
    Progress(usize, P),
    /// A task is done.
    Done(usize, R),
    /// Nothing: a chance to look at signals.
    Tick,
}

/// What is done with one task; it tells how it goes.
pub type Work<'a, T, P, R> = dyn Fn(&T, &mut dyn FnMut(P)) -> R + Sync + 'a;

/// Works on all `tasks`, at most `jobs` at a time, in their order as far as that goes; begins none once `stopped`.
/// `happened` is called in the calling thread.
pub fn on_cores<T: Sync, P: Send, R: Send>(
    tasks: &[T],
    jobs: usize,
    stopped: &(dyn Fn() -> bool + Sync),
    work: &Work<'_, T, P, R>,
    happened: &mut dyn FnMut(Happened<P, R>),
) {
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, tasks.len().max(1)) {
            let (own, next) = (send.clone(), &next);
            // QEMU dies with the thread that started it: this one waits for it.
            scope.spawn(move || {
                while !stopped() {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(task) = tasks.get(at) else { return };
                    drop(own.send(Happened::Begun(at)));
                    let done = work(task, &mut |p| {
                        // The receiver lives as long as this scope.
                        drop(own.send(Happened::Progress(at, p)));
                    });
                    drop(own.send(Happened::Done(at, done)));
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

/// Makes all `cells` so.
pub fn run_all(
    cells: &[Cell],
    means: &Means<'_>,
    jobs: usize,
    happened: &mut dyn FnMut(Happened<Progress, Result<Made, LabError>>),
) {
    let stopped = || means.stop.load(Ordering::Relaxed);
    on_cores(cells, jobs, &stopped, &|cell, progress| run(cell, means, progress), happened);
}
