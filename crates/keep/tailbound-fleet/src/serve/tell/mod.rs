// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells of regressions by themselves: looks for new ones when a series was looked at and once a day, and has them sent to web hooks.
//!
//! Threads of their own: looking and sending block. What is to be sent is in the store before it is sent
//! (`tailbound_store`, notices), so that neither a receiver that is away nor a killed server loses it.

mod sending;

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver as Incoming, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use sha2::{Digest as _, Sha256};
use tailbound_agent::hook::Hook;
use tailbound_core::utc;
use tailbound_store::{Notice, Receiver, Since, Store, StoreError, StoreLocation};

use super::clock::Clock;
use super::log::log;
use crate::regressions::{DAYS, Regression, kept, look_at_all};

/// All systems are looked at so often, besides those that a run came in for: `store add` comes by another way.
const ALL_EVERY: Duration = Duration::from_secs(86_400);
/// Runs that come together are looked at together.
const TOGETHER: Duration = Duration::from_millis(300);
/// After an error of the store.
const AGAIN: Duration = Duration::from_secs(10);
const S_PER_DAY: i64 = 86_400;
/// The notice that says that there was a first look.
const FIRST: &str = "first-look";
/// What a receiver is told, as `openapi.json` describes it.
const SCHEMA: &str = "tailbound-webhook/1";

/// What the threads share.
struct Shared {
    place: StoreLocation,
    clock: Clock,
    hooks: Vec<(Receiver, Arc<Hook>)>,
    bell: Bell,
}

/// Wakes who sends; says when all ends.
#[derive(Default)]
struct Bell {
    state: Mutex<(u64, bool)>,
    rung: Condvar,
}

impl Bell {
    fn ring(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0 += 1;
        self.rung.notify_all();
    }

    fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.ring();
    }

    /// Waits for `time`, or until it rings after `heard`. How often it has rung; `None`: all ends.
    fn wait(&self, heard: u64, time: Duration) -> Option<u64> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let quiet = |s: &mut (u64, bool)| s.0 == heard && !s.1;
        let waited = self.rung.wait_timeout_while(state, time, quiet);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        (!state.1).then_some(state.0)
    }
}

/// The way to who tells; without web hooks nobody does.
pub(super) struct Teller(Option<(Sender<String>, Arc<Shared>)>);

impl Teller {
    /// Begins to look and to send, where there is somebody to be told.
    pub(super) fn begin(place: &StoreLocation, clock: &Clock, hooks: &[Arc<Hook>]) -> Self {
        let mut named: Vec<(Receiver, Arc<Hook>)> = Vec::new();
        for hook in hooks {
            let receiver = number(&[hook.url()]);
            if named.iter().all(|(known, _)| *known != receiver) {
                named.push((receiver, Arc::clone(hook)));
            }
        }
        if named.is_empty() {
            return Self(None);
        }
        let shared = Arc::new(Shared {
            place: place.clone(),
            clock: clock.clone(),
            hooks: named,
            bell: Bell::default(),
        });
        let (to, systems) = channel();
        let looks = Arc::clone(&shared);
        std::thread::spawn(move || look(&looks, &systems));
        for at in 0..shared.hooks.len() {
            let sends = Arc::clone(&shared);
            std::thread::spawn(move || {
                if let Some((receiver, hook)) = sends.hooks.get(at) {
                    sending::send(&sends, receiver, hook);
                }
            });
        }
        Self(Some((to, shared)))
    }

    /// Who is told of which system (its identity) a series was looked at.
    pub(super) fn ear(&self) -> Option<Sender<String>> {
        self.0.as_ref().map(|(to, _)| to.clone())
    }

    /// To how many it is told.
    pub(super) fn receivers(&self) -> usize {
        self.0.as_ref().map_or(0, |(_, shared)| shared.hooks.len())
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        if let Some((_, shared)) = &self.0 {
            shared.bell.end();
        }
    }
}

/// The first half of the SHA-256 of `parts`, in hexadecimal.
fn number(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Looks until the server ends.
fn look(shared: &Shared, systems: &Incoming<String>) {
    let mut wanted: Option<BTreeSet<String>> = None;
    loop {
        let trouble = looked(shared, wanted.as_ref()).err();
        if let Some(e) = &trouble {
            log(&format!("looking for regressions: {e}"));
        }
        let time = if trouble.is_some() { AGAIN } else { ALL_EVERY };
        match systems.recv_timeout(time) {
            Err(RecvTimeoutError::Disconnected) => return,
            // After an error nothing is known: all of them.
            Err(RecvTimeoutError::Timeout) => wanted = None,
            Ok(first) => {
                std::thread::park_timeout(TOGETHER);
                let several: BTreeSet<String> =
                    std::iter::once(first).chain(systems.try_iter()).collect();
                wanted = trouble.is_none().then_some(several);
            }
        }
    }
}

/// One look: at all systems, or at some. What is new is kept, to be sent.
fn looked(shared: &Shared, only: Option<&BTreeSet<String>>) -> Result<(), StoreError> {
    let now_s = (shared.clock.0)();
    let now = utc::rfc3339(now_s);
    let mut since = utc::rfc3339(now_s - DAYS * S_PER_DAY);
    since.truncate(10);
    let since = Since::From(since);
    let mut store = Store::open(&shared.place, &now)?;
    let first = store.told_until("", "")?.is_none();
    if first {
        // What stands already has to be known whole, so that nothing of it is taken for new.
        look_at_all(&mut store, &now)?;
    }
    let mut found: Vec<Regression> = Vec::new();
    match only {
        Some(names) => {
            for name in names {
                if let Some(system) = store.system_named(name)? {
                    found.extend(kept(&mut store, &since, Some(&system))?.regressions);
                }
            }
        }
        None => found = kept(&mut store, &since, None)?.regressions,
    }
    // What stands already when somebody is to be told for the first time is nothing new.
    let receivers: Vec<Receiver> = match first {
        true => Vec::new(),
        false => shared.hooks.iter().map(|(receiver, _)| receiver.clone()).collect(),
    };
    for regression in &found {
        let told = store.told_until(&regression.system, &regression.workload)?;
        if told.is_some_and(|until| regression.since <= until) {
            continue;
        }
        let notice = notice(regression, &now);
        if store.keep_notice(&notice, &receivers, now_s)? && !first {
            log(&format!("new regression: {}", regression.subject()));
            shared.bell.ring();
        }
    }
    if first {
        let text = |t: &str| t.to_owned();
        let mark = Notice {
            id: text(FIRST),
            system: String::new(),
            workload: String::new(),
            newest: now.clone(),
            made: now,
            json: text("{}"),
        };
        store.keep_notice(&mark, &[], now_s)?;
        if !found.is_empty() {
            log(&format!(
                "{} regressions stand already: they are on /regressions and are not sent",
                found.len()
            ));
        }
    }
    Ok(())
}

/// What is told of a regression.
fn notice(regression: &Regression, now: &str) -> Notice {
    let id = number(&[&regression.system, &regression.workload, &regression.since_run]);
    let body = json!({
        "schema": SCHEMA,
        "event": "regression",
        "id": id,
        "at": now,
        "text": regression.subject(),
        "mail": {"subject": regression.subject(), "body": regression.mail()},
        "regression": regression,
    });
    Notice {
        id,
        system: regression.system.clone(),
        workload: regression.workload.clone(),
        newest: regression.newest.clone(),
        made: now.to_owned(),
        json: body.to_string(),
    }
}
