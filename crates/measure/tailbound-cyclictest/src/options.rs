// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the options of a command line mean together, by cyclictest's rules.
//!
//! Context: SETUP. Units: µs of intervals and power management, seconds of durations, [`Unit`] of limits of latencies.
//! Not here: what this machine has (`placement`).

use std::path::PathBuf;

use crate::error::CyclictestError;
use crate::histogram::HistogramColumns;
use crate::option::{Name, Treatment};
use crate::policy::PolicyName;
use crate::unit::Unit;
use crate::words::{GetoptLine, Given};

/// Most rows of a histogram, as in cyclictest.
const ROWS_MAX: u64 = 1_000_000;

/// How many threads there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Threads {
    #[default]
    One,
    Number(usize),
    PerCpu,
}

/// What is printed on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Screen {
    /// A frame, drawn again and again.
    #[default]
    Frames,
    /// A frame, drawn again when a maximum is greater.
    Maxima,
    /// Each latency.
    Latencies,
    Nothing,
}

/// What is held of /dev/cpu_dma_latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idle {
    HeldAt(i32),
    LeftAlone,
}

/// Options, read.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) threads: Threads,
    /// A list of CPUs; none: all.
    pub(crate) cpus: Option<String>,
    pub(crate) main_cpus: Option<String>,
    pub(crate) smp: bool,
    pub(crate) interval_us: u64,
    pub(crate) loops: u64,
    pub(crate) duration_s: u64,
    pub(crate) policy: PolicyName,
    pub(crate) priority: u8,
    pub(crate) priospread: bool,
    pub(crate) distance_us: Option<u64>,
    pub(crate) break_at: u64,
    pub(crate) realtime_clock: bool,
    pub(crate) posix_timers: bool,
    pub(crate) idle: Idle,
    pub(crate) unit: Unit,
    pub(crate) rows: usize,
    pub(crate) columns: HistogramColumns,
    pub(crate) histfile: Option<PathBuf>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    pub(crate) on_max: bool,
    pub(crate) step: u64,
    pub(crate) help: bool,
    /// What a user should know.
    pub(crate) notes: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: Threads::One,
            cpus: None,
            main_cpus: None,
            smp: false,
            interval_us: 1000,
            loops: 0,
            duration_s: 0,
            policy: PolicyName::Other,
            priority: 0,
            priospread: false,
            distance_us: None,
            break_at: 0,
            realtime_clock: false,
            posix_timers: false,
            idle: Idle::HeldAt(0),
            unit: Unit::Micros,
            rows: 0,
            columns: HistogramColumns::Threads,
            histfile: None,
            json: None,
            quiet: false,
            verbose: false,
            on_max: false,
            step: 1,
            help: false,
            notes: Vec::new(),
        }
    }
}

impl Options {
    /// # Errors
    /// A value that means nothing; an option that is not honoured.
    pub(crate) fn of(line: GetoptLine) -> Result<Self, CyclictestError> {
        let mut options = Self::default();
        // The rest would be refused for nothing.
        if line.given.iter().any(|g| g.option.name == Name::Help) {
            options.help = true;
            return Ok(options);
        }
        for word in line.stray.iter().filter(|word| !word.is_empty()) {
            options
                .notes
                .push(format!("`{word}` is no option and is passed over, as cyclictest does"));
        }
        for given in &line.given {
            options.take(given)?;
        }
        options.together()?;
        Ok(options)
    }

    pub(crate) fn screen(&self) -> Screen {
        match self {
            Self { verbose: true, .. } => Screen::Latencies,
            Self { quiet: true, .. } => Screen::Nothing,
            Self { on_max: true, .. } => Screen::Maxima,
            _ => Screen::Frames,
        }
    }

    fn take(&mut self, given: &Given) -> Result<(), CyclictestError> {
        let option = given.option;
        if option.treatment == Treatment::Refused {
            return Err(refused(option.shown(), option.about));
        }
        match option.name {
            Name::Affinity | Name::Threads | Name::Smp | Name::Mainaffinity => self.place(given)?,
            Name::Breaktrace => self.break_at = number(given)?,
            Name::Clock => {
                self.realtime_clock = match number(given)? {
                    0 => false,
                    1 => true,
                    _ => return Err(value(given, "0 or 1")),
                }
            }
            Name::Distance => self.distance_us = Some(number(given)?),
            Name::Duration => self.duration_s = seconds(given)?,
            Name::Histogram => self.rows = rows(given)?,
            Name::Histofall => {
                (self.rows, self.columns) = (rows(given)?, HistogramColumns::ThreadsAndAll);
            }
            Name::Histfile => self.histfile = given.value.as_deref().map(PathBuf::from),
            Name::Interval => self.interval_us = number(given)?,
            Name::Json => self.json = given.value.as_deref().map(PathBuf::from),
            Name::Laptop | Name::DefaultSystem => self.idle = Idle::LeftAlone,
            Name::Latency => self.latency(given)?,
            Name::Loops => self.loops = number(given)?,
            Name::Nsecs => self.unit = Unit::Nanos,
            Name::Oscope => self.step = number(given)?,
            Name::Priority => {
                let priority = number(given)?;
                let most = u8::try_from(priority).ok().filter(|n| *n <= 99);
                self.priority = most.ok_or_else(|| value(given, "a priority from 0 to 99"))?;
                if !matches!(self.policy, PolicyName::Fifo | PolicyName::Rr) {
                    self.policy = PolicyName::Fifo;
                }
            }
            Name::Policy => {
                let name = given.value.as_deref().and_then(PolicyName::parse);
                let wanted = "one of other, normal, batch, idle, fifo, rr";
                self.policy = name.ok_or_else(|| value(given, wanted))?;
            }
            Name::PosixTimers => self.posix_timers = true,
            Name::Priospread => self.priospread = true,
            Name::Quiet => self.quiet = true,
            Name::RefreshOnMax => self.on_max = true,
            Name::Verbose => self.verbose = true,
            // Always so here.
            _ => {}
        }
        Ok(())
    }

    /// Threads and CPUs.
    fn place(&mut self, given: &Given) -> Result<(), CyclictestError> {
        let cpus = given.value.clone();
        match given.option.name {
            Name::Smp => (self.smp, self.threads, self.cpus) = (true, Threads::PerCpu, None),
            Name::Mainaffinity => self.main_cpus = cpus,
            _ if self.smp => {
                self.notes.push(format!("{} ignored due to smp mode", given.option.shown()));
            }
            Name::Affinity => self.cpus = cpus,
            _ => {
                self.threads = match &given.value {
                    None => Threads::PerCpu,
                    Some(_) => {
                        let threads = usize::try_from(number(given)?).ok().filter(|n| *n > 0);
                        let threads = threads.ok_or_else(|| value(given, "a number of threads"))?;
                        Threads::Number(threads)
                    }
                };
            }
        }
        Ok(())
    }

    fn latency(&mut self, given: &Given) -> Result<(), CyclictestError> {
        let us = i32::try_from(number(given)?);
        let us = us.map_err(|_| value(given, "a latency of at most 2147483647 us"))?;
        if self.idle != Idle::LeftAlone {
            self.idle = Idle::HeldAt(us);
        }
        Ok(())
    }

    /// What the options do to each other.
    fn together(&mut self) -> Result<(), CyclictestError> {
        if self.step > 1 && !self.verbose {
            return Err(refused("-o".to_owned(), "it is only meaningful with -v"));
        }
        if self.step == 0 {
            return Err(refused("-o".to_owned(), "it is at least 1"));
        }
        if self.priospread && self.priority == 0 {
            self.policy = PolicyName::Fifo;
        }
        if self.rows > 0 && self.distance_us.is_some() {
            self.notes.push("distance is ignored and set to 0, if histogram enabled".to_owned());
        }
        Ok(())
    }

    /// Refuses what only one thread can have.
    ///
    /// # Errors
    /// Several priorities or intervals.
    pub(crate) fn of_several(&self, threads: usize) -> Result<(), CyclictestError> {
        if threads < 2 {
            return Ok(());
        }
        if self.priospread {
            return Err(refused(
                "--priospread".to_owned(),
                "all threads have one priority; leave it out",
            ));
        }
        match self.distance_us {
            Some(us) if us > 0 && self.rows == 0 => Err(refused(
                "-d".to_owned(),
                "all threads have one interval; give -d 0 or leave it out",
            )),
            _ => Ok(()),
        }
    }
}

fn refused(option: String, why: &str) -> CyclictestError {
    CyclictestError::Refused { option, why: why.to_owned() }
}

fn value(given: &Given, wanted: &'static str) -> CyclictestError {
    CyclictestError::Value {
        option: given.option.shown(),
        value: given.value.clone().unwrap_or_default(),
        wanted,
    }
}

/// A whole number; blanks around it are those of `-h 100` as one word.
fn number(given: &Given) -> Result<u64, CyclictestError> {
    let text = given.value.as_deref().unwrap_or_default().trim();
    text.parse().map_err(|_| value(given, "a whole number without a unit"))
}

fn rows(given: &Given) -> Result<usize, CyclictestError> {
    Ok(usize::try_from(number(given)?.min(ROWS_MAX)).unwrap_or(0))
}

fn seconds(given: &Given) -> Result<u64, CyclictestError> {
    let text = given.value.as_deref().unwrap_or_default().trim();
    let (digits, factor) = match text.strip_suffix(|c: char| c.is_ascii_alphabetic()) {
        None => (text, 1),
        Some(digits) => match text.chars().last().map(|c| c.to_ascii_lowercase()) {
            Some('s') => (digits, 1),
            Some('m') => (digits, 60),
            Some('h') => (digits, 3600),
            Some('d') => (digits, 86_400),
            _ => ("", 0),
        },
    };
    let seconds = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(factor));
    seconds.ok_or_else(|| value(given, "a number of seconds, or one with m, h or d behind it"))
}
