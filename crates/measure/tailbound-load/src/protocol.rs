// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a worker and the measuring process say to each other: JSON lines one way, the
//! line `stop` (or the end of the stream) the other.
//!
//! Context: COLD, a few lines per second. Units: ns of CLOCK_MONOTONIC.
//! Counts are cumulative: a lost report loses nothing.

use serde::{Deserialize, Serialize};

/// A line from the worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub(crate) enum Report {
    /// So much was done since the start.
    Count { total: u64, at_ns: i64 },
    /// A load with an end of its own reached it, in the time given.
    Done { elapsed_ns: u64 },
    /// It ended by itself, without an error.
    Ended { reason: String },
    /// It cannot work.
    Failed { reason: String },
    /// It is smaller than usual.
    Reduced { how: String },
    /// Worth knowing about how it runs.
    Note { text: String },
}

/// The only word the worker is told.
pub(crate) const STOP: &[u8] = b"stop\n";

impl Report {
    pub(crate) fn line(&self) -> String {
        // A struct of numbers and strings always serialises.
        serde_json::to_string(self).map_or_else(|_| String::new(), |s| s + "\n")
    }
}

/// What a worker sent instead of a report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Garbled {
    /// A line of another form.
    #[error("its worker sent `{line}`: {why}")]
    Line { line: String, why: serde_json::Error },
    /// No newline for too long.
    #[error("its worker sent a line without an end")]
    Endless,
}

/// Splits what arrived into whole lines; the rest stays for later.
#[derive(Debug, Default)]
pub(crate) struct Lines(Vec<u8>);

impl Lines {
    /// Longer lines are not ours: the buffer stays bounded whatever comes.
    const LONGEST: usize = 64 * 1024;

    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Result<Report, Garbled>> {
        self.0.extend_from_slice(bytes);
        let mut out = Vec::new();
        while let Some(end) = self.0.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = self.0.drain(..=end).collect();
            out.push(serde_json::from_slice(&line).map_err(|why| {
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                Garbled::Line { line, why }
            }));
        }
        if self.0.len() > Self::LONGEST {
            self.0.clear();
            out.push(Err(Garbled::Endless));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_survive_any_cut() {
        let said = [
            Report::Count { total: u64::MAX, at_ns: -1 },
            Report::Failed { reason: "a \"b\"\nc".into() },
        ];
        let text: String = said.iter().map(Report::line).collect();
        for cut in 0..text.len() {
            let mut lines = Lines::default();
            let (a, b) = text.as_bytes().split_at(cut);
            let heard: Vec<_> = lines.feed(a).into_iter().chain(lines.feed(b)).collect();
            let heard: Vec<_> = heard.into_iter().map(Result::unwrap).collect();
            assert_eq!(heard, said);
        }
    }

    #[test]
    fn nonsense_is_an_error_not_a_panic() {
        let mut lines = Lines::default();
        assert!(lines.feed(b"{}\n").iter().all(Result::is_err));
        assert!(lines.feed(&vec![b'x'; 100_000]).iter().any(Result::is_err));
        assert!(lines.feed(&[0xff, b'\n']).iter().all(Result::is_err));
    }
}
