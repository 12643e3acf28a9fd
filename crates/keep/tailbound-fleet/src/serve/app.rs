// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all requests share: connections to the store, the writer, sessions, counters, the clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tailbound_core::utc;
use tailbound_store::{Cancellation, Store, StoreError, StoreLocation};
use tokio::sync::{Notify, watch};

use super::Config;
use super::agents::{AgentDirectory, Doing};
use super::budget::MemoryBudget;
use super::clock::Clock;
use super::counters::Counters;
use super::judges::{CancelGuard, Judges};
use super::problem::Problem;
use super::readers::{ReaderClass, Readers};
use super::records::SystemRecords;
use super::searcher::Searcher;
use super::sessions::Sessions;
use super::tell::Teller;
use super::under_way::UnderWayRequests;
use super::writer::Writer;

/// Memory of all that is sent, and of one token.
const SENT_BYTES: u64 = 128 << 20;
const SENT_BYTES_OF_TOKEN: u64 = 96 << 20;
/// Memory of all answers that are not read yet.
const ANSWER_BYTES: u64 = 64 << 20;
const S_PER_DAY: i64 = 86_400;

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
    /// Who unpacks and judges uploads.
    pub(super) judges: Arc<Judges>,
    /// Requests of each token.
    pub(super) under_way: Arc<UnderWayRequests>,
    /// Memory of what is sent, until it is in the store.
    pub(super) memory: Arc<MemoryBudget>,
    /// Memory of answers, until they are read.
    pub(super) answers: Arc<MemoryBudget>,
    /// Looks at series that runs came for.
    pub(super) searcher: Searcher,
    /// What was read of each system.
    pub(super) records: SystemRecords,
    /// When the server began, s since 1970.
    pub(super) began_s: i64,
    clock: Clock,
    place: StoreLocation,
    idle: Mutex<Vec<Store>>,
    /// Agents may have said something that was not kept: there was no server before, or no room.
    pub(super) unheard: AtomicBool,
    readers: Readers,
}

impl App {
    /// Opens the store, and makes it where there is none.
    pub(super) fn open(config: Config, clock: Clock) -> Result<Self, StoreError> {
        let now = utc::rfc3339((clock.0)());
        let store = Store::open_or_make(&config.store, &now)?;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let teller = Teller::begin(&config.store, &clock, &config.webhooks);
        Ok(Self {
            writer: Writer::begin(store, clock.clone()),
            searcher: Searcher::begin(&config.store, &clock, teller.ear()),
            sessions: Sessions::default(),
            counters: Counters::default(),
            agents: AgentDirectory::default(),
            doing: Doing::default(),
            teller,
            handed_out: Notify::new(),
            ending: watch::Sender::new(false),
            judges: Judges::new(cores),
            under_way: Arc::default(),
            memory: MemoryBudget::new(SENT_BYTES, SENT_BYTES_OF_TOKEN),
            answers: MemoryBudget::new(ANSWER_BYTES, ANSWER_BYTES),
            records: SystemRecords::default(),
            began_s: (clock.0)(),
            clock,
            place: config.store.clone(),
            idle: Mutex::default(),
            unheard: AtomicBool::new(true),
            readers: Readers::new(cores),
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

    /// Asks the store for a page, on a thread where waiting harms nobody. Given up when nobody waits for it any more.
    pub(super) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&mut Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Problem> {
        self.asked_in(ReaderClass::Page, |store, _| question(store)).await
    }

    /// The same of what takes no time, and of what is written: who asks, what work there is.
    pub(super) async fn ask_quick<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&mut Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Problem> {
        self.asked_in(ReaderClass::Quick, |store, _| question(store)).await
    }

    /// The same of what reads whole run files or many histograms: one at a time.
    pub(super) async fn ask_large<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&mut Store, &Cancellation) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Problem> {
        self.asked_in(ReaderClass::Large, question).await
    }

    async fn asked_in<T: Send + 'static>(
        self: &Arc<Self>,
        class: ReaderClass,
        question: impl FnOnce(&mut Store, &Cancellation) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Problem> {
        let place = self.readers.place(class, self.config.request_time).await?;
        let cancel = Cancellation::default();
        let _ends = CancelGuard(cancel.clone());
        let app = Arc::clone(self);
        let answer = tokio::task::spawn_blocking(move || {
            // Held until the work is over, which may be after the request.
            let _place = place;
            app.asked(class, &cancel, question)
        });
        answer.await.map_err(|_| Problem::Ours)?.map_err(Problem::from)
    }

    fn asked<T>(
        &self,
        class: ReaderClass,
        cancel: &Cancellation,
        question: impl FnOnce(&mut Store, &Cancellation) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if cancel.is_cancelled() {
            return Err(StoreError::Cancelled);
        }
        let idle = self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
        let mut store = match idle {
            Some(store) => store,
            None => Store::open(&self.place, &self.now())?,
        };
        // What was begun to be written is written.
        store.cancelled_by(Some(cancel).filter(|_| class != ReaderClass::Quick))?;
        let answer = question(&mut store, cancel);
        let usable = store.cancelled_by(None).is_ok();
        // A connection that failed may be broken: the next question opens another one.
        if matches!(answer, Err(StoreError::Full { .. })) {
            self.unheard.store(true, Ordering::SeqCst);
        } else if usable && !matches!(answer, Err(StoreError::Database { .. } | StoreError::Io(_)))
        {
            self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(store);
        }
        answer
    }
}
