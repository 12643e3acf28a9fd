// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one who writes: all runs that wait go into the store together, in one transaction, and are answered after it.
//!
//! A thread of its own, because a wait for the disk is the same for one run and for thirty. What is answered with
//! "added" was committed with `synchronous=FULL`.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use tailbound_core::utc;
use tailbound_store::{Added, Incoming, RunSubmission, Store, StoreError, Way};
use tokio::sync::oneshot;

use super::budget::Reservation;
use super::clock::Clock;
use super::problem::Problem;

/// Runs that may wait; the next client is asked to come again.
const WAITING: usize = 128;
/// Runs of one transaction.
const TOGETHER: usize = 32;

/// A run on its way into the store.
struct Job {
    incoming: Incoming,
    system: Option<String>,
    who: String,
    way: Way,
    /// Of the memory that uploads may take.
    _held: Reservation,
    answer: oneshot::Sender<Result<Added, StoreError>>,
}

/// The way to the thread that writes.
pub(super) struct Writer {
    jobs: SyncSender<Job>,
}

impl Writer {
    /// Begins it. It ends with the last sender.
    pub(super) fn begin(store: Store, clock: Clock) -> Self {
        let (jobs, waiting) = sync_channel(WAITING);
        std::thread::spawn(move || write(store, &clock, &waiting));
        Self { jobs }
    }

    /// Adds a run. What it says is on disk when it returns.
    pub(super) async fn add(
        &self,
        incoming: Incoming,
        system: Option<String>,
        who: String,
        way: Way,
        held: Reservation,
    ) -> Result<Added, Problem> {
        let (answer, answered) = oneshot::channel();
        match self.jobs.try_send(Job { incoming, system, who, way, _held: held, answer }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(Problem::Busy),
            Err(TrySendError::Disconnected(_)) => return Err(Problem::Ending),
        }
        answered.await.map_err(|_| Problem::Ending)?.map_err(Problem::from)
    }
}

fn write(mut store: Store, clock: &Clock, waiting: &Receiver<Job>) {
    while let Ok(first) = waiting.recv() {
        let mut jobs = vec![first];
        jobs.extend(waiting.try_iter().take(TOGETHER - 1));
        let now = utc::rfc3339((clock.0)());
        match add(&mut store, &jobs, &now) {
            Ok(added) => {
                for (job, added) in jobs.into_iter().zip(added) {
                    let _ = job.answer.send(Ok(added));
                }
            }
            // One of them may be the cause: each has a transaction of its own.
            Err(_) => {
                for job in jobs {
                    reopen(&mut store, &now);
                    let added = add(&mut store, std::slice::from_ref(&job), &now);
                    let added = added.map(|all| all.first().copied().unwrap_or(Added::Already));
                    let _ = job.answer.send(added);
                }
            }
        }
    }
}

/// A connection that failed may be broken for good (the server was started again): another one, where that can be had.
fn reopen(store: &mut Store, now: &str) {
    if let Ok(other) = Store::open(store.place(), now) {
        *store = other;
    }
}

fn add(store: &mut Store, jobs: &[Job], now: &str) -> Result<Vec<Added>, StoreError> {
    let given: Vec<RunSubmission<'_>> = jobs
        .iter()
        .map(|job| RunSubmission {
            incoming: &job.incoming,
            system: job.system.as_deref(),
            who: Some(&job.who),
            way: job.way,
        })
        .collect();
    store.add_given(&given, now)
}
