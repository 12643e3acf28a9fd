// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of cyclictest, said as ours: for whoever types what their fingers know.
//!
//! Units: those of cyclictest (µs without a unit; seconds for -D).
//! Not here: files that cyclictest wrote (`cyclictest`). Source: cyclictest(8), rt-tests 2.10; docs/from-cyclictest.md.

use tailbound_core::units::parse_ns;

/// Short options of cyclictest that take a value, as getopt(3) has them.
const WITH_VALUE: &str = "AbcdDhFHilopPR";
/// Those that may have one, joined to them.
const MAY_HAVE: &str = "at";
/// Long options with a value, and the short one that means the same.
const LONG_WITH_VALUE: &[(&str, Option<char>)] = &[
    ("aligned", Some('A')),
    ("breaktrace", Some('b')),
    ("clock", Some('c')),
    ("distance", Some('d')),
    ("duration", Some('D')),
    ("latency", None),
    ("histogram", Some('h')),
    ("histofall", Some('H')),
    ("histfile", None),
    ("interval", Some('i')),
    ("json", None),
    ("loops", Some('l')),
    ("mainaffinity", None),
    ("policy", None),
    ("priority", Some('p')),
    ("prio", Some('p')),
    ("spike", None),
];

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

fn option(long: &str) -> Option<Option<char>> {
    let long = long.split('=').next().unwrap_or(long);
    let alone = [
        ("mlockall", Some('m')),
        ("smp", Some('S')),
        ("numa", Some('S')),
        ("nanosleep", None),
        ("nsecs", None),
        ("quiet", Some('q')),
        ("relative", Some('r')),
        ("threads", Some('t')),
        ("affinity", Some('a')),
        ("posix_timers", Some('x')),
        ("system", Some('s')),
    ];
    let mut known = alone.iter().chain(LONG_WITH_VALUE);
    known.find(|(name, _)| *name == long).map(|(_, short)| *short)
}

/// The words one by one, as getopt(3) takes them; none where a word is no option of cyclictest.
fn translate(words: &[String]) -> Option<Translation> {
    let mut all = Translation::default();
    let mut rest = words.iter().map(String::as_str).peekable();
    while let Some(word) = rest.next() {
        let letters = word.strip_prefix('-')?;
        if let Some(long) = letters.strip_prefix('-').or((letters == "smp").then_some("smp")) {
            all.long(long, &mut rest)?;
        } else if letters.is_empty() {
            // `- m`, as many a page on the web has it.
            let next = rest.next()?;
            all.notes.push(format!("`- {next}` was read as `-{next}`."));
            all.cluster(next, &mut rest)?;
        } else {
            all.cluster(letters, &mut rest)?;
        }
    }
    Some(all.finished())
}

impl Translation {
    /// `--interval=200`, `--interval 200`.
    fn long<'w>(&mut self, long: &'w str, rest: &mut impl Iterator<Item = &'w str>) -> Option<()> {
        let (name, joined) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let known = option(name)?;
        let takes = LONG_WITH_VALUE.iter().any(|(long, _)| *long == name);
        let value = if takes { Some(joined.or_else(|| rest.next())?) } else { joined };
        match (name, known) {
            ("policy", _) => self.policy = value.map(str::to_owned),
            ("latency", _) => self.words.push(format!("--cpu-dma-latency {}", micros(value?)?)),
            ("histfile" | "json", _) => self.words.push(format!("-o {}", value?)),
            (_, Some(short)) => self.short(short, value)?,
            (_, None) => {}
        }
        Some(())
    }

    /// `-Smp99`: letters without a value, and one with it, joined or the next word.
    fn cluster<'w, I: Iterator<Item = &'w str>>(
        &mut self,
        letters: &'w str,
        rest: &mut std::iter::Peekable<I>,
    ) -> Option<()> {
        let mut letters = letters.chars();
        while let Some(letter) = letters.next() {
            let joined = letters.as_str();
            let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
            let must = WITH_VALUE.contains(letter);
            if must || MAY_HAVE.contains(letter) && is_number(joined) {
                let value = if joined.is_empty() { rest.next()? } else { joined };
                return self.short(letter, Some(value));
            }
            // `-a 2`: cyclictest takes the next word where it is no option.
            let follows = joined.is_empty() && rest.peek().is_some_and(|word| is_number(word));
            let value = if MAY_HAVE.contains(letter) && follows { rest.next() } else { None };
            self.short(letter, value)?;
        }
        Some(())
    }

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

    fn short(&mut self, letter: char, value: Option<&str>) -> Option<()> {
        match (letter, value) {
            ('p', Some(priority)) => {
                self.priority = priority.parse().ok().filter(|n| (1..=99).contains(n));
            }
            ('i', Some(us)) => self.words.push(format!("-i {}", micros(us)?)),
            ('D', Some(time)) => self.words.push(format!("-D {}", seconds(time)?)),
            ('l', Some("0")) => {}
            ('l', Some(n)) => self.words.push(format!("-l {}", n.parse::<u64>().ok()?)),
            ('a', Some(cpus)) => self.words.push(format!("-a {cpus}")),
            ('t', Some("1")) if !self.words.iter().any(|w| w.starts_with("-a ")) => {
                self.words.push("--tasks 1".to_owned());
            }
            ('t', Some(n)) if !self.words.iter().any(|w| w.starts_with("-a ")) => {
                self.notes.push(format!(
                    "-t {n}: one thread on each CPU is the default; --tasks {n} has so many unpinned ones."
                ));
            }
            ('b', Some(us)) => self.words.push(format!("-b {}", micros(us)?)),
            ('c', Some("0")) => {}
            ('c', Some(_)) => self.words.push("--clock realtime".to_owned()),
            ('h' | 'H', Some(_)) => self.notes.push(format!(
                "-{letter}: a histogram is always recorded, from 0 to 17 s; the run file and the report have it."
            )),
            ('d', Some(_)) => self.notes.push("-d is the deadline here; all threads have one interval.".to_owned()),
            ('q', _) => self.quiet = true,
            ('r', _) => self.words.push("--sleep nanosleep-relative".to_owned()),
            ('s', _) => self.words.push("--sleep nanosleep-plain".to_owned()),
            ('x', _) => self.words.push("--sleep posix-timer".to_owned()),
            ('v', _) => self.words.push("--raw".to_owned()),
            // Always so here, or without a counterpart that changes a figure.
            ('m' | 'n' | 'N' | 'S' | 't' | 'a' | 'M' | 'u' | 'A' | 'k' | 'V' | 'R', _) => {}
            (_, Some(value)) => self.notes.push(format!("-{letter} {value} has no counterpart.")),
            _ => return None,
        }
        Some(())
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
