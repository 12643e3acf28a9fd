// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a load's specification may say: the typed options of each load.
//!
//! Context: COLD. Units: bytes, counts. Defaults that depend on the machine (groups, block)
//! stay `None` here: the worker fills them in where it runs.

use tailbound_core::Spec;
use tailbound_core::{CpuSet, units};

use crate::catalogue::{CATALOGUE, LoadKind, PHASE};
use crate::error::LoadError;
use crate::hackbench::FDS_DEFAULT;
use crate::phase::Phase;
use crate::{disk, download, interrupts, ping_pong, stress_ng, syscalls, timers, tlb, tree};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ipc {
    Socketpair,
    Pipe,
    Inet,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hackbench {
    pub(crate) groups: Option<usize>,
    pub(crate) ipc: Ipc,
    pub(crate) threads: bool,
    pub(crate) size: usize,
    pub(crate) fds: usize,
    pub(crate) loops: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mmap {
    pub(crate) size: Option<usize>,
    pub(crate) tasks: Option<usize>,
    pub(crate) shootdown: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileIo {
    pub(crate) path: Option<String>,
    pub(crate) size: Option<usize>,
    pub(crate) tasks: Option<usize>,
    pub(crate) sync: bool,
    pub(crate) loops: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Hackbench(Hackbench),
    Memory { block: Option<usize> },
    Ping { flows: u16, veth: bool, payload: usize },
    Clock,
    Cpu { loops: Option<u64> },
    Compile { jobs: Option<usize>, loops: Option<u64>, tree: Option<tree::Options> },
    Download(download::Options),
    StressNg(stress_ng::Options),
    Fork { tasks: Option<usize>, exec: bool },
    Mmap(Mmap),
    File(FileIo),
    Disk(disk::Options),
    Tlb(tlb::Options),
    Timers(timers::Options),
    Interrupts(interrupts::Kinds),
    Syscalls(syscalls::Options),
    PingPong(ping_pong::Options),
    Command { line: String, repeat: bool },
}

/// A specification understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parsed {
    pub(crate) kind: &'static LoadKind,
    pub(crate) work: Work,
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
    let kind = CATALOGUE
        .iter()
        .find(|k| k.name == spec.name)
        .ok_or_else(|| LoadError::UnknownLoad(spec.name.clone()))?;
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
    let yes_no = [("yes", true), ("no", false)];
    let work = match kind.name {
        "hackbench" => Work::Hackbench(hackbench(&r)?),
        "memory" => Work::Memory { block: r.bytes("block")? },
        "ping-flood" => Work::Ping {
            flows: r.count("flows", 1, 1000)?.and_then(|n| u16::try_from(n).ok()).unwrap_or(1),
            veth: r.word("veth", &yes_no)?.unwrap_or(false),
            payload: r.count("size", 0, 65_507)?.unwrap_or(56),
        },
        "clock" => Work::Clock,
        "cpu" => Work::Cpu { loops: r.number("loops", 1, LOOPS_MAX)? },
        "compile" => Work::Compile {
            jobs: r.count("jobs", 1, STORM_TASKS_MAX)?,
            loops: r.number("loops", 1, LOOPS_MAX)?,
            tree: source_tree(&r)?,
        },
        "download" => Work::Download(download::Options::read(&r)?),
        "stress-ng" => Work::StressNg(stress_ng::Options::read(&r)?),
        "fork" => Work::Fork {
            tasks: r.count("tasks", 1, STORM_TASKS_MAX)?,
            exec: r.word("exec", &yes_no)?.unwrap_or(false),
        },
        "mmap" => Work::Mmap(mmap(&r)?),
        "file" => Work::File(file(&r)?),
        "disk" => Work::Disk(disk::Options::read(&r)?),
        "tlb" => Work::Tlb(tlb::Options::read(&r)?),
        "timers" => Work::Timers(timers::Options::read(&r)?),
        "interrupts" => Work::Interrupts(interrupts::Kinds::read(&r)?),
        "syscalls" => Work::Syscalls(syscalls::Options::read(&r)?),
        "ping-pong" => Work::PingPong(ping_pong::Options::read(&r)?),
        _ => {
            let line = spec.option("line").filter(|l| !l.trim().is_empty());
            let line = line.ok_or(LoadError::Missing {
                load: "cmd",
                option: "line",
                help: "the command to run, for example cmd:line=make -j4",
            })?;
            Work::Command {
                line: line.to_owned(),
                repeat: r.word("repeat", &yes_no)?.unwrap_or(false),
            }
        }
    };
    let cpus = match spec.option("cpus") {
        None => None,
        Some(text) => Some(
            text.parse::<CpuSet>()
                .map_err(|e| r.bad("cpus", e.to_string()))
                .and_then(|c| if c.is_empty() { Err(r.bad("cpus", "no CPU")) } else { Ok(c) })?,
        ),
    };
    Ok(Parsed { kind, work, cpus, phase: Phase::read(&r)? })
}

fn hackbench(r: &Reader<'_>) -> Result<Hackbench, LoadError> {
    let ipc = [("socketpair", Ipc::Socketpair), ("pipe", Ipc::Pipe), ("inet", Ipc::Inet)];
    let it = Hackbench {
        groups: r.count("groups", 1, 1000)?,
        ipc: r.word("ipc", &ipc)?.unwrap_or(Ipc::Socketpair),
        threads: r.word("mode", &[("process", false), ("thread", true)])?.unwrap_or(false),
        size: r.count("size", 1, 1 << 20)?.unwrap_or(100),
        fds: r.count("fds", 1, 1000)?.unwrap_or(FDS_DEFAULT),
        loops: r.number("loops", 1, LOOPS_MAX)?,
    };
    if let Some(groups) = it.groups
        && groups * it.fds * 2 > TASKS_MAX
    {
        return Err(r.bad(
            "groups",
            format!("{groups} groups of 2 x {} tasks are more than {TASKS_MAX} tasks", it.fds),
        ));
    }
    Ok(it)
}

fn source_tree(r: &Reader<'_>) -> Result<Option<tree::Options>, LoadError> {
    let (make, size) = (r.spec.option("make"), r.bytes("size")?);
    let Some(tree) = r.spec.option("tree") else {
        return match (make, size) {
            (None, None) => Ok(None),
            (Some(_), _) => Err(r.bad("make", "needs tree=, which make is to build")),
            (_, Some(_)) => Err(r.bad("size", "needs tree=, whose results it limits")),
        };
    };
    if !tree.starts_with('/') {
        return Err(r.bad("tree", "write the whole path of a folder, beginning with /"));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || " -_=./+".contains(c);
    if make.is_some_and(|m| !m.chars().all(plain)) {
        return Err(r.bad("make", "write words for make: letters, digits and -_=./+"));
    }
    Ok(Some(tree::Options { tree: tree.into(), make: make.map(str::to_owned), size }))
}

fn mmap(r: &Reader<'_>) -> Result<Mmap, LoadError> {
    let it = Mmap {
        size: r.bytes("size")?,
        tasks: r.count("tasks", 1, STORM_TASKS_MAX)?,
        shootdown: r.word("shootdown", &[("yes", true), ("no", false)])?.unwrap_or(false),
    };
    if it.shootdown && it.tasks == Some(1) {
        return Err(
            r.bad("tasks", "shootdown=yes needs at least 2: a thread alone shoots at nobody")
        );
    }
    Ok(it)
}

fn file(r: &Reader<'_>) -> Result<FileIo, LoadError> {
    let path = r.spec.option("path");
    if path.is_some_and(|p| !p.starts_with('/')) {
        return Err(r.bad("path", "write the whole path of a folder, beginning with /"));
    }
    Ok(FileIo {
        path: path.map(str::to_owned),
        size: r.bytes("size")?,
        tasks: r.count("tasks", 1, STORM_TASKS_MAX)?,
        sync: r.word("sync", &[("yes", true), ("no", false)])?.unwrap_or(true),
        loops: r.number("loops", 1, LOOPS_MAX)?,
    })
}

/// Most loops of a load with an end.
pub(crate) const LOOPS_MAX: u64 = 1_000_000_000;
/// Most tasks of a fork, mmap or file load.
pub(crate) const STORM_TASKS_MAX: u32 = 1000;
/// Most tasks of one hackbench: Linux's default limit of process numbers is 32768.
pub(crate) const TASKS_MAX: usize = 30_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        match text.parse::<Spec>().map(|s| parse(&s)) {
            Ok(Ok(parsed)) => format!("{:?}", parsed.work),
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

    #[test]
    fn options_are_read() {
        assert!(message("hackbench:groups=4,ipc=pipe,mode=thread").contains("threads: true"));
        assert!(message("memory:block=2M").contains("2097152"));
        assert!(message("cmd:repeat=yes,line=echo a,b=c").contains("echo a,b=c"));
    }
}
