// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands in a run beside what the source measured: when, by which command.

use tailbound_core::utc;
use tailbound_import::stimulus::RunFacts;
use tailbound_sys::clock::{CLOCK_REALTIME, now_ns};

/// Facts of a run that begins now; its name tells it from others by time and process.
#[must_use]
pub fn run_facts(deadline_ns: Option<i64>) -> RunFacts {
    let now = now_ns(CLOCK_REALTIME);
    let stamp: String = utc::from_ns(now).chars().filter(char::is_ascii_alphanumeric).collect();
    RunFacts {
        id: format!("{stamp}-{:08x}-{}", now.rem_euclid(1_000_000_000), std::process::id()),
        started_s: now.div_euclid(1_000_000_000),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        deadline_ns,
    }
}
