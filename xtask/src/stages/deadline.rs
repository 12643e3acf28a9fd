// SPDX-License-Identifier: MIT OR Apache-2.0
//! When nothing more begins: `TAILBOUND_BEGIN_BY`, seconds since 1970 as `date +%s` prints them.
//!
//! A CI that ends what takes too long sets it some minutes before that (`.ci/run`). On a slow machine the stages, and the checks of the lab and
//! of bare roots, that would begin later are left out with this reason; the run that were ended instead would tell nothing.

use std::time::{Duration, SystemTime};

use super::tally::Tally;

const VARIABLE: &str = "TAILBOUND_BEGIN_BY";

/// Is it too late to begin something?
pub(crate) fn is_over() -> bool {
    std::env::var(VARIABLE).is_ok_and(|value| is_before(&value, SystemTime::now()))
}

/// What does not begin, told.
pub(crate) fn left_out(name: &str) -> Tally {
    let mut tally = Tally::default();
    tally.leave_out(name, format!("no time: it could not begin by {VARIABLE}"));
    tally
}

/// A stage that does not begin, told. A run without its tests is no run that passed.
pub(super) fn stage_left_out(name: &str) -> Tally {
    if name != "tests" {
        return left_out(name);
    }
    let mut tally = Tally::default();
    tally.fail(name, format!("they could not begin by {VARIABLE}"));
    tally
}

/// A value that is no time never passes.
fn is_before(value: &str, now: SystemTime) -> bool {
    let deadline = value.trim().parse().ok().map(Duration::from_secs);
    deadline.and_then(|d| SystemTime::UNIX_EPOCH.checked_add(d)).is_some_and(|d| d < now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_begins_after_the_time_and_a_value_that_is_none_keeps_nothing_back() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        assert!(is_before("999", now) && is_before(" 999\n", now));
        for later in ["1000", "1001", "", "soon", "-1", "18446744073709551615"] {
            assert!(!is_before(later, now), "{later}");
        }
        let tally = left_out("lab");
        assert_eq!(tally.line(), "0 passed, 0 failed, 1 skipped");
        assert_eq!(stage_left_out("lab"), tally);
        assert!(stage_left_out("tests").has_failed());
    }
}
