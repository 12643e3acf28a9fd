// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plain numbers, one per line: what a script or an oscilloscope leaves.
//!
//! Layout: header lines before the first number (`# latency_us`), then a number
//! a line; blank lines and later `#` lines are passed over. The unit stands in the header (ns,
//! us, µs, usec, ms, as a word of its own or after `_`, in brackets or not) or is an option;
//! without it the file is refused, for of all mistakes a lost factor of 1000 is the commonest.
//! Read as a stream: lines of digits, which nearly all are, are read without looking twice.

use tailbound_core::units::grouped;

use crate::draft::Draft;
use crate::error::{Fault, excerpt};
use crate::read::Options;
use crate::samples::Samples;
use crate::stream::{Feed, PIECE, Stream, Window};
use crate::text::{LINE_MAX, TOO_LONG, clean, scaled};

/// Longest header: what has no number for so long is no column.
const HEADER_MAX: usize = 1 << 20;

/// The only word of a line, if it is a number.
pub(crate) fn value(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let word = words.next().filter(|_| words.next().is_none())?;
    let digits = word.bytes().any(|b| b.is_ascii_digit());
    (digits && word.parse::<f64>().is_ok_and(f64::is_finite)).then_some(word)
}

/// The unit a header line names.
fn unit_of(header: &str) -> Option<u64> {
    header.split(|c: char| !c.is_alphanumeric()).rev().find_map(|word| {
        match word.to_lowercase().as_str() {
            "ns" | "nsec" | "nsecs" | "nanoseconds" => Some(1),
            "us" | "µs" | "μs" | "usec" | "usecs" | "microseconds" => Some(1000),
            "ms" | "msec" | "msecs" | "milliseconds" => Some(1_000_000),
            _ => None,
        }
    })
}

/// Lines as numbers of ns.
struct Decoder {
    window: Window,
    line: u64,
    unit_ns: Option<u64>,
    /// What a number with 0, 1, … decimals is multiplied by, where that is a whole number of ns.
    scales: [Option<i64>; 10],
    decimals: usize,
    /// Was there a number?
    begun: bool,
    /// Bytes before the first one.
    header: usize,
}

impl Decoder {
    fn new(unit_ns: Option<u64>) -> Self {
        let mut new = Self {
            window: Window::default(),
            line: 0,
            unit_ns: None,
            scales: [None; 10],
            decimals: 0,
            begun: false,
            header: 0,
        };
        new.set_unit(unit_ns);
        new
    }

    fn set_unit(&mut self, unit_ns: Option<u64>) {
        self.unit_ns = unit_ns;
        let Some(unit) = unit_ns.and_then(|u| i64::try_from(u).ok()) else { return };
        let mut step = 1;
        for scale in &mut self.scales {
            *scale = (unit % step == 0).then_some(unit / step);
            step *= 10;
        }
    }

    fn piece(&mut self, feed: &mut Feed<'_>, out: &mut Vec<i64>) -> Result<bool, Fault> {
        while out.len() < PIECE {
            let rest = self.window.rest();
            if let Some((ns, decimals, used)) = plain(rest, &self.scales) {
                self.decimals = self.decimals.max(decimals);
                self.begun = true;
                self.line += 1;
                self.window.pass(used);
                out.push(ns);
                continue;
            }
            let end = rest.iter().position(|b| *b == b'\n');
            if end.unwrap_or(rest.len()) > LINE_MAX {
                return Err(Fault::line(self.line + 1, TOO_LONG));
            }
            if end.is_none() && self.window.more(feed)? {
                continue;
            }
            let rest = self.window.rest();
            if rest.is_empty() || feed.stopped() {
                return Ok(false);
            }
            let length = end.unwrap_or(rest.len());
            let mut line = rest.get(..length).unwrap_or(rest);
            self.line += 1;
            if self.line == 1 {
                line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
            }
            let line = clean(line).trim().to_owned();
            self.window.pass(length + 1);
            out.extend(self.read(&line)?);
            self.header += if self.begun { 0 } else { length + 1 };
            if self.header > HEADER_MAX {
                return Err(Fault::line(self.line, "no number among the first MiB"));
            }
        }
        Ok(true)
    }

    /// Any line: a number, a header, or nothing.
    fn read(&mut self, line: &str) -> Result<Option<i64>, Fault> {
        let n = self.line;
        if line.is_empty() {
            return Ok(None);
        }
        let Some(word) = value(line) else {
            if self.begun && !line.starts_with('#') {
                return Err(Fault::line(n, format!("`{}` is not one number", excerpt(line))));
            }
            if self.unit_ns.is_none() {
                self.set_unit(unit_of(line));
            }
            return Ok(None);
        };
        let unit = self.unit_ns.ok_or_else(|| {
            Fault::line(
                n,
                "a number, but no unit: write it into a header line (`# latency_us`) or give it as an option",
            )
        })?;
        let ns = scaled(word, unit).ok_or_else(|| {
            Fault::line(n, format!("`{}` is not a time within 292 years", excerpt(word)))
        })?;
        let fraction = word.split_once('.').map_or(0, |(_, f)| f.len());
        let decimals = if word.contains(['e', 'E']) { 9 } else { fraction };
        self.decimals = self.decimals.max(decimals);
        self.begun = true;
        Ok(Some(ns))
    }
}

/// A line of digits, with or without decimals, that begins `rest`: ns, the number of decimals
/// and the length of the line. `None`: it takes a closer look.
fn plain(rest: &[u8], scales: &[Option<i64>; 10]) -> Option<(i64, usize, usize)> {
    let (mut number, mut digits, mut decimals, mut point) = (0i64, 0usize, 0usize, false);
    for (i, byte) in rest.iter().enumerate().take(22) {
        match byte {
            b'0'..=b'9' => {
                // 18 digits are below 2^63.
                digits += 1;
                decimals += usize::from(point);
                if digits > 18 {
                    return None;
                }
                number = number * 10 + i64::from(byte - b'0');
            }
            b'.' if !point && digits > 0 => point = true,
            b'\n' if digits > 0 => {
                let ns = number.checked_mul((*scales.get(decimals)?)?)?;
                return Some((ns, decimals, i + 1));
            }
            _ => return None,
        }
    }
    None
}

pub(crate) fn parse(stream: &mut Stream<'_>, options: &Options) -> Result<Draft, Fault> {
    let mut draft = Draft::new("unknown", "column of numbers");
    let mut decoder = Decoder::new(options.unit_ns.filter(|u| *u > 0));
    let mut column = Timed::new(options, None);
    stream.pieces(|feed, out| decoder.piece(feed, out), |piece| column.add(piece))?;
    if column.n() == 0 {
        return Err(Fault::file("there is no number in the file"));
    }
    let unit = decoder.unit_ns.unwrap_or(1);
    let step = u32::try_from(decoder.decimals).ok().and_then(|d| 10u64.checked_pow(d));
    column.finish(&mut draft, (unit / step.unwrap_or(u64::MAX)).max(1), options)?;
    Ok(draft)
}

/// More numbers than this are not all the same by chance.
const SAME_MAX: u64 = 1000;
/// So many that are all the same are enough to read no further.
const EARLY_MAX: u64 = 1 << 20;
/// Half of what is measured is not later than this: such numbers are something else, or in another unit.
const LATE_NS: i64 = 1_000_000_000;
/// Fewer numbers than this may be anything.
const FEW: usize = 16;

/// Samples in their order, which have times where the interval is known. Nothing in such a file says that it is a measurement, so
/// what is none for certain is refused: numbers that are no latencies, and binary ones that never differ.
pub(crate) struct Timed {
    samples: Samples,
    interval_ns: Option<i64>,
    due_ns: i64,
    /// Bytes of a number, where it is in binary.
    size: Option<u64>,
    first: Option<i64>,
    differ: bool,
}

impl Timed {
    pub(crate) fn new(options: &Options, size: Option<u64>) -> Self {
        let interval_ns = options.interval_ns.filter(|i| *i > 0);
        Self { samples: Samples::new(0), interval_ns, due_ns: 0, size, first: None, differ: false }
    }

    pub(crate) fn n(&self) -> u64 {
        self.samples.n()
    }

    pub(crate) fn add(&mut self, piece: &[i64]) -> Result<(), Fault> {
        if self.first.is_none() {
            self.are_latencies(piece)?;
            self.first = piece.first().copied();
        }
        self.differ |= piece.iter().any(|ns| Some(*ns) != self.first);
        if self.n() > EARLY_MAX {
            self.no_constant(self.n())?;
        }
        match self.interval_ns {
            None => piece.iter().for_each(|ns| self.samples.add(*ns)),
            Some(interval) => {
                for ns in piece {
                    self.samples.add_due(self.due_ns, *ns);
                    self.due_ns = self.due_ns.saturating_add(interval);
                }
            }
        }
        Ok(())
    }

    /// The first numbers, of which half must be possible.
    fn are_latencies(&self, piece: &[i64]) -> Result<(), Fault> {
        let late = piece.iter().filter(|ns| **ns > LATE_NS).count();
        let first = piece.iter().position(|ns| *ns > LATE_NS);
        let (true, Some(at)) = (piece.len() >= FEW && late > piece.len() / 2, first) else {
            return Ok(());
        };
        let why = format!(
            "{late} of the first {} numbers are above 1 s: these are no latencies, or in another unit (give --unit)",
            piece.len()
        );
        Err(self.size.map_or_else(|| Fault::file(&why), |size| Fault::byte(at as u64 * size, &why)))
    }

    /// Numbers in binary that are all 0, or so many that are all the same, are a file that nobody wrote a measurement into.
    fn no_constant(&self, n: u64) -> Result<(), Fault> {
        let is_nothing = !self.differ && (self.first == Some(0) || n > SAME_MAX);
        match self.first.filter(|_| is_nothing && self.size.is_some()) {
            Some(ns) => Err(Fault::byte(
                0,
                format!(
                    "all of the first {n} numbers are the same ({ns} ns): this is no measurement"
                ),
            )),
            None => Ok(()),
        }
    }

    /// Puts the samples into `draft`, and what such a file leaves unsaid.
    pub(crate) fn finish(
        self,
        draft: &mut Draft,
        resolution_ns: u64,
        options: &Options,
    ) -> Result<(), Fault> {
        self.no_constant(self.n())?;
        if let (Some(ns), false, SAME_MAX..) = (self.first, self.differ, self.n()) {
            draft.doubt(
                "source-constant",
                format!("All {} numbers of the file are the same ({ns} ns).", grouped(self.n())),
                "Nothing that is measured is so even: the file holds something else, or was cut to a coarse unit.",
                "Look at what wrote the file, or measure again in ns.",
            );
        }
        if self.interval_ns.is_some() {
            draft.duration_ns = Some(self.due_ns);
            draft.lose("When each sample was taken is not in the file: sample k counts to the time of k intervals.");
        }
        draft.recorded(0, None, self.samples.finish(resolution_ns)?)?;
        draft.lose("The tool that measured is not in the file.");
        draft.doubt(
            "source-no-missed",
            "Whether periods were missed is not in the file.".to_owned(),
            "If the loop passed over late periods, every quantile is too good.",
            "Say what measured and how, or measure with tailbound, which accounts for every due activation.",
        );
        options.apply(draft);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_way_reads_what_the_long_way_reads() {
        for unit in [1, 1000, 1_000_000, 7, 1_000_000_000] {
            let decoder = Decoder::new(Some(unit));
            let mut short = 0;
            for word in [
                "0",
                "7",
                "007",
                "18.975",
                "1.",
                "0.5",
                "999999999999999",
                "12.3456789",
                "-3",
                ".5",
                "1e3",
                "999999999999999999",
                "9999999999999999999",
                "1..2",
                "",
                " 4",
                "4 ",
            ] {
                let line = format!("{word}\nrest");
                let Some((ns, decimals, used)) = plain(line.as_bytes(), &decoder.scales) else {
                    continue;
                };
                short += 1;
                assert_eq!((Some(ns), used), (scaled(word, unit), word.len() + 1), "{word} {unit}");
                let fraction = word.split_once('.').map_or(0, |(_, f)| f.len());
                assert_eq!(decimals, fraction, "{word}");
                assert_eq!(value(word), Some(word));
            }
            assert!(short >= 4, "{unit}: {short}");
        }
        assert_eq!(plain(b"12", &Decoder::new(Some(1)).scales), None, "it may go on");
    }
}
