// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happened during a run, with fields where something is decided by it.
//!
//! Units: ns. The run file has a name and a text ([`Event`]); both are written and read here alone.
//! What a version does not know stays as it stands: [`Occurrence::Other`].

use crate::instant;
use crate::record::Event;

const OF_REALTIME: &str = " s of CLOCK_REALTIME";

/// What an event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrence<'a> {
    /// When the first judged activation was due.
    ClockStart {
        /// On the clock of the schedule.
        at_ns: i64,
    },
    /// The run waited for its beginning.
    BeginAt {
        /// On CLOCK_REALTIME.
        at_ns: i64,
    },
    /// The measurement began; with it stands what the clocks read.
    WarmUpOver {
        /// For people.
        note: &'a str,
    },
    /// A load with phases went to work.
    LoadBegan {
        /// As the plan has it.
        load: &'a str,
    },
    /// A load with phases stopped for a while.
    LoadPaused {
        /// As the plan has it.
        load: &'a str,
    },
    /// A load ended.
    LoadStopped {
        /// What it did in total, for people.
        total: &'a str,
    },
    /// Fewer exceedances are kept one by one from here on.
    Threshold {
        /// For people.
        note: &'a str,
    },
    /// How the stopping rule came out.
    Until {
        /// For people.
        why: &'a str,
    },
    /// The measurement ended before its time.
    Stopped {
        /// For people.
        why: &'a str,
    },
    /// Of the kernel's tracing beside it.
    Observe {
        /// For people.
        note: &'a str,
    },
    /// Of the search for what made wake-ups late.
    Blame {
        /// For people.
        note: &'a str,
    },
    /// What was done because a wake-up was late.
    OnLate {
        /// For people.
        note: &'a str,
    },
    /// Anything else, for people.
    Other {
        /// Its name.
        event: &'a str,
        /// Its details.
        text: &'a str,
    },
}

impl<'a> Occurrence<'a> {
    /// As a line of a run file, at `t_ns`.
    #[must_use]
    pub fn at(self, t_ns: i64) -> Event {
        let (event, text) = match self {
            Self::ClockStart { at_ns } => ("clock-start", at_ns.to_string()),
            Self::BeginAt { at_ns } => {
                ("begin-at", format!("{}{OF_REALTIME}", instant::seconds(at_ns)))
            }
            Self::WarmUpOver { note } => ("warm-up-over", note.to_owned()),
            Self::LoadBegan { load } => ("load-began", load.to_owned()),
            Self::LoadPaused { load } => ("load-paused", load.to_owned()),
            Self::LoadStopped { total } => ("load-stopped", total.to_owned()),
            Self::Threshold { note } => ("threshold", note.to_owned()),
            Self::Until { why } => ("until", why.to_owned()),
            Self::Stopped { why } => ("stopped", why.to_owned()),
            Self::Observe { note } => ("observe", note.to_owned()),
            Self::Blame { note } => ("blame", note.to_owned()),
            Self::OnLate { note } => ("on-late", note.to_owned()),
            Self::Other { event, text } => (event, text.to_owned()),
        };
        Event::new(t_ns, event, text)
    }

    /// What the event says; a number that cannot be read leaves it to people.
    #[must_use]
    pub fn of(event: &'a Event) -> Self {
        let (name, text) = (event.event.as_str(), event.text.as_str());
        let other = Self::Other { event: name, text };
        match name {
            "clock-start" => match text.parse::<i64>() {
                Ok(at_ns) if at_ns.to_string() == text => Self::ClockStart { at_ns },
                _ => other,
            },
            "begin-at" => text
                .strip_suffix(OF_REALTIME)
                .and_then(|words| instant::parse(words).ok())
                .map_or(other, |at_ns| Self::BeginAt { at_ns }),
            "warm-up-over" => Self::WarmUpOver { note: text },
            "load-began" => Self::LoadBegan { load: text },
            "load-paused" => Self::LoadPaused { load: text },
            "load-stopped" => Self::LoadStopped { total: text },
            "threshold" => Self::Threshold { note: text },
            "until" => Self::Until { why: text },
            "stopped" => Self::Stopped { why: text },
            "observe" => Self::Observe { note: text },
            "blame" => Self::Blame { note: text },
            "on-late" => Self::OnLate { note: text },
            _ => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_and_written_as_it_was() {
        for (name, text) in [
            ("clock-start", "2549816639568"),
            ("clock-start", "soon"),
            ("clock-start", "+1"),
            ("begin-at", "1795608000.250000000 s of CLOCK_REALTIME"),
            ("begin-at", "noon"),
            ("warm-up-over", ""),
            ("load-began", "hackbench:groups=4"),
            ("load-paused", "hackbench"),
            ("load-stopped", "hackbench: 4 messages in total"),
            ("threshold", "t"),
            ("until", "u"),
            ("stopped", "s"),
            ("observe", "o"),
            ("blame", "b"),
            ("on-late", "o"),
            ("of-next-year", "x"),
        ] {
            let line = Event::new(-5, name, text);
            let again = Occurrence::of(&line).at(-5);
            assert_eq!((again.event.as_str(), again.text.as_str()), (name, text));
        }
        let start = Event::new(0, "clock-start", "7");
        assert_eq!(Occurrence::of(&start), Occurrence::ClockStart { at_ns: 7 });
    }
}
