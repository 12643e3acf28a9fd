// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a probe says of itself: its options, what it times, what it needs; and how its options
//! are read.
//!
//! Context: SETUP. Units: text in; ns, bytes, counts out.
//! Not here: the list of all probes ([`crate::catalogue`]), what they do (one file each).

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use tailbound_core::plan::Plan;
use tailbound_core::units;
use tailbound_core::words::did_you_mean;
use tailbound_host::Root;

use crate::error::ProbeError;
use crate::thread_group::{Running, ThreadGroup};

/// The option, and its word, by which a probe whose threads otherwise sleep uses its CPUs without sleeping.
pub const SPINS_BY: (&str, &str) = ("by", "busy");

/// One option of a probe: `--name VALUE` of `measure`, `name=value` of `run --probe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeOption {
    /// Its name.
    pub name: &'static str,
    /// What stands for its value in the help: `N`, `TIME`, `WORD`.
    pub value: &'static str,
    /// What it is if it is not given; empty: nothing.
    pub default: &'static str,
    /// What it does, in a line; options it may be are written in backquotes.
    pub about: &'static str,
    /// Not shown in the help: for tests of the probe.
    pub hidden: bool,
}

impl ProbeOption {
    /// An option that is shown.
    #[must_use]
    pub const fn new(
        name: &'static str,
        value: &'static str,
        default: &'static str,
        about: &'static str,
    ) -> Self {
        Self { name, value, default, about, hidden: false }
    }
    /// A fault to be planted, to see the probe fail.
    #[must_use]
    pub const fn plant(about: &'static str) -> Self {
        Self { name: "plant", value: "FAULT", default: "", about, hidden: true }
    }
}

/// One probe.
#[derive(Debug)]
pub struct ProbeKind {
    /// Its name: the word after `measure`.
    pub name: &'static str,
    /// What it measures, in a line for the help.
    pub about: &'static str,
    /// From where it times: the instruction or call just before which the first stamp is taken.
    pub from: &'static str,
    /// To where.
    pub to: &'static str,
    /// Programs of the field that it replaces.
    pub replaces: &'static [&'static str],
    /// Its options.
    pub options: &'static [ProbeOption],
    /// `--interval`, if it is not given.
    pub interval: &'static str,
    /// `--policy`, if it is not given; `None`: as high as allowed.
    pub policy: Option<&'static str>,
    /// What its due events are, in the singular; `None`: activations.
    pub event: Option<&'static str>,
    /// What it tries the kernel for, as a clause; `None`: it only measures.
    pub property: Option<&'static str>,
    /// Its threads use CPUs without sleeping, whatever its options are.
    pub hog: bool,
    /// Which options of a plan mean something to it, of those that not all probes have.
    pub takes: &'static [PlanOption],
    /// Reads its options and refuses what cannot work, before anything starts: impossible options, and
    /// what this machine lacks.
    pub prepare: fn(&Setup<'_>) -> Result<Prepared, ProbeError>,
}

impl ProbeKind {
    /// Do its threads use CPUs without sleeping, with these options?
    #[must_use]
    pub fn spins(&self, options: &BTreeMap<String, String>) -> bool {
        let (option, word) = SPINS_BY;
        self.hog || options.get(option).is_some_and(|given| given == word)
    }
}

/// An option of a plan that only some probes have a use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanOption {
    /// `--sleep`
    Sleep,
    /// `--tasks`
    Tasks,
    /// `--observe`
    Observe,
    /// `--paranoid`
    Paranoid,
    /// `--interval-spread`
    IntervalSpread,
    /// `--timer-slack`
    TimerSlack,
}

impl PlanOption {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Sleep,
        Self::Tasks,
        Self::Observe,
        Self::Paranoid,
        Self::IntervalSpread,
        Self::TimerSlack,
    ];
    /// Its name on the command line, without the dashes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Tasks => "tasks",
            Self::Observe => "observe",
            Self::Paranoid => "paranoid",
            Self::IntervalSpread => "interval-spread",
            Self::TimerSlack => "timer-slack",
        }
    }
}

/// Starts a probe with the options that were read for it.
type Begin = dyn FnOnce(&Setup<'_>) -> Result<Running, ProbeError> + Send;

/// A probe that was checked and only has to be started: its options are read once.
pub struct Prepared(Box<Begin>);

impl Prepared {
    /// To be started by `begin` with `options`.
    pub fn with<T: Send + 'static>(
        options: T,
        begin: fn(&Setup<'_>, T) -> Result<Running, ProbeError>,
    ) -> Self {
        Self(Box::new(move |setup| begin(setup, options)))
    }
    /// Starts it, with the plan it was prepared for.
    ///
    /// # Errors
    /// [`ProbeError`]; nothing is left running then.
    pub fn begin(self, setup: &Setup<'_>) -> Result<Running, ProbeError> {
        (self.0)(setup)
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prepared")
    }
}

/// Everything a probe is started with.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// What to do.
    pub plan: &'a Plan,
    /// The machine.
    pub root: &'a Root,
    /// This program, for processes that the probe needs.
    pub exe: &'a Path,
    /// Set when the threads are to end.
    pub stop: &'static AtomicBool,
    /// The first activations fall due then, on CLOCK_REALTIME; none: as soon as all threads are ready.
    pub begin_at_ns: Option<i64>,
}

impl Setup<'_> {
    /// A threads for this plan, with a watchdog.
    ///
    /// # Errors
    /// The plan's clock is not known to this kernel.
    pub fn threads(&self) -> Result<ThreadGroup, ProbeError> {
        ThreadGroup::new(self.plan, self.stop).map(|g| g.watched().beginning(self.begin_at_ns))
    }
    /// The measured CPUs.
    #[must_use]
    pub fn cpus(&self) -> Vec<u32> {
        self.plan.cpus.iter().collect()
    }
    /// The probe's options.
    #[must_use]
    pub fn options(&self) -> Options<'_> {
        Options { probe: &self.plan.probe, all: &self.plan.options }
    }
}

/// A fault that a probe has to notice, in a test of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlantedFault {
    /// It measures as always.
    #[default]
    Absent,
    /// Something is done wrong.
    Present,
}

impl PlantedFault {
    /// Is something done wrong?
    #[must_use]
    pub fn is_present(self) -> bool {
        self == Self::Present
    }
}

/// The options of a plan, read as what they are.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    probe: &'a str,
    all: &'a BTreeMap<String, String>,
}

impl<'a> Options<'a> {
    /// The text of option `name`, or `None` if it is empty.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.all.get(name).map(String::as_str).filter(|t| !t.is_empty())
    }
    /// Refuses the value of option `name`.
    #[must_use]
    pub fn wrong(&self, name: &str, why: impl std::fmt::Display) -> ProbeError {
        ProbeError::Value {
            probe: self.probe.to_owned(),
            option: name.to_owned(),
            value: self.text(name).unwrap_or_default().to_owned(),
            why: why.to_string(),
        }
    }
    /// The fault `word` of option `plant`.
    ///
    /// # Errors
    /// [`ProbeError::Value`] for any other word.
    pub fn plant(&self, word: &str) -> Result<PlantedFault, ProbeError> {
        match self.text("plant") {
            None => Ok(PlantedFault::Absent),
            Some(given) if given == word => Ok(PlantedFault::Present),
            Some(_) => Err(self.wrong("plant", format!("choose {word}"))),
        }
    }
    fn parse<T: FromStr>(&self, name: &str, what: &str) -> Result<T, ProbeError> {
        let text = self.text(name).ok_or_else(|| self.wrong(name, format!("write {what}")))?;
        text.parse().map_err(|_| self.wrong(name, format!("not {what}")))
    }
    /// A whole number in `range`.
    ///
    /// # Errors
    /// [`ProbeError::Value`] with the range.
    pub fn count(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, ProbeError> {
        let n = self.parse::<u64>(name, "a whole number")?;
        if range.contains(&n) {
            return Ok(n);
        }
        Err(self.wrong(name, format!("outside {} to {}", range.start(), range.end())))
    }
    /// One of `options`; yields its position.
    ///
    /// # Errors
    /// [`ProbeError::Value`] with the options.
    pub fn word(&self, name: &str, options: &[&str]) -> Result<usize, ProbeError> {
        let text = self.text(name).unwrap_or_default();
        options.iter().position(|w| *w == text).ok_or_else(|| {
            let near = did_you_mean(text, options.iter().copied());
            self.wrong(name, format!("choose {}{near}", options.join(", ")))
        })
    }
    /// `yes` or `no`.
    ///
    /// # Errors
    /// [`ProbeError::Value`] for any other word.
    pub fn flag(&self, name: &str) -> Result<bool, ProbeError> {
        self.word(name, &["no", "yes"]).map(|i| i == 1)
    }
    /// A time with its unit, more than 0.
    ///
    /// # Errors
    /// [`ProbeError::Value`].
    pub fn time_ns(&self, name: &str) -> Result<i64, ProbeError> {
        let text = self.text(name).unwrap_or_default();
        let ns = units::parse_ns(text).map_err(|e| self.wrong(name, e))?;
        if ns > 0 { Ok(ns) } else { Err(self.wrong(name, "must be more than 0")) }
    }
    /// A number in `range`.
    ///
    /// # Errors
    /// [`ProbeError::Value`] with the range.
    pub fn number(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<f64>,
    ) -> Result<f64, ProbeError> {
        let v = self.parse::<f64>(name, "a number")?;
        if range.contains(&v) {
            return Ok(v);
        }
        Err(self.wrong(name, format!("outside {} to {}", range.start(), range.end())))
    }
}
