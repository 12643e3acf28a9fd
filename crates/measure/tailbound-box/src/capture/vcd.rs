// SPDX-License-Identifier: MIT OR Apache-2.0
//! Value change dumps: a header of variables, then times and changes.
//!
//! Units: ticks of `$timescale`. Source: IEEE 1364-2005, clause 18. The states x and z of a chosen line are
//! counted; a vector or a real number is no line and is refused where it is chosen. sigrok puts the sample rate into a comment.

use crate::CaptureError;
use crate::capture::levels::{Levels, LineState};
use crate::capture::steps::TimeSteps;
use crate::capture::{CaptureSummary, EDGES_MAX, Ending, RateOrigin, WORD_BYTES_MAX};
use crate::channel::Wiring;
use crate::edge::{CaptureLine, Edge, Level};
use crate::time_base::{SampleRate, TimeBase};

/// Bytes of a section of the header that are looked at.
const SECTION_BYTES_MAX: usize = 4096;
/// Most variables.
const VARIABLES_MAX: usize = 1 << 16;

/// Words that begin a section of a header.
const SECTIONS: [&str; 7] =
    ["$date", "$version", "$comment", "$timescale", "$scope", "$var", "$upscope"];

/// Is it one, as far as its first word tells?
pub(crate) fn is_one(text: &[u8]) -> bool {
    let word = text.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    SECTIONS.iter().any(|section| section.as_bytes() == word)
}

/// A variable of the header.
#[derive(Debug)]
struct Variable {
    name: String,
    code: Vec<u8>,
    /// What it is, where it is no line.
    unfit: Option<String>,
}

/// Where in the dump the next word is.
#[derive(Debug)]
enum Place {
    Header,
    /// In a section of the header.
    Section(String, String),
    Changes,
    /// In a comment among the changes.
    Comment,
    /// The code of a vector or real comes next.
    Code,
}

/// A dump while it is read.
#[derive(Debug)]
pub(crate) struct Vcd {
    wiring: Option<Wiring>,
    rate: Option<SampleRate>,
    writer: Option<String>,
    scopes: Vec<String>,
    variables: Vec<Variable>,
    tick_fs: Option<u64>,
    codes: [Vec<u8>; 2],
    place: Place,
    line: u64,
    tick: i64,
    levels: Levels,
    steps: TimeSteps,
}

impl Vcd {
    pub(crate) fn new(wiring: Option<Wiring>, rate: Option<SampleRate>) -> Self {
        Self {
            wiring,
            rate,
            writer: None,
            scopes: Vec::new(),
            variables: Vec::new(),
            tick_fs: None,
            codes: [Vec::new(), Vec::new()],
            place: Place::Header,
            line: 1,
            tick: 0,
            levels: Levels::default(),
            steps: TimeSteps::default(),
        }
    }

    pub(crate) fn time_base(&self) -> Option<TimeBase> {
        self.tick_fs.and_then(TimeBase::of_femtoseconds)
    }

    pub(crate) fn decode(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<Edge>,
    ) -> Result<usize, CaptureError> {
        let mut used = 0;
        while out.len() < EDGES_MAX {
            let rest = bytes.get(used..).unwrap_or_default();
            let blank = rest.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(rest.len());
            let (gap, rest) = rest.split_at(blank);
            self.line += gap.iter().filter(|b| **b == b'\n').count() as u64;
            used += blank;
            let Some(end) = rest.iter().position(u8::is_ascii_whitespace) else {
                if rest.len() > WORD_BYTES_MAX {
                    return Err(self.wrong("a word of more than 1 MiB: this is no VCD"));
                }
                break;
            };
            self.word(rest.get(..end).unwrap_or_default(), out)?;
            used += end;
        }
        Ok(used)
    }

    fn wrong(&self, reason: impl Into<String>) -> CaptureError {
        CaptureError::line(self.line, reason)
    }

    fn word(&mut self, word: &[u8], out: &mut Vec<Edge>) -> Result<(), CaptureError> {
        match &mut self.place {
            Place::Header => self.header(&String::from_utf8_lossy(word)),
            Place::Section(name, text) => {
                if word == b"$end" {
                    let (name, text) = (std::mem::take(name), std::mem::take(text));
                    self.place = Place::Header;
                    return self.section(&name, &text);
                }
                if text.len() + word.len() < SECTION_BYTES_MAX {
                    text.push(' ');
                    text.push_str(&String::from_utf8_lossy(word));
                }
                Ok(())
            }
            Place::Changes => self.change(word, out),
            Place::Comment => {
                if word == b"$end" {
                    self.place = Place::Changes;
                }
                Ok(())
            }
            Place::Code => {
                self.place = Place::Changes;
                Ok(())
            }
        }
    }

    fn header(&mut self, word: &str) -> Result<(), CaptureError> {
        if !word.starts_with('$') {
            let shown: String = word.chars().take(30).collect();
            return Err(self.wrong(format!("`{shown}` stands outside of a section of the header")));
        }
        self.place = Place::Section(word.to_owned(), String::new());
        Ok(())
    }

    fn section(&mut self, name: &str, text: &str) -> Result<(), CaptureError> {
        let text = text.trim();
        match name {
            "$timescale" => {
                let fs = timescale(text).ok_or_else(|| {
                    self.wrong(format!(
                        "the timescale `{text}` is none: it is 1, 10 or 100 of s, ms, us, ns, ps or fs"
                    ))
                })?;
                self.tick_fs = Some(fs);
            }
            "$version" => self.writer = Some(text.to_owned()),
            "$comment" => {
                let words = text.rsplit_once(" channels at ").map(|(_, rate)| rate);
                self.rate = self.rate.or(words.and_then(|rate| rate.parse().ok()));
            }
            "$scope" => {
                let name = text.split_whitespace().nth(1).unwrap_or_default();
                self.scopes.push(name.to_owned());
            }
            "$upscope" => drop(self.scopes.pop()),
            "$var" => self.variable(text)?,
            "$enddefinitions" => {
                self.choose()?;
                self.place = Place::Changes;
            }
            _ => {}
        }
        Ok(())
    }

    fn variable(&mut self, text: &str) -> Result<(), CaptureError> {
        let mut words = text.split_whitespace();
        let (Some(kind), Some(size), Some(code)) = (words.next(), words.next(), words.next())
        else {
            return Err(self.wrong("a variable without type, size and code"));
        };
        if self.variables.len() >= VARIABLES_MAX {
            return Err(self.wrong(format!("more than {VARIABLES_MAX} variables")));
        }
        let own = words.next().unwrap_or(code);
        // The scope that sigrok puts around everything is no part of a channel's name.
        let scopes = self.scopes.iter().filter(|s| *s != "libsigrok").map(String::as_str);
        let name = scopes.chain([own]).collect::<Vec<_>>().join(".");
        let unfit = match (kind, size) {
            ("real" | "realtime", _) => Some("an analog value".to_owned()),
            (_, "1") => None,
            _ => Some(format!("a vector of {size} bits")),
        };
        self.variables.push(Variable { name, code: code.as_bytes().to_vec(), unfit });
        Ok(())
    }

    /// The header is over: which variables are the lines.
    fn choose(&mut self) -> Result<(), CaptureError> {
        if self.tick_fs.is_none() {
            return Err(self.wrong(
                "the header has no $timescale: how long a tick is cannot be known; write `$timescale 1 ns $end` into it",
            ));
        }
        let names: Vec<String> = self.variables.iter().map(|v| v.name.clone()).collect();
        let chosen = Wiring::find(self.wiring.as_ref(), &names)?;
        for (slot, position) in self.codes.iter_mut().zip(chosen) {
            let Some(variable) = self.variables.get(position) else { continue };
            if let Some(unfit) = &variable.unfit {
                let reason = format!(
                    "channel `{}` is {unfit}, which has no edges of a line: choose a channel of one bit, or export each bit as a channel",
                    variable.name
                );
                return Err(CaptureError::whole(reason));
            }
            slot.clone_from(&variable.code);
        }
        let [stimulus, answer] = &self.codes;
        if stimulus == answer {
            return Err(CaptureError::whole(
                "--stimulus and --answer are two names of one signal: name two signals",
            ));
        }
        self.variables = Vec::new();
        Ok(())
    }

    fn change(&mut self, word: &[u8], out: &mut Vec<Edge>) -> Result<(), CaptureError> {
        let Some((first, code)) = word.split_first() else { return Ok(()) };
        let state = match first {
            b'#' => return self.time(code, out),
            b'0' | b'l' | b'L' => LineState::Known(Level::Low),
            b'1' | b'h' | b'H' => LineState::Known(Level::High),
            b'x' | b'X' | b'z' | b'Z' | b'u' | b'U' | b'w' | b'W' | b'-' => LineState::Unknown,
            b'b' | b'B' | b'r' | b'R' | b's' | b'S' => {
                self.place = Place::Code;
                return Ok(());
            }
            b'$' => {
                if word == b"$comment" {
                    self.place = Place::Comment;
                }
                return Ok(());
            }
            _ => {
                let shown: String = String::from_utf8_lossy(word).chars().take(30).collect();
                return Err(self.wrong(format!(
                    "`{shown}` is neither a time nor a change: the file is damaged, or no VCD"
                )));
            }
        };
        for (line, of_line) in
            [CaptureLine::Stimulus, CaptureLine::Answer].into_iter().zip(&self.codes)
        {
            if of_line == code {
                self.levels.set(line, state, self.tick, out);
            }
        }
        Ok(())
    }

    fn time(&mut self, digits: &[u8], out: &mut Vec<Edge>) -> Result<(), CaptureError> {
        let text = std::str::from_utf8(digits).unwrap_or_default();
        let tick = text.parse::<i64>().ok().filter(|tick| *tick >= 0).ok_or_else(|| {
            let shown: String = text.chars().take(30).collect();
            self.wrong(format!("`#{shown}` is no time"))
        })?;
        if tick < self.tick {
            return Err(self.wrong(format!("time goes back, from #{} to #{tick}", self.tick)));
        }
        self.steps.add(tick);
        self.tick = tick;
        self.levels.until(tick, out);
        Ok(())
    }

    pub(crate) fn finish(
        &mut self,
        rest: &[u8],
        out: &mut Vec<Edge>,
    ) -> Result<CaptureSummary, CaptureError> {
        if rest.trim_ascii() == b"$end" {
            self.word(b"$end", out)?;
        }
        if matches!(self.place, Place::Header | Place::Section(..)) {
            return Err(self.wrong(
                "the file ends within its header: it was cut off, nothing of the capture is in it",
            ));
        }
        let torn = !rest.trim_ascii().is_empty() && rest.trim_ascii() != b"$end"
            || matches!(self.place, Place::Comment | Place::Code);
        self.levels.end(out);
        let tick_fs = self.tick_fs.unwrap_or(1);
        let of_steps = || {
            let ticks = self.steps.period_at_most().unwrap_or(1);
            ticks.saturating_mul(tick_fs).div_ceil(1_000_000).max(1)
        };
        // Times are cut to whole ticks: a tick more than a sample may be between two of them.
        let tick_ns = tick_fs.div_ceil(1_000_000);
        Ok(CaptureSummary {
            end_tick: self.tick,
            writer: self.writer.take(),
            resolution_ns: self.rate.map_or_else(of_steps, |r| r.period_ns().max(tick_ns)),
            rate: self.rate.map_or(RateOrigin::Steps, |_| RateOrigin::Stated),
            ending: if torn { Ending::Cut("its last word is not whole") } else { Ending::Whole },
            unknown_states: self.levels.unknown_states,
            shortest: self.levels.shortest(),
        })
    }
}

/// Length of a tick in fs: `1 us`, `100ps`.
fn timescale(text: &str) -> Option<u64> {
    let compact: String = text.split_whitespace().collect();
    let digits = compact.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = compact.split_at(digits);
    let number: u64 = number.parse().ok().filter(|n| matches!(n, 1 | 10 | 100))?;
    let exponent = match unit {
        "s" => 15,
        "ms" => 12,
        "us" => 9,
        "ns" => 6,
        "ps" => 3,
        "fs" => 0,
        _ => return None,
    };
    number.checked_mul(10u64.checked_pow(exponent)?)
}
