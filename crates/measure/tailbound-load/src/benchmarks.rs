// SPDX-License-Identifier: MIT OR Apache-2.0
//! Works: loads with an end, by the names that people compare systems by.
//!
//! A benchmark is a load of a fixed amount, so that its time is its cost.

use tailbound_core::Spec;

use crate::error::LoadError;
use crate::options;

/// One benchmark there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BenchmarkKind {
    /// Its name.
    pub name: &'static str,
    /// The load it is.
    load: &'static str,
    /// Options of the load that make it this benchmark.
    preset: &'static [(&'static str, &'static str)],
    /// Its amount, where none is given.
    loops: Option<u64>,
    /// What it does, in a line.
    pub about: &'static str,
}

/// Every benchmark, with an amount that takes a desk machine about a second.
pub const BENCHMARKS: &[BenchmarkKind] = &[
    BenchmarkKind {
        name: "arithmetic",
        load: "cpu",
        preset: &[],
        loops: Some(300_000),
        about: "pure user mode: a fixed number of instructions on each CPU",
    },
    BenchmarkKind {
        name: "file",
        load: "file",
        preset: &[],
        loops: Some(32),
        about: "files written, synced, read back and dropped",
    },
    BenchmarkKind {
        name: "messages",
        load: "hackbench",
        preset: &[],
        loops: Some(200),
        about: "a fixed number of messages between many tasks, as hackbench sends them",
    },
    BenchmarkKind {
        name: "compile",
        load: "compile",
        preset: &[],
        loops: Some(24),
        about: "C compiled with the machine's cc, a compiler per CPU",
    },
    BenchmarkKind {
        name: "switch",
        load: "ping-pong",
        preset: &[("ipc", "futex"), ("mode", "thread"), ("place", "same")],
        loops: Some(300_000),
        about: "two threads on each CPU that take turns by a futex: a round trip is two context switches",
    },
    BenchmarkKind {
        name: "pipe",
        load: "ping-pong",
        preset: &[("ipc", "pipe")],
        loops: Some(200_000),
        about: "a byte to and fro through two pipes, between two processes, a pair per CPU",
    },
    BenchmarkKind {
        name: "socket",
        load: "ping-pong",
        preset: &[("ipc", "socketpair")],
        loops: Some(150_000),
        about: "a byte to and fro through a pair of Unix sockets, between two processes, a pair per CPU",
    },
    BenchmarkKind {
        name: "syscall",
        load: "syscalls",
        preset: &[("call", "getppid")],
        loops: Some(5_000_000),
        about: "the cheapest system call, on each CPU: the way into the kernel and back",
    },
    BenchmarkKind {
        name: "cmd",
        load: "cmd",
        preset: &[],
        loops: None,
        about: "any shell command: cmd:make -j8",
    },
];

/// The benchmark that `text` names, its amount filled in: `messages`, `file:loops=8,size=1M`,
/// `cmd:make -j8`.
///
/// # Errors
/// Which word is wrong and what would be right.
pub fn benchmark(text: &str) -> Result<Spec, LoadError> {
    let line = text.strip_prefix("cmd:").filter(|rest| !rest.starts_with("line="));
    let mut spec = match line {
        Some(line) => Spec::command(line),
        None => text.parse().map_err(|_| LoadError::UnknownBenchmark(text.to_owned()))?,
    };
    let kind = BENCHMARKS.iter().find(|w| w.name == spec.name);
    let kind = kind.ok_or_else(|| LoadError::UnknownBenchmark(spec.name.clone()))?;
    if let (Some(loops), None) = (kind.loops, spec.option("loops")) {
        spec.options.push(("loops".to_owned(), loops.to_string()));
    }
    if let Some((key, value)) = kind.preset.iter().find(|(k, _)| spec.option(k).is_some()) {
        return Err(LoadError::BadValue {
            load: kind.name,
            option: (*key).into(),
            value: spec.option(key).unwrap_or_default().into(),
            reason: format!("this benchmark is {key}={value}; choose another one, or leave it out"),
        });
    }
    let phase = crate::catalogue::PHASE.iter().find(|(k, _)| spec.option(k).is_some());
    if let Some((key, _)) = phase {
        return Err(LoadError::BadValue {
            load: kind.name,
            option: (*key).into(),
            value: spec.option(key).unwrap_or_default().into(),
            reason: "a benchmark is run at once and to its end; phases are for loads".into(),
        });
    }
    if spec.option("repeat") == Some("yes") {
        return Err(LoadError::BadValue {
            load: "cmd",
            option: "repeat".into(),
            value: "yes".into(),
            reason: "a benchmark has an end; --repeat says how many times it is run".into(),
        });
    }
    options::parse(&as_load(&spec))?;
    Ok(spec)
}

/// The load that a benchmark runs.
pub(crate) fn as_load(spec: &Spec) -> Spec {
    let kind = BENCHMARKS.iter().find(|w| w.name == spec.name);
    let preset = kind.map_or(&[][..], |k| k.preset).iter();
    let preset = preset.map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    Spec {
        name: kind.map_or(spec.name.as_str(), |k| k.load).to_owned(),
        // The command line of `cmd` comes last.
        options: preset.chain(spec.options.iter().cloned()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benchmarks_are_filled_in_and_wrong_words_named() {
        let said = |text: &str| benchmark(text).map(|w| w.to_string()).map_err(|e| e.to_string());
        assert_eq!(said("arithmetic"), Ok("arithmetic:loops=300000".into()));
        assert_eq!(said("messages:groups=1,loops=5"), Ok("messages:groups=1,loops=5".into()));
        assert_eq!(said("cmd:make -j8, all"), Ok("cmd:line=make -j8, all".into()));
        assert_eq!(said("cmd:line=true"), Ok("cmd:line=true".into()));
        assert!(said("memory").is_err_and(|e| e.contains("arithmetic, file, messages")));
        assert!(said("file:loops=0").is_err_and(|e| e.contains("loops=0")));
        assert_eq!(said("switch"), Ok("switch:loops=300000".into()));
        assert_eq!(said("syscall:loops=9,cpus=0"), Ok("syscall:loops=9,cpus=0".into()));
        assert!(said("pipe:ipc=inet").is_err_and(|e| e.contains("this benchmark is ipc=pipe")));
        assert!(said("pipe:from=1s").is_err_and(|e| e.contains("phases are for loads")));
        assert!(said("cmd:").is_err());
    }
}
