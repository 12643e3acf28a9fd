// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs in a text of cyclictest, and the richest form each is in.
//!
//! A text is cut into stretches of one form (status lines, a histogram, samples). A stretch begins where the form
//! changes, where a command line or the line about /dev/cpu_dma_latency follows figures, and where figures cannot go on from
//! those before: another thread id, fewer cycles, a second histogram, cycle numbers from the beginning. A stretch of status
//! lines and one with a histogram are one run, if nothing stands between them and the figures agree.
//! Not here: what a run's figures are (`histogram`, `status`, `verbose`).

use std::collections::BTreeMap;

use crate::cyclictest::status::{self, Status};
use crate::cyclictest::{histogram, told, verbose};
use crate::format::Format;
use crate::runs::{FormatOrigin, Piece};
use crate::text::Lines;

/// The line of a program's start, which stands before the figures of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    Absent,
    Present,
}

/// A stretch of one form.
struct Stretch {
    piece: Piece,
    /// A command line or another beginning of a run is in front of it.
    head: Head,
    threads: BTreeMap<u32, Status>,
    /// Of a histogram: its least and greatest latency of each thread, where they are in its foot.
    min: Vec<u64>,
    max: Vec<u64>,
    /// Of samples: the first and the last cycle of each thread.
    cycles: BTreeMap<u32, (u64, u64)>,
    begun: bool,
}

/// A line, as far as the cutting goes.
enum Mark {
    Head,
    Status(u32, Option<Status>),
    HistogramBegin,
    HistogramLine,
    Sample(u32, u64),
    Other,
}

fn mark(line: &str) -> Mark {
    if line.starts_with("T:") && !line.contains(" Spike:") {
        return match status::read(line, 0) {
            Ok((thread, status)) => Mark::Status(thread, Some(status)),
            Err(_) => Mark::Status(u32::MAX, None),
        };
    }
    if line.starts_with("# Histogram") && !line.starts_with("# Histogram O") {
        return Mark::HistogramBegin;
    }
    if line.starts_with("# /dev/cpu_dma_latency set") || told::command(line).is_some() {
        return Mark::Head;
    }
    if let Some((thread, cycle, ..)) = verbose::sample(line) {
        return Mark::Sample(thread, cycle);
    }
    if histogram::is_row(line) || histogram::is_foot(line) {
        return Mark::HistogramLine;
    }
    Mark::Other
}

/// Does a line belong to the figures above it?
fn is_end(line: &str) -> bool {
    ["# Break", "# Thread", "spikes ="].iter().any(|b| line.starts_with(b))
}

/// The runs of `bytes`; one without an end where there are no figures at all.
pub(crate) fn split(format: Format, bytes: &[u8], origin: FormatOrigin) -> Vec<Piece> {
    let mut stretches: Vec<Stretch> = Vec::new();
    // Where the next stretch would begin: behind the last figures; and is there a head behind them?
    let (mut gap, mut head) = ((0, 1), Head::Absent);
    let mut at = 0;
    for (n, whole) in (1u64..).zip(bytes.split_inclusive(|b| *b == b'\n')) {
        let here = (at, n);
        at += whole.len();
        let Some(Ok((_, line))) = Lines::new(whole).next() else { continue };
        let line = line.trim();
        let mark = mark(line);
        let form = match &mark {
            Mark::Head => {
                head = Head::Present;
                continue;
            }
            Mark::Other => {
                // What closes a run, and empty lines behind it, do not begin the next.
                if head == Head::Absent && gap == here && (line.is_empty() || is_end(line)) {
                    gap = (at, n + 1);
                }
                continue;
            }
            Mark::Status(..) => Format::CyclictestStatus,
            Mark::HistogramBegin => Format::CyclictestHistogram,
            Mark::Sample(..) => Format::CyclictestVerbose,
            Mark::HistogramLine => {
                let inside =
                    stretches.last().is_some_and(|s| s.piece.format == Format::CyclictestHistogram);
                if !inside {
                    continue;
                }
                Format::CyclictestHistogram
            }
        };
        let goes_on = head == Head::Absent
            && stretches.last().is_some_and(|s| s.piece.format == form && s.goes_on(&mark));
        if !goes_on {
            // What stands before the first figures is of the first run.
            let (from, line) = if stretches.is_empty() { (0, 1) } else { gap };
            stretches.iter_mut().last().into_iter().for_each(|s| s.piece.to = from);
            stretches.push(Stretch::new(Piece { from, to: bytes.len(), line, format: form }, head));
        }
        if let Some(open) = stretches.last_mut() {
            open.take(&mark, line);
        }
        head = Head::Absent;
        gap = (at, n + 1);
    }
    if origin == FormatOrigin::Named {
        stretches.retain(|s| s.piece.format == format);
        if stretches.len() == 1 {
            return Vec::new();
        }
    }
    merged(stretches)
}

impl Stretch {
    fn new(piece: Piece, head: Head) -> Self {
        Self {
            piece,
            head,
            threads: BTreeMap::new(),
            min: Vec::new(),
            max: Vec::new(),
            cycles: BTreeMap::new(),
            begun: false,
        }
    }

    fn goes_on(&self, mark: &Mark) -> bool {
        match mark {
            Mark::Status(thread, Some(new)) => {
                self.threads.get(thread).is_none_or(|old| old.goes_on(new))
            }
            Mark::HistogramBegin => !self.begun,
            // A reduced list begins anywhere, but a run begins only once.
            Mark::Sample(thread, cycle) => self
                .cycles
                .get(thread)
                .is_none_or(|(first, last)| !(cycle <= first && cycle < last)),
            _ => true,
        }
    }

    fn take(&mut self, mark: &Mark, line: &str) {
        match mark {
            Mark::Status(thread, Some(new)) => {
                self.threads
                    .entry(*thread)
                    .and_modify(|old| *old = old.later(*new))
                    .or_insert(*new);
            }
            Mark::HistogramBegin => self.begun = true,
            Mark::Sample(thread, cycle) => {
                let (_, last) = self.cycles.entry(*thread).or_insert((*cycle, *cycle));
                *last = *cycle;
            }
            _ => {}
        }
        let list = |prefix: &str| {
            let rest = line.strip_prefix(prefix)?;
            Some(rest.split_whitespace().map_while(|w| w.parse().ok()).collect::<Vec<u64>>())
        };
        if let Some(values) = list("# Min Latencies:") {
            self.min = values;
        } else if let Some(values) = list("# Max Latencies:") {
            self.max = values;
        }
    }

    /// Is `other` the same run in the other form?
    fn is_of(&self, other: &Self) -> bool {
        let (status, histogram) = match (self.piece.format, other.piece.format) {
            (Format::CyclictestStatus, Format::CyclictestHistogram) => (self, other),
            (Format::CyclictestHistogram, Format::CyclictestStatus) => (other, self),
            _ => return false,
        };
        let of = |list: &[u64], thread: u32| {
            list.get(usize::try_from(thread).ok()?).and_then(|v| i64::try_from(*v).ok())
        };
        let known = histogram.min.is_empty() || histogram.min.len() == status.threads.len();
        known
            && status.threads.iter().all(|(thread, s)| {
                // The last screen was drawn before the run was over.
                of(&histogram.min, *thread).is_none_or(|m| m <= s.min || s.cycles == 0)
                    && of(&histogram.max, *thread).is_none_or(|m| m >= s.max)
            })
    }
}

/// Stretches as runs: two forms of one run become one piece, of the richer form.
fn merged(stretches: Vec<Stretch>) -> Vec<Piece> {
    let mut runs: Vec<Piece> = Vec::new();
    let mut open: Option<Stretch> = None;
    for next in stretches {
        match open.take() {
            Some(last) if next.head == Head::Absent && last.is_of(&next) => {
                let format = Format::CyclictestHistogram;
                runs.push(Piece { to: next.piece.to, format, ..last.piece });
            }
            Some(last) => {
                runs.push(last.piece);
                open = Some(next);
            }
            None => open = Some(next),
        }
    }
    runs.extend(open.map(|s| s.piece));
    runs
}
