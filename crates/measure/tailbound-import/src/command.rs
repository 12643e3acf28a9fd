// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a tool's command line says about a run: interval, priority, policy, duration, clock.
//!
//! Units: rt-tests' `-i` and `-d` are µs, `-D` is s unless `m`, `h` or `d`
//! follows. The command line was written with spaces between its words and without quotes.
//! Source: cyclictest(8), oslat(8), getopt_long(3), rtla-timerlat-hist(1).

use tailbound_core::plan::{Clock, Means};
use tailbound_core::{Finding, Impact, Policy};

use crate::draft::{Draft, quoted};

/// Arguments of a command line by their short name, or by their long one where there is no short.
#[derive(Debug, Default)]
pub(crate) struct Arguments(Vec<(String, Option<String>)>);

/// How a tool's options are spelled.
pub(crate) struct Spelling {
    /// Short options with an argument.
    pub(crate) with: &'static str,
    /// Short options whose argument may be absent; it begins with a digit.
    pub(crate) maybe: &'static str,
    /// Long names of short options, and long options with an argument of their own (`'-'`).
    pub(crate) long: &'static [(&'static str, char)],
}

pub(crate) const CYCLICTEST: Spelling = Spelling {
    with: "AbcdDFhHiloOpTy",
    maybe: "at",
    long: &[
        ("affinity", 'a'),
        ("aligned", 'A'),
        ("breaktrace", 'b'),
        ("clock", 'c'),
        ("distance", 'd'),
        ("duration", 'D'),
        ("fifo", 'F'),
        ("histogram", 'h'),
        ("histofall", 'H'),
        ("interval", 'i'),
        ("loops", 'l'),
        ("oscope", 'o'),
        ("priority", 'p'),
        ("threads", 't'),
        ("policy", '-'),
        ("latency", '-'),
        ("spike", '-'),
        ("json", '-'),
        ("histfile", '-'),
        ("mainaffinity", '-'),
        ("nsecs", 'N'),
        ("relative", 'r'),
        ("system", 's'),
        ("posix_timers", 'x'),
        ("smp", 'S'),
    ],
};

pub(crate) const CYCLICDEADLINE: Spelling = Spelling {
    with: "bDhis",
    maybe: "at",
    long: &[
        ("affinity", 'a'),
        ("breaktrace", 'b'),
        ("duration", 'D'),
        ("histogram", 'h'),
        ("interval", 'i'),
        ("step", 's'),
        ("threads", 't'),
        ("json", '-'),
    ],
};

pub(crate) const OSLAT: Spelling = Spelling {
    with: "bcCDfmTwW",
    maybe: "",
    long: &[
        ("bucket-size", 'b'),
        ("bucket-width", 'W'),
        ("cpu-list", 'c'),
        ("duration", 'D'),
        ("rtprio", 'f'),
        ("workload", 'w'),
        ("workload-mem", 'm'),
        ("trace-threshold", 'T'),
        ("bias", 'B'),
    ],
};

pub(crate) const RTLA: Spelling = Spelling {
    with: "abcdeEiHpPsT",
    maybe: "",
    long: &[
        ("period", 'p'),
        ("cpus", 'c'),
        ("duration", 'd'),
        ("bucket-size", 'b'),
        ("entries", 'E'),
        ("priority", 'P'),
        ("nano", 'n'),
        ("dma-latency", '-'),
    ],
};

impl Arguments {
    /// Takes a command line apart.
    pub(crate) fn new(line: &[String], spelling: &Spelling) -> Self {
        let mut out = Vec::new();
        let mut words = line.iter().skip(1).peekable();
        while let Some(word) = words.next() {
            let mut next = |must: bool| {
                words.next_if(|w| must || w.starts_with(|c: char| c.is_ascii_digit())).cloned()
            };
            if let Some(long) = word.strip_prefix("--") {
                let (name, inline) =
                    long.split_once('=').map_or((long, None), |(n, v)| (n, Some(v.to_owned())));
                let short = spelling.long.iter().find(|(l, _)| *l == name).map(|(_, s)| *s);
                let takes = short.is_some_and(|s| s == '-' || spelling.with.contains(s));
                let maybe = short.is_some_and(|s| spelling.maybe.contains(s));
                let value = inline.or_else(|| if takes || maybe { next(takes) } else { None });
                let key = short.filter(|s| *s != '-').map_or(name.to_owned(), String::from);
                out.push((key, value));
            } else if let Some(cluster) = word.strip_prefix('-') {
                for (i, c) in cluster.char_indices() {
                    let takes = spelling.with.contains(c);
                    if !takes && !spelling.maybe.contains(c) {
                        out.push((c.to_string(), None));
                        continue;
                    }
                    let rest = cluster.get(i + c.len_utf8()..).unwrap_or("");
                    let value = if rest.is_empty() { next(takes) } else { Some(rest.to_owned()) };
                    out.push((c.to_string(), value));
                    break;
                }
            }
        }
        Self(out)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(k, _)| k == key)
    }

    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(k, _)| k == key).and_then(|(_, v)| v.as_deref())
    }

    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.value(key)?.parse().ok()
    }

    /// `90`, `20m`, `2h`, `1d` as ns.
    pub(crate) fn span_ns(&self, key: &str) -> Option<i64> {
        let text = self.value(key)?;
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let factor: i64 = match text.get(digits.len()..)? {
            "" | "s" | "S" => 1,
            "m" | "M" => 60,
            "h" | "H" => 3600,
            "d" | "D" => 86_400,
            _ => return None,
        };
        digits.parse::<i64>().ok()?.checked_mul(factor)?.checked_mul(1_000_000_000)
    }
}

/// Splits a command line, keeps it, and takes a cyclictest's settings out of it.
pub(crate) fn cyclictest(draft: &mut Draft, line: &str) -> Arguments {
    draft.command = line.split_whitespace().map(str::to_owned).collect();
    let words = Arguments::new(&draft.command, &CYCLICTEST);
    if draft.command.is_empty() {
        // Without it not even the defaults are known to hold.
        return words;
    }
    let us = |n: u64| i64::try_from(n).ok().and_then(|n| n.checked_mul(1000));
    draft.interval_ns = us(words.number("i").unwrap_or(1000)).filter(|i| *i > 0);
    // With a histogram the tool sets the distance to 0 (and says so on standard error).
    let together = words.has("h") || words.has("H");
    let distance = if together { 0 } else { words.number("d").unwrap_or(500) };
    draft.distance_ns = us(distance).unwrap_or(0);
    draft.duration_ns = words.span_ns("D").filter(|d| *d > 0);
    draft.clock = Some(Clock::Monotonic);
    if words.value("c") == Some("1") {
        realtime_clock(draft);
    }
    // `-s` outranks `-x` and `-r`: nanosleep(2) for one interval from each wake-up.
    draft.means = Some(if words.has("s") {
        Means::NanosleepPlain
    } else if words.has("x") {
        Means::PosixTimer
    } else if words.has("r") {
        Means::NanosleepRelative
    } else {
        Means::Nanosleep
    });
    policy(draft, &words);
    let passive = ["laptop", "default-system"].iter().any(|w| words.has(w));
    if !passive {
        // As atoi(3) in the tool: what is no number is 0.
        let us = words.value("latency").and_then(|v| v.parse().ok()).unwrap_or(0);
        dma_latency(draft, us);
    }
    words
}

fn policy(draft: &mut Draft, words: &Arguments) {
    let priority = words.number("p").and_then(|p| u8::try_from(p).ok()).filter(|p| *p > 0);
    let word = words.value("policy").or(words.value("y")).unwrap_or("").to_ascii_lowercase();
    draft.policy = Some(match (word.as_str(), priority) {
        ("rr", Some(p)) => Policy::Rr(p),
        ("" | "fifo", Some(p)) => Policy::Fifo(p),
        (name, Some(p)) => {
            draft.lose(format!(
                "The policy {} was asked for beside a priority: cyclictest takes fifo then.",
                quoted(name)
            ));
            Policy::Fifo(p)
        }
        (name @ ("fifo" | "rr"), None) => {
            draft
                .lose("No priority is on the command line: cyclictest chose one, the plan says 1.");
            if name == "rr" { Policy::Rr(1) } else { Policy::Fifo(1) }
        }
        ("" | "other" | "normal", None) => Policy::Other,
        (name, None) => {
            draft.lose(format!(
                "The policy {} was asked for, but cyclictest runs such threads as other.",
                quoted(name)
            ));
            Policy::Other
        }
    });
    not_realtime(draft);
}

/// A wake-up latency at SCHED_OTHER is seldom what was meant.
pub(crate) fn not_realtime(draft: &mut Draft) {
    if draft.policy.is_some_and(|p| !p.is_realtime()) {
        draft.note(Finding::listed(
            "source-not-realtime",
            Impact::Notice,
            "the measured threads had no real-time policy",
        ));
    }
}

/// CLOCK_REALTIME can be stepped while it measures.
pub(crate) fn realtime_clock(draft: &mut Draft) {
    draft.clock = Some(Clock::Realtime);
    draft.doubt(
        "source-clock-realtime",
        format!("{} measured on a clock that can be set while it runs.", draft.tool),
        "A step of the clock looks like a very late or a very early wake-up, or hides one.",
        "Measure on the monotonic clock.",
    );
}

/// The tool kept the CPUs out of deep idle: that is another system than the deployed one.
pub(crate) fn dma_latency(draft: &mut Draft, us: i32) {
    draft.cpu_dma_latency_us = Some(us);
    let tool = draft.tool.clone();
    draft.note(Finding::listed(
        "source-dma-latency",
        Impact::Notice,
        format!("{tool} held /dev/cpu_dma_latency at {us} µs"),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(line: &str) -> Draft {
        let mut d = Draft::new("cyclictest", "");
        cyclictest(&mut d, line);
        d
    }

    #[test]
    fn the_command_line_is_understood_in_every_spelling() {
        let d = draft("cyclictest -q -m -p 95 -i 200 -d 0 -t 2 -a 0-1 -D 3 -h 400 --json=x.json");
        assert_eq!((d.interval_ns, d.duration_ns), (Some(200_000), Some(3_000_000_000)));
        assert_eq!((d.policy, d.distance_ns), (Some(Policy::Fifo(95)), 0));
        let d =
            draft("/usr/bin/cyclictest -qmp80 --policy rr --interval=500 --duration 2m -S -c 1");
        assert_eq!((d.interval_ns, d.duration_ns), (Some(500_000), Some(120_000_000_000)));
        assert_eq!((d.policy, d.clock), (Some(Policy::Rr(80)), Some(Clock::Realtime)));
        let d = draft("cyclictest -t -a -l 1000 --default-system");
        assert_eq!((d.interval_ns, d.distance_ns), (Some(1_000_000), 500_000));
        assert_eq!((d.policy, d.cpu_dma_latency_us), (Some(Policy::Other), None));
        assert!(d.findings.iter().any(|f| f.id == "source-not-realtime"));
    }

    #[test]
    fn what_options_do_to_each_other_is_what_cyclictest_makes_of_them() {
        // -S keeps priorities equal, not intervals; -h and -H do.
        assert_eq!(draft("cyclictest -S -p 80 -i 250").distance_ns, 500_000);
        assert_eq!(draft("cyclictest -S -p 80 -d 10").distance_ns, 10_000);
        assert_eq!(draft("cyclictest -S -p 80 -H 400").distance_ns, 0);
        for (line, means) in [
            ("cyclictest -s -p 80", Means::NanosleepPlain),
            ("cyclictest -x --system -p 80", Means::NanosleepPlain),
            ("cyclictest -rs", Means::NanosleepPlain),
            ("cyclictest -r", Means::NanosleepRelative),
            ("cyclictest -x", Means::PosixTimer),
        ] {
            assert_eq!(draft(line).means, Some(means), "{line}");
        }
        for (line, policy) in [
            ("cyclictest --policy=other -p 80", Policy::Fifo(80)),
            ("cyclictest -p 80 --policy=batch", Policy::Fifo(80)),
            ("cyclictest --policy=rr -p 80", Policy::Rr(80)),
            ("cyclictest --policy=batch", Policy::Other),
            ("cyclictest --policy=other", Policy::Other),
        ] {
            assert_eq!(draft(line).policy, Some(policy), "{line}");
        }
        let d = draft("cyclictest --policy=other -p 80");
        assert!(d.lost.iter().any(|l| l.contains("beside a priority")), "{:?}", d.lost);
        let d = draft("");
        assert_eq!((d.interval_ns, d.policy, d.means), (None, None, None));
    }

    #[test]
    fn nonsense_on_the_command_line_is_harmless() {
        for line in [
            "",
            "-",
            "--",
            "cyclictest -i",
            "cyclictest -i 99999999999999999999 -p 300 -D 9q",
            "cyclictest -pé --=,",
        ] {
            let _ = draft(line);
        }
    }
}
