// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a load's specification: its name, the options that every load has, and the kinds of
//! values that options take.
//!
//! Units: bytes, counts, ns. Defaults that depend on the machine (groups, block)
//! stay `None` here: the worker fills them in where it runs.
//! Not here: which options a load has and what they may be (the file of each load).

use std::path::PathBuf;

use tailbound_core::{CpuSet, Spec, units};

use crate::catalogue::{self, PHASE};
use crate::error::LoadError;
use crate::kind::{LoadKind, Start};
use crate::phase::Phase;

/// Most loops of a load with an end.
const LOOPS_MAX: u64 = 1_000_000_000;
/// Most processes or threads that an option asks for, where a load has no limit of its own.
const TASKS_MAX: u32 = 1000;

/// A specification understood.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) kind: &'static LoadKind,
    pub(crate) start: Start,
    pub(crate) cpus: Option<CpuSet>,
    pub(crate) phase: Phase,
}

/// Is `spec` a load this crate can start?
///
/// # Errors
/// [`LoadError`]: which word is wrong and what would be right.
pub fn check(spec: &Spec) -> Result<&'static LoadKind, LoadError> {
    parse(spec).map(|p| p.kind)
}

/// Reads the options of one load.
pub(crate) struct Reader<'a> {
    kind: &'static LoadKind,
    pub(crate) spec: &'a Spec,
}

impl Reader<'_> {
    pub(crate) fn bad(&self, option: &str, reason: impl Into<String>) -> LoadError {
        LoadError::BadValue {
            load: self.kind.name,
            option: option.to_owned(),
            value: self.spec.option(option).unwrap_or_default().to_owned(),
            reason: reason.into(),
        }
    }

    /// The error of an option that must be given.
    pub(crate) fn missing(&self, option: &'static str, help: &'static str) -> LoadError {
        LoadError::Missing { load: self.kind.name, option, help }
    }

    pub(crate) fn number(
        &self,
        option: &str,
        min: u64,
        max: u64,
    ) -> Result<Option<u64>, LoadError> {
        let Some(text) = self.spec.option(option) else { return Ok(None) };
        text.parse::<u64>()
            .ok()
            .filter(|n| (min..=max).contains(n))
            .map(Some)
            .ok_or_else(|| self.bad(option, format!("write a whole number from {min} to {max}")))
    }

    pub(crate) fn count(
        &self,
        option: &str,
        min: u32,
        max: u32,
    ) -> Result<Option<usize>, LoadError> {
        let n = self.number(option, min.into(), max.into())?;
        Ok(n.and_then(|n| usize::try_from(n).ok()))
    }

    /// Processes, threads or jobs.
    pub(crate) fn tasks(&self, option: &str) -> Result<Option<usize>, LoadError> {
        self.count(option, 1, TASKS_MAX)
    }

    /// The amount of a load with an end; `None`: until stopped.
    pub(crate) fn loops(&self) -> Result<Option<u64>, LoadError> {
        self.number("loops", 1, LOOPS_MAX)
    }

    pub(crate) fn yes_no(&self, option: &str) -> Result<Option<bool>, LoadError> {
        self.word(option, &[("yes", true), ("no", false)])
    }

    /// A folder, by its whole path.
    pub(crate) fn folder(&self, option: &str) -> Result<Option<PathBuf>, LoadError> {
        let path = self.spec.option(option);
        if path.is_some_and(|p| !p.starts_with('/')) {
            return Err(self.bad(option, "write the whole path of a folder, beginning with /"));
        }
        Ok(path.map(PathBuf::from))
    }

    pub(crate) fn word<T: Copy>(
        &self,
        option: &str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, LoadError> {
        let Some(text) = self.spec.option(option) else { return Ok(None) };
        words.iter().find(|w| w.0 == text).map(|w| Some(w.1)).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|w| w.0).collect();
            self.bad(option, format!("write {}", known.join(" or ")))
        })
    }

    /// A time, in ns.
    pub(crate) fn time_ns(&self, option: &str, min_ns: i64) -> Result<Option<i64>, LoadError> {
        let Some(text) = self.spec.option(option) else { return Ok(None) };
        let ns = units::parse_ns(text).map_err(|e| self.bad(option, e.to_string()))?;
        if ns < min_ns {
            let least = units::exact(min_ns);
            return Err(self.bad(option, format!("write a time of at least {least}")));
        }
        Ok(Some(ns))
    }

    pub(crate) fn bytes(&self, option: &str) -> Result<Option<usize>, LoadError> {
        let Some(text) = self.spec.option(option) else { return Ok(None) };
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let factor = match text.get(digits.len()..).unwrap_or_default() {
            "" | "B" => Some(1),
            "K" | "KiB" => Some(1 << 10),
            "M" | "MiB" => Some(1 << 20),
            "G" | "GiB" => Some(1usize << 30),
            _ => None,
        };
        digits
            .parse::<usize>()
            .ok()
            .zip(factor)
            .and_then(|(n, f)| n.checked_mul(f))
            .filter(|n| *n >= 4096)
            .map(Some)
            .ok_or_else(|| self.bad(option, "write a size of at least 4K, for example 64M or 1G"))
    }
}

pub(crate) fn parse(spec: &Spec) -> Result<Parsed, LoadError> {
    let kind =
        catalogue::kind(&spec.name).ok_or_else(|| LoadError::UnknownLoad(spec.name.clone()))?;
    let known = || kind.options.iter().chain(PHASE).map(|o| o.0).collect();
    for (i, (key, value)) in spec.options.iter().enumerate() {
        if !kind.options.iter().chain(PHASE).any(|o| o.0 == key) {
            let option = key.clone();
            return Err(LoadError::UnknownOption { load: kind.name, option, known: known() });
        }
        if spec.options.iter().take(i).any(|(k, _)| k == key) {
            return Err(LoadError::BadValue {
                load: kind.name,
                option: key.clone(),
                value: value.clone(),
                reason: "given twice; write it once".into(),
            });
        }
    }
    let r = Reader { kind, spec };
    let start = (kind.prepare)(&r)?;
    let cpus = match spec.option("cpus") {
        None => None,
        Some(text) => Some(
            text.parse::<CpuSet>()
                .map_err(|e| r.bad("cpus", e.to_string()))
                .and_then(|c| if c.is_empty() { Err(r.bad("cpus", "no CPU")) } else { Ok(c) })?,
        ),
    };
    Ok(Parsed { kind, start, cpus, phase: Phase::read(&r)? })
}

/// What `read` makes of `text`, for the tests beside each load.
#[cfg(test)]
pub(crate) fn read<T>(text: &str, read: fn(&Reader<'_>) -> Result<T, LoadError>) -> T {
    let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    let kind = catalogue::kind(&spec.name).unwrap_or_else(|| panic!("{text}: no such load"));
    read(&Reader { kind, spec: &spec }).unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        match text.parse::<Spec>().map(|s| parse(&s)) {
            Ok(Ok(_)) => "no error".to_owned(),
            Ok(Err(e)) => e.to_string(),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn errors_name_what_would_be_right() {
        assert!(message("hakbench").contains("hackbench, memory, ping-flood"));
        assert!(message("hackbench:group=3").contains("groups, ipc, mode, size, fds, loops"));
        assert!(message("hackbench:ipc=fifo").contains("socketpair or pipe or inet"));
        assert!(message("hackbench:groups=0").contains("from 1 to"));
        assert!(message("hackbench:groups=1000,fds=1000").contains("tasks"));
        assert!(message("hackbench:groups=1,groups=2").contains("twice"));
        assert!(message("memory:block=64Q").contains("64M"));
        assert!(message("memory:block=99999999999999999999G").contains("64M"));
        assert!(message("cpu:cpus=3-1").contains("backwards"));
        assert!(message("cpu:cpus=").contains("no CPU"));
        assert!(message("cmd").contains("line="));
        assert!(message("ping-flood:veth=maybe").contains("yes or no"));
        assert!(message("fork:tasks=0").contains("from 1 to 1000"));
        assert!(message("fork:exec=1").contains("yes or no"));
        assert!(message("mmap:size=4X").contains("64M"));
        assert!(message("mmap:shootdown=yes,tasks=1").contains("at least 2"));
        assert!(message("file:path=here").contains("beginning with /"));
        assert!(message("disk:path=here").contains("beginning with /"));
        assert!(message("timers:interval=1us").contains("at least 10us"));
        assert!(message("interrupts:kind=nmi").contains("ipi or moves"));
        assert!(message("syscalls:call=fork").contains("getppid"));
        assert!(message("calls:do=map.m0.4K+touch.m1").contains("call 2"));
        assert!(message("ping-pong:ipc=doves").contains("futex"));
        assert!(message("stress-ng").contains("--stressors"));
        assert!(message("stress-ng:stressor=--x").contains("--stressors"));
        assert!(message("stress-ng:stressor=vm,slice=1500ms").contains("whole seconds"));
        assert!(message("compile:make=all").contains("tree="));
        assert!(message("compile:tree=/x,make=a;b").contains("words for make"));
        assert!(message("download:rate=1").contains("4K"));
        assert!(message("cpu:every=1s").contains("for="));
        assert!(message("cpu:for=1s,every=1s").contains("longer than for="));
        assert!(message("cpu:for=1").contains("for=1"));
        assert!(message("file:folder=/tmp").contains("path, size, tasks, sync, loops"));
    }
}
