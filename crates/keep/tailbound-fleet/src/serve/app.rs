// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all requests share: connections to the store, the writer, sessions, counters, the clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tailbound_core::utc;
use tailbound_store::{Store, StoreError, StoreLocation};
use tokio::sync::{Notify, Semaphore, watch};

use super::Config;
use super::counters::Counters;
use super::page::Problem;
use super::sessions::Sessions;
use super::tell::Teller;
use super::work::{AgentDirectory, Doing};
use super::writer::Writer;

/// Connections that read at the same time.
const READERS: usize = 4;
const S_PER_DAY: i64 = 86_400;

/// Seconds since 1970; tests have their own.
#[derive(Clone)]
pub struct Clock(pub Arc<dyn Fn() -> i64 + Send + Sync>);

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Clock").finish()
    }
}

/// Shared by all requests.
pub(super) struct App {
    pub(super) config: Config,
    pub(super) writer: Writer,
    pub(super) sessions: Sessions,
    pub(super) counters: Counters,
    /// Agents that asked for work since the server began.
    pub(super) agents: AgentDirectory,
    /// What they make now, as they said last.
    pub(super) doing: Doing,
    /// Tells of regressions.
    pub(super) teller: Teller,
    /// Told when work was handed out.
    pub(super) handed_out: Notify,
    /// Whether the server ends: who waits is answered then.
    pub(super) ending: watch::Sender<bool>,
    /// How many uploads are unpacked and judged at the same time.
    pub(super) judges: Semaphore,
    /// When the server began, s since 1970.
    pub(super) began_s: i64,
    clock: Clock,
    place: StoreLocation,
    idle: Mutex<Vec<Store>>,
    /// Agents may have said something that was not kept: there was no server before, or no room.
    pub(super) unheard: AtomicBool,
    readers: Semaphore,
}

impl App {
    /// Opens the store, and makes it where there is none.
    pub(super) fn open(config: Config, clock: Clock) -> Result<Self, StoreError> {
        let now = utc::rfc3339((clock.0)());
        let store = Store::open_or_make(&config.store, &now)?;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Ok(Self {
            writer: Writer::begin(store, clock.clone()),
            sessions: Sessions::default(),
            counters: Counters::default(),
            agents: AgentDirectory::default(),
            doing: Doing::default(),
            teller: Teller::begin(&config.store, &clock, &config.webhooks),
            handed_out: Notify::new(),
            ending: watch::Sender::new(false),
            judges: Semaphore::new(cores),
            began_s: (clock.0)(),
            clock,
            place: config.store.clone(),
            idle: Mutex::default(),
            unheard: AtomicBool::new(true),
            readers: Semaphore::new(READERS),
            config,
        })
    }

    /// Seconds since 1970.
    pub(super) fn now_s(&self) -> i64 {
        (self.clock.0)()
    }

    /// Now, RFC 3339.
    pub(super) fn now(&self) -> String {
        utc::rfc3339(self.now_s())
    }

    /// The date `days` days ago.
    pub(super) fn days_ago(&self, days: i64) -> String {
        let mut text = utc::rfc3339(self.now_s() - days * S_PER_DAY);
        text.truncate(10);
        text
    }

    /// Asks the store, on a thread where waiting harms nobody.
    pub(super) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&mut Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Problem> {
        let _place = self.readers.acquire().await.map_err(|_| Problem::Ending)?;
        let app = Arc::clone(self);
        let answer = tokio::task::spawn_blocking(move || app.asked(question)).await;
        answer.map_err(|_| Problem::Ours)?.map_err(Problem::from)
    }

    fn asked<T>(
        &self,
        question: impl FnOnce(&mut Store) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
        let mut store = match idle {
            Some(store) => store,
            None => Store::open(&self.place, &self.now())?,
        };
        let answer = question(&mut store);
        // A connection that failed may be broken: the next question opens another one.
        if matches!(answer, Err(StoreError::Full { .. })) {
            self.unheard.store(true, Ordering::SeqCst);
        } else if !matches!(answer, Err(StoreError::Database { .. } | StoreError::Io(_))) {
            self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(store);
        }
        answer
    }
}
