// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who unpacks and judges uploads, and when it is enough.
//!
//! Units: bytes; ns of CPU time, so that a busy machine refuses nothing. Most run files are judged within milliseconds; they have places of their own. What turns out to
//! be large gives its place back and goes on where one at a time goes on, so that no large file keeps a small one waiting. A token has some files
//! under way and one large one. All of it ends with the request, and with the server.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tailbound_store::{Cancellation, Consumption};
use tailbound_sys::clock;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::budget::Reservation;
use super::judge_error::{CPU_NS_MAX, JudgeError, WEIGHT_BYTES_MAX};
use super::problem::Problem;

/// Files of one token under way.
const OF_TOKEN: usize = 8;
/// Up to here a file is a small one.
const SMALL_BYTES: u64 = 4 << 20;
const SMALL_CPU_NS: i64 = 250_000_000;
/// Large files that wait or are judged; further ones are asked to come again.
const LARGE_MOST: usize = 4;
/// Memory is reserved by steps.
const STEP_BYTES: u64 = 256 << 10;

/// CPU time of this thread.
pub(super) fn cpu_ns() -> i64 {
    clock::now_ns(clock::CLOCK_THREAD_CPUTIME_ID)
}

/// Gives work up when the request that wanted it ends.
pub(super) struct CancelGuard(pub(super) Cancellation);

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// See the module.
pub(super) struct Judges {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
    /// Whose large files wait or are judged.
    large_of: Mutex<HashSet<String>>,
    tokens: Mutex<HashMap<String, Weak<Semaphore>>>,
}

impl Judges {
    pub(super) fn new(cores: usize) -> Arc<Self> {
        Arc::new(Self {
            small: Arc::new(Semaphore::new(cores)),
            large: Arc::new(Semaphore::new(1)),
            large_of: Mutex::default(),
            tokens: Mutex::default(),
        })
    }

    /// A place among the files of one token.
    pub(super) async fn of_token(
        &self,
        token: &str,
        time: Duration,
    ) -> Result<OwnedSemaphorePermit, Problem> {
        let places = {
            let mut all = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|_, places| places.strong_count() > 0);
            let known = all.get(token).and_then(Weak::upgrade);
            let places = known.unwrap_or_else(|| Arc::new(Semaphore::new(OF_TOKEN)));
            all.insert(token.to_owned(), Arc::downgrade(&places));
            places
        };
        place(places, time).await
    }

    /// A place among the small files.
    pub(super) async fn small(&self, time: Duration) -> Result<OwnedSemaphorePermit, Problem> {
        place(Arc::clone(&self.small), time).await
    }
}

async fn place(of: Arc<Semaphore>, time: Duration) -> Result<OwnedSemaphorePermit, Problem> {
    let place = tokio::time::timeout(time, of.acquire_owned()).await;
    place.map_err(|_| Problem::Busy)?.map_err(|_| Problem::Ending)
}

/// Looks on while a file is unpacked and judged.
pub(super) struct JudgeWatch {
    judges: Arc<Judges>,
    owner: String,
    place: Option<OwnedSemaphorePermit>,
    large: bool,
    held: Reservation,
    limits: JudgeLimits,
    /// Of the thread that reads, when it began.
    began_ns: Option<i64>,
    /// What was read so far.
    last: Consumption,
}

/// When it is enough.
pub(super) struct JudgeLimits {
    /// Whoever handed it in has gone.
    pub(super) cancel: Cancellation,
    /// Plain bytes of a file.
    pub(super) plain_bytes_max: u64,
    /// A large file waits for its turn so long.
    pub(super) patience: Duration,
}

impl JudgeWatch {
    pub(super) fn new(
        judges: Arc<Judges>,
        owner: String,
        place: OwnedSemaphorePermit,
        held: Reservation,
        limits: JudgeLimits,
    ) -> Self {
        Self {
            judges,
            owner,
            place: Some(place),
            large: false,
            held,
            limits,
            began_ns: None,
            last: Consumption::default(),
        }
    }

    /// May it be read on?
    pub(super) fn at(&mut self, now: Consumption) -> io::Result<()> {
        self.last = now;
        Ok(self.judged(now)?)
    }

    /// The same where nothing more came of what was read.
    pub(super) fn again(&mut self) -> io::Result<()> {
        Ok(self.judged(self.last)?)
    }

    fn judged(&mut self, now: Consumption) -> Result<(), JudgeError> {
        let took_ns = cpu_ns() - *self.began_ns.get_or_insert_with(cpu_ns);
        if self.limits.cancel.is_cancelled() {
            return Err(JudgeError::Cancelled);
        }
        if now.plain_bytes > self.limits.plain_bytes_max {
            return Err(JudgeError::Plain(self.limits.plain_bytes_max >> 20));
        }
        if now.weight_bytes > WEIGHT_BYTES_MAX {
            return Err(JudgeError::Weight);
        }
        if took_ns > CPU_NS_MAX {
            return Err(JudgeError::Time);
        }
        if now.weight_bytes > self.held.bytes() {
            let bytes = now.weight_bytes.next_multiple_of(STEP_BYTES);
            self.held.hold(bytes).map_err(|_| JudgeError::Busy)?;
        }
        if !self.large && (now.weight_bytes > SMALL_BYTES || took_ns > SMALL_CPU_NS) {
            self.change_places()?;
        }
        Ok(())
    }

    /// From the small files to the large ones.
    fn change_places(&mut self) -> Result<(), JudgeError> {
        {
            let mut of = self.judges.large_of.lock().unwrap_or_else(PoisonError::into_inner);
            if of.len() >= LARGE_MOST || !of.insert(self.owner.clone()) {
                return Err(JudgeError::Busy);
            }
        }
        self.large = true;
        self.place = None;
        let place = place(Arc::clone(&self.judges.large), self.limits.patience);
        // This is a thread on which waiting harms nobody.
        self.place = Some(Handle::current().block_on(place).map_err(|_| JudgeError::Busy)?);
        Ok(())
    }

    /// It was judged: what is held from now on is the run and its packed file.
    pub(super) fn over(mut self, packed_bytes: u64) -> Reservation {
        let bytes = self.held.bytes() + packed_bytes;
        // Where there is no room for both it is written all the same: it is in memory already, and goes soon.
        let _ = self.held.hold(bytes);
        let nothing = self.held.emptied();
        std::mem::replace(&mut self.held, nothing)
    }
}

impl Drop for JudgeWatch {
    fn drop(&mut self) {
        if self.large {
            let mut of = self.judges.large_of.lock().unwrap_or_else(PoisonError::into_inner);
            of.remove(&self.owner);
        }
    }
}
