// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the words about sleeping to the plan: spread intervals, timer slack, and what a means of
//! sleeping needs.
//!
//! Context: SETUP. Units: text in, ns out.
//! Not here: the other words of a plan (`resolve`).

use tailbound_core::finding::{Finding, Impact};
use tailbound_core::plan::{IntervalSpread, Means};
use tailbound_core::policy::Policy;

use crate::option_error::OptionError;
use crate::option_text::{time, usage};

/// `--interval-spread`.
///
/// # Errors
/// No such share, or a periodic timer, whose intervals are even.
pub(crate) fn spread(
    text: Option<&str>,
    means: Means,
) -> Result<Option<IntervalSpread>, OptionError> {
    let Some(text) = text else { return Ok(None) };
    if matches!(means, Means::Timerfd | Means::PosixTimer) {
        return Err(OptionError::EvenIntervals { means });
    }
    text.parse().map(Some).map_err(usage("--interval-spread"))
}

/// `--timer-slack`.
///
/// # Errors
/// No such time.
pub(crate) fn timer_slack(text: Option<&str>) -> Result<Option<i64>, OptionError> {
    let Some(text) = text else { return Ok(None) };
    let ns = time(text, "--timer-slack")?;
    if ns <= 0 {
        return Err(OptionError::NoSlack);
    }
    Ok(Some(ns))
}

/// A slack that the kernel does not use.
pub(crate) fn unused_slack(policy: Policy) -> Finding {
    Finding::listed(
        "timer-slack-unused",
        Impact::Notice,
        format!("timer slack is set, but the kernel does not use it for {policy}"),
    )
}

/// What the interval timer needs: a process has one.
///
/// # Errors
/// Several threads.
pub(crate) fn one_itimer(means: Means, threads: u64) -> Result<(), OptionError> {
    if means != Means::Itimer || threads == 1 {
        return Ok(());
    }
    Err(OptionError::OneItimer { threads })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_about_sleeping_are_refused_with_the_way_out() {
        assert!(
            spread(Some("50%:7"), Means::Nanosleep).is_ok_and(|s| s.is_some_and(|s| s.seed == 7))
        );
        for (text, hint) in
            [("0%", "more than 0%"), ("95%", "90%"), ("0.5", "50%"), ("5%:x", "seed")]
        {
            let e = spread(Some(text), Means::Nanosleep).err().map(|e| e.to_string());
            assert!(e.as_ref().is_some_and(|e| e.contains(hint)), "{text}: {e:?}");
        }
        assert!(spread(Some("5%"), Means::Timerfd).is_err());
        assert!(timer_slack(Some("0us")).is_err());
        assert!(matches!(timer_slack(Some("5us")), Ok(Some(5000))));
        assert!(one_itimer(Means::Itimer, 2).is_err() && one_itimer(Means::Itimer, 1).is_ok());
    }
}
