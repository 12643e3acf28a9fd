// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a run began: what its own clock says, or when it arrived where that cannot be.
//!
//! Units: s since 1970; texts are RFC 3339 in UTC. Pure.
//! A run whose clock is in the future would be the newest for years, and hide all that come after it. So what orders runs is
//! a time that can be: a run began before it arrived. Of a machine that hands in its own runs it is also not long before.

use tailbound_core::utc;

/// A clock may be ahead of the store's by so much.
pub const AHEAD_S: i64 = 3600;
/// A machine's own spool keeps a run for so long at most before it arrives.
pub const SPOOLED_S: i64 = 90 * 86_400;
/// Clocks that nobody set begin in 1970, 1980 or on the first day of 2000: no run began before this.
const UNSET_BEFORE: &str = "2001-01-01T00:00:00Z";

/// Why a text is no time at which a run arrived.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArrivalError {
    /// No time.
    #[error("`{text}` is no time in UTC: 2026-11-25T02:00:00Z")]
    NoTime {
        /// As it was written.
        text: String,
    },
    /// A time after now.
    #[error("{text} is still to come")]
    Later {
        /// As it was written.
        text: String,
    },
}

/// When runs arrived, as somebody says it: a whole time, not after now.
///
/// # Errors
/// [`ArrivalError`].
pub fn arrived(text: &str, now_s: i64) -> Result<String, ArrivalError> {
    let time = text.strip_suffix('Z').filter(|it| it.len() == 19).and_then(|it| it.split_once('T'));
    let at_s = time.and_then(|(date, time)| utc::from_date_time(date, time));
    let at_s = at_s.ok_or_else(|| ArrivalError::NoTime { text: text.to_owned() })?;
    match at_s > now_s {
        true => Err(ArrivalError::Later { text: text.to_owned() }),
        false => Ok(utc::rfc3339(at_s)),
    }
}

/// How a run came into the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// By `store add` or by an operator: it may be years old.
    #[default]
    Archive,
    /// From the machine itself, by its agent's token.
    Machine,
}

impl Way {
    /// As the store keeps it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Archive => "archive",
            Self::Machine => "machine",
        }
    }

    /// From what the store kept; a store of before there was this has nothing.
    #[must_use]
    pub fn of(word: Option<&str>) -> Self {
        match word {
            Some("machine") => Self::Machine,
            _ => Self::Archive,
        }
    }
}

/// When a run arrived, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival<'a> {
    /// When.
    pub(crate) at: &'a str,
    /// How.
    pub(crate) way: Way,
}

/// When a run began, as far as that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// As its own clock says.
    Own(String),
    /// Its clock is not that of the store, a guest's in virtual time, which begins at the same instant each time; or it says no time.
    Untold(String),
    /// Its clock cannot be right, or what it says is no time: it is ordered by its arrival.
    Arrival { at: String, clock_said: String },
}

/// The clock of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunClock {
    /// Of the machine.
    Machine,
    /// Of a guest in virtual time.
    Virtual,
}

impl Start {
    pub(crate) fn of(said: &str, arrival: Arrival<'_>, clock: RunClock) -> Self {
        if clock == RunClock::Virtual || said.is_empty() {
            return Self::Untold(arrival.at.to_owned());
        }
        let s = utc::from_rfc3339;
        let is_unset = |at_s: i64| s(UNSET_BEFORE).is_some_and(|unset| at_s < unset);
        let is_wrong = |began_s: i64| {
            // Without the other one there is nothing to compare; a server whose own clock is not set cannot judge others.
            let came_s = s(arrival.at).filter(|came_s| !is_unset(*came_s));
            let is_late = |came_s: i64| {
                began_s > came_s + AHEAD_S
                    || (arrival.way == Way::Machine && began_s < came_s - SPOOLED_S)
            };
            is_unset(began_s) || came_s.is_some_and(is_late)
        };
        match s(said).filter(|began_s| !is_wrong(*began_s)) {
            // As all times are written: texts order runs.
            Some(began_s) => Self::Own(utc::rfc3339(began_s)),
            None => Self::Arrival { at: arrival.at.to_owned(), clock_said: said.to_owned() },
        }
    }

    /// What orders it.
    pub(crate) fn at(&self) -> &str {
        match self {
            Self::Own(at) | Self::Untold(at) | Self::Arrival { at, .. } => at,
        }
    }

    /// What its clock said, where that cannot be.
    pub(crate) fn clock_said(&self) -> Option<&str> {
        match self {
            Self::Arrival { clock_said, .. } => Some(clock_said),
            Self::Own(_) | Self::Untold(_) => None,
        }
    }

    /// When it began, where the clock of its records does not tell.
    pub(crate) fn instead_of_clock(&self) -> Option<&str> {
        match self {
            Self::Own(_) => None,
            Self::Untold(at) | Self::Arrival { at, .. } => Some(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrival_that_is_said_is_a_whole_time_that_was() {
        let said = |text| arrived(text, 1_764_000_000);
        assert_eq!(said("2025-11-24T02:00:00Z"), Ok("2025-11-24T02:00:00Z".to_owned()));
        let later = "2025-11-25T02:00:00Z".to_owned();
        assert_eq!(said(&later), Err(ArrivalError::Later { text: later.clone() }));
        for text in ["", "Z", "2025-11-24", "2025-11-24T02:00Z", "2025-13-24T02:00:00Z"] {
            assert_eq!(said(text), Err(ArrivalError::NoTime { text: text.to_owned() }), "{text}");
        }
    }

    #[test]
    fn a_clock_that_cannot_be_right_is_not_believed() {
        let came = "2026-11-25T06:00:00Z";
        let said = |text: &str, way: Way| {
            Start::of(text, Arrival { at: came, way }, RunClock::Machine).clock_said().is_some()
        };
        let both = |text: &str| [said(text, Way::Archive), said(text, Way::Machine)];
        for wrong in ["2099-01-01T00:00:00Z", "1970-01-01T00:03:00Z", "2026-11-25T07:00:01Z"] {
            assert_eq!(both(wrong), [true; 2], "{wrong}");
        }
        for right in ["2026-11-25T05:59:00Z", "2026-11-25T06:30:00Z", "2026-09-01T00:00:00Z"] {
            assert_eq!(both(right), [false; 2], "{right}");
        }
        // An archive may be old; a machine's own run that is half a year old has the clock of half a year ago.
        assert_eq!(both("2026-05-01T00:00:00Z"), [false, true]);
        // What is no time would be before or behind all times.
        for none in [
            "whenever",
            "~",
            "9999-99-99T99:99:99Z",
            "12026-01-01T00:00:00Z",
            "+026-11-25T00:00:00Z",
        ] {
            assert_eq!(both(none), [true; 2], "{none}");
        }
        let start = |text: &str, at: &str| {
            let way = Way::Machine;
            Start::of(text, Arrival { at, way }, RunClock::Machine)
        };
        assert_eq!(start("", came), Start::Untold(came.to_owned()));
        let own = Start::Own("2026-11-25T05:00:00Z".to_owned());
        assert_eq!(start("2026-11-25 05:00:00.25", came), own);
        // A server whose own clock is not set.
        assert_eq!(start("2026-11-25T05:00:00Z", "1970-01-01T00:05:00Z"), own);
        let wrong = Start::of(
            "2099-01-01T00:00:00Z",
            Arrival { at: came, way: Way::Machine },
            RunClock::Machine,
        );
        assert_eq!((wrong.at(), wrong.instead_of_clock()), (came, Some(came)));
    }
}
