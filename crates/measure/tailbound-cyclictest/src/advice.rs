// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of cyclictest, said as ours: for whoever types what their fingers know.
//!
//! Units: those of cyclictest (µs without a unit; seconds for -D).
//! Not here: the options themselves (`option`), what they mean in a run of cyclictest's own (`options`).
//! Source: cyclictest(8), rt-tests 2.10; docs/from-cyclictest.md.

use tailbound_core::units::parse_ns;

use crate::option::{Name, OPTIONS};
use crate::words::{Given, parse};

/// What a command line of cyclictest comes to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Translation {
    /// Words of `tailbound run`.
    words: Vec<String>,
    /// What has no counterpart, or another meaning.
    notes: Vec<String>,
    policy: Option<String>,
    priority: Option<u8>,
    quiet: bool,
}

/// What to write instead of `words`, where all of them are options of cyclictest.
#[must_use]
pub fn advice(words: &[String]) -> Option<String> {
    let translation = translate(words)?;
    let mut text =
        String::from("These are options of cyclictest. For tailbound, write:\n\n  tailbound run");
    for word in &translation.words {
        text.push(' ');
        text.push_str(word);
    }
    text.push_str("\n\n");
    for note in &translation.notes {
        text.push_str(&format!("- {note}\n"));
    }
    text.push_str(&format!(
        "Or, with the options and the output of cyclictest: tailbound cyclictest {}\n",
        words.join(" ")
    ));
    text.push_str("All options side by side: docs/from-cyclictest.md\n");
    Some(text)
}

/// What the options come to; none where a word is no option of cyclictest.
fn translate(words: &[String]) -> Option<Translation> {
    let mut all = Translation::default();
    let mut rest = words.iter();
    let mut line: Vec<String> = Vec::new();
    while let Some(word) = rest.next() {
        match (word.as_str(), word.strip_prefix("--")) {
            // `- m`, as many a page on the web has it.
            ("-", _) => {
                let next = rest.next()?;
                all.notes.push(format!("`- {next}` was read as `-{next}`."));
                line.push(format!("-{next}"));
            }
            ("-smp", _) | (_, Some("numa")) => line.push("--smp".to_owned()),
            (_, Some(long)) if !is_whole(long) => return None,
            _ => line.push(word.clone()),
        }
    }
    let line = parse(&line).ok()?;
    if !line.stray.is_empty() {
        return None;
    }
    line.given.iter().try_for_each(|given| all.take(given))?;
    Some(all.finished())
}

/// Is it the whole name of an option? A part of one may be meant as ours.
fn is_whole(long: &str) -> bool {
    let name = long.split('=').next().unwrap_or(long);
    ["prio", "align"].contains(&name) || OPTIONS.iter().any(|o| o.long == name)
}

impl Translation {
    /// With what cyclictest has by default, and we have not.
    fn finished(mut self) -> Self {
        let has = |words: &[String], options: &[&str]| {
            words.iter().any(|w| options.iter().any(|option| w.starts_with(option)))
        };
        let priority = self.priority.take();
        let policy = match (self.policy.take().as_deref(), priority) {
            (Some("rr"), Some(priority)) => format!("rr:{priority}"),
            (_, Some(priority)) => format!("fifo:{priority}"),
            (_, None) => "other".to_owned(),
        };
        if policy == "other" {
            self.notes.push("Without -p cyclictest measures ordinary threads.".to_owned());
        }
        self.words.insert(0, format!("-p {policy}"));
        if !has(&self.words, &["-D ", "-l "]) {
            let ends =
                "cyclictest runs until Ctrl-C; this ends after 60 s: give a duration with -D.";
            self.notes.push(ends.to_owned());
        }
        self.words.push("-L none".to_owned());
        if !has(&self.words, &["--cpu-dma-latency"]) {
            self.words.push("--cpu-dma-latency 0us".to_owned());
        }
        if self.quiet {
            self.words.push("-q".to_owned());
        }
        self.notes.push("-L none: without it the run has a load beside it. --cpu-dma-latency 0us: cyclictest keeps the CPUs out of deep idle states.".to_owned());
        self
    }

    fn take(&mut self, given: &Given) -> Option<()> {
        let (option, value) = (given.option, given.value.as_deref());
        let shown = option.shown();
        match (option.name, value) {
            (Name::Policy, policy) => self.policy = policy.map(str::to_owned),
            (Name::Priority, Some(priority)) => {
                self.priority = priority.parse().ok().filter(|n| (1..=99).contains(n));
            }
            (Name::Latency, Some(us)) => {
                self.words.push(format!("--cpu-dma-latency {}", micros(us)?));
            }
            (Name::Histfile | Name::Json, Some(file)) => self.words.push(format!("-o {file}")),
            (Name::Interval, Some(us)) => self.words.push(format!("-i {}", micros(us)?)),
            (Name::Duration, Some(time)) => self.words.push(format!("-D {}", seconds(time)?)),
            (Name::Loops, Some("0")) | (Name::Clock, Some("0")) => {}
            (Name::Loops, Some(n)) => self.words.push(format!("-l {}", n.parse::<u64>().ok()?)),
            (Name::Affinity, Some(cpus)) => self.words.push(format!("-a {cpus}")),
            (Name::Threads, Some(n)) => self.threads(n),
            (Name::Breaktrace, Some(us)) => self.words.push(format!("-b {}", micros(us)?)),
            (Name::Clock, Some(_)) => self.words.push("--clock realtime".to_owned()),
            (Name::Histogram | Name::Histofall, Some(_)) => self.notes.push(format!(
                "{shown}: a histogram is always recorded, from 0 to 17 s; the run file and the report have it."
            )),
            (Name::Distance, Some(_)) => self
                .notes
                .push("-d is the deadline here; all threads have one interval.".to_owned()),
            (Name::Quiet, _) => self.quiet = true,
            (Name::Relative, _) => self.words.push("--sleep nanosleep-relative".to_owned()),
            (Name::System, _) => self.words.push("--sleep nanosleep-plain".to_owned()),
            (Name::PosixTimers, _) => self.words.push("--sleep posix-timer".to_owned()),
            (Name::Verbose, _) => self.words.push("--raw".to_owned()),
            // Ours prints its own.
            (Name::Help, _) => return None,
            (Name::Aligned | Name::Secaligned | Name::Resolution | Name::Mainaffinity, _) => {}
            (_, Some(value)) => self.notes.push(format!("{shown} {value} has no counterpart.")),
            // Always so here, or without a counterpart that changes a figure.
            (_, None) => {}
        }
        Some(())
    }

    fn threads(&mut self, n: &str) {
        if self.words.iter().any(|w| w.starts_with("-a ")) {
            return;
        }
        if n == "1" {
            self.words.push("--tasks 1".to_owned());
        } else {
            self.notes.push(format!(
                "-t {n}: one thread on each CPU is the default; --tasks {n} has so many unpinned ones."
            ));
        }
    }
}

/// A number without a unit is µs; what has one of ours stays.
fn micros(text: &str) -> Option<String> {
    match text.parse::<u64>() {
        Ok(us) => Some(format!("{us}us")),
        Err(_) => parse_ns(text).ok().map(|_| text.to_owned()),
    }
}

/// A number without a unit is seconds.
fn seconds(text: &str) -> Option<String> {
    match text.parse::<u64>() {
        Ok(s) => Some(format!("{s}s")),
        Err(_) => parse_ns(text).ok().map(|_| text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        translate(&words).map_or_else(|| "none".to_owned(), |t| t.words.join(" "))
    }

    #[test]
    fn lines_that_people_type_are_translated() {
        for (theirs, ours) in [
            (
                "-m -S -p 80 -i 200 -h 400 -D 60 -q",
                "-p fifo:80 -i 200us -D 60s -L none --cpu-dma-latency 0us -q",
            ),
            ("-Smp99", "-p fifo:99 -L none --cpu-dma-latency 0us"),
            (
                "-smp -p 80 -n -i 10000 -l 10000",
                "-p fifo:80 -i 10000us -l 10000 -L none --cpu-dma-latency 0us",
            ),
            (
                "-p 90 - m -c 0 -i 200 -n -h 100 -q -l 1000000",
                "-p fifo:90 -i 200us -l 1000000 -L none --cpu-dma-latency 0us -q",
            ),
            ("-a -t -n -p99", "-p fifo:99 -L none --cpu-dma-latency 0us"),
            (
                "--mlockall --smp --priority=80 --interval=200 --distance=0",
                "-p fifo:80 -i 200us -L none --cpu-dma-latency 0us",
            ),
            (
                "-a 2-3 -t2 -b 100 -D 24h",
                "-p other -a 2-3 -b 100us -D 24h -L none --cpu-dma-latency 0us",
            ),
            ("-t1 -p 80 --policy=rr", "-p rr:80 --tasks 1 -L none --cpu-dma-latency 0us"),
            ("--latency=750000 -p 1 -l0", "-p fifo:1 --cpu-dma-latency 750000us -L none"),
        ] {
            assert_eq!(said(theirs), ours, "{theirs}");
        }
        assert_eq!(said("--nosuch"), "none");
        assert_eq!(said("-i many"), "none");
        assert_eq!(said("file"), "none");
        let words = ["-p".to_owned(), "80".to_owned(), "-".to_owned(), "m".to_owned()];
        assert!(
            translate(&words).unwrap().notes.iter().any(|n| n.contains("`- m` was read as `-m`"))
        );
    }
}
