// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends what waits for one receiver, one after the other, until the server ends.
//!
//! At least once: who is killed between sending and noting it sends the same again, with the same identity.

use std::time::Duration;

use tailbound_agent::hook::Hook;
use tailbound_core::utc;
use tailbound_store::{Store, StoreError};

use super::{S_PER_DAY, Shared};
use crate::serve::log::log;

/// After the first failure; doubled with each further one.
const PAUSE_LEAST_S: i64 = 5;
const PAUSE_MOST_S: i64 = 3600;
/// While a notice is sent it is nobody else's.
const HELD_S: i64 = 120;
/// What was not taken for so long is given up.
const GIVE_UP_S: i64 = 7 * S_PER_DAY;
/// How often it is looked whether a time has come, while something waits, and otherwise.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_IDLE: Duration = Duration::from_secs(60);

/// The pause after `tries` failures.
fn pause_s(tries: i64) -> i64 {
    let doubled = u32::try_from(tries.clamp(0, 20)).unwrap_or(20);
    PAUSE_LEAST_S.saturating_mul(1i64 << doubled).min(PAUSE_MOST_S)
}

pub(super) fn send(shared: &Shared, receiver: &str, hook: &Hook) {
    let mut heard = 0;
    loop {
        let time = match all_due(shared, receiver, hook) {
            Ok(true) => LOOK,
            Ok(false) => LOOK_IDLE,
            Err(e) => {
                log(&format!("web hook to {}: {e}", hook.host()));
                LOOK_IDLE
            }
        };
        match shared.bell.wait(heard, time) {
            Some(rung) => heard = rung,
            None => return,
        }
    }
}

/// Sends what is due. Does something wait still?
fn all_due(shared: &Shared, receiver: &str, hook: &Hook) -> Result<bool, StoreError> {
    let now_s = || (shared.clock.0)();
    let mut store = Store::open(&shared.place, &utc::rfc3339(now_s()))?;
    while let Some(due) = store.take_due(receiver, now_s(), now_s() + HELD_S)? {
        let sent = hook.post(&due.id, due.json.as_bytes());
        let at = utc::rfc3339(now_s());
        let Err(why) = sent else {
            store.end_delivery(&due.id, receiver, None, &at)?;
            continue;
        };
        let why = why.to_string();
        let waits_s = utc::from_date_time(
            due.made.get(..10).unwrap_or_default(),
            due.made.get(11..19).unwrap_or_default(),
        )
        .map_or(0, |made| now_s() - made);
        if waits_s > GIVE_UP_S {
            log(&format!("web hook to {}: notice {} is given up: {why}", hook.host(), due.id));
            store.end_delivery(&due.id, receiver, Some(&why), &at)?;
            continue;
        }
        let pause_s = pause_s(due.tries);
        log(&format!("web hook to {}: {why}; again in {pause_s} s", hook.host()));
        store.put_off(&due.id, receiver, now_s() + pause_s, &why)?;
        // One that is away takes nothing else either.
        break;
    }
    Ok(store.next_due_s(receiver)?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_an_hour() {
        assert_eq!([0, 1, 2, 9, 10, i64::MAX].map(pause_s), [5, 10, 20, 2560, 3600, 3600]);
    }
}
