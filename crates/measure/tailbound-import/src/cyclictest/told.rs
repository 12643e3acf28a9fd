// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands around the figures of a cyclictest run: its command line, its version, the policy, what it says of the kernel.
//!
//! Source: cyclictest(8); output of rt-tests 0.13 to 2.10 and logs of those who ran it.

use crate::command::Arguments;
use crate::cyclictest::unit::Clues;
use crate::draft::Draft;

/// First version with `-N`.
const NSECS_SINCE: (u32, u32) = (0, 32);

/// What lines beside the figures told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// The last command line before the figures, or the first after them.
    command: Option<String>,
    /// The figures have begun.
    figures: bool,
    version: Option<(u32, u32)>,
    version_name: Option<String>,
    pub(crate) policy: Option<String>,
    dma_zero: bool,
    coarse_timers: bool,
    break_value: Option<String>,
    /// The kernel's number of the thread that came upon the threshold.
    pub(crate) break_thread: Option<u64>,
}

impl Told {
    /// A line of figures comes.
    pub(crate) fn figures(&mut self) {
        self.figures = true;
    }

    /// Takes in a line that holds no figures.
    pub(crate) fn line(&mut self, line: &str) {
        if let Some(v) = line.strip_prefix("# Break value:") {
            self.break_value = Some(v.trim().to_owned());
        } else if let Some(v) = line.strip_prefix("# Break thread:") {
            self.break_thread = v.trim().parse().ok();
        } else if let Some(rest) = line.strip_prefix("policy:") {
            self.policy = rest.trim().split(':').next().map(str::to_owned);
        } else if line.starts_with("# /dev/cpu_dma_latency set to 0us") {
            self.dma_zero = true;
        } else if line.contains("High resolution timers not available") {
            self.coarse_timers = true;
        } else if let Some(words) = command(line)
            && (!self.figures || self.command.is_none())
        {
            self.command = Some(words);
        }
        if self.version.is_none()
            && let Some((name, version)) = version(line)
        {
            self.version = Some(version);
            self.version_name = Some(name);
        }
    }

    /// Puts it into the draft.
    pub(crate) fn settle(&self, draft: &mut Draft) -> Arguments {
        let words = match &self.command {
            Some(line) => {
                let words = crate::command::cyclictest(draft, line);
                // A text has the line of its own where cyclictest held it; and sleeping by nanosleep was an option once.
                draft.cpu_dma_latency_us = None;
                draft.findings.retain(|f| f.id != "source-dma-latency");
                if !["n", "x", "s", "r"].iter().any(|w| words.has(w)) {
                    draft.means = None;
                }
                words
            }
            None => Arguments::default(),
        };
        draft.version = self.version_name.clone().or(draft.version.take());
        if self.dma_zero {
            crate::command::dma_latency(draft, 0);
        }
        if let Some(value) = &self.break_value {
            super::stopped(draft, value);
        }
        if self.coarse_timers {
            draft.note(tailbound_core::Finding::listed(
                "source-coarse-timers",
                tailbound_core::Impact::Notice,
                "the kernel had no high-resolution timers: wake-ups come at its ticks",
            ));
        }
        words
    }

    /// The latency that stopped the run, where status lines drawn before it hold none as great: that of thread `number`, if it is known.
    pub(crate) fn last_latency(&self, draft: &mut Draft, number: Option<u32>, unit_ns: u64) {
        let value = self.break_value.as_deref().and_then(|v| crate::text::scaled(v, unit_ns));
        let greatest = draft.threads.iter().filter_map(|t| t.wakeup.max_ns).max();
        let Some(ns) = value.filter(|ns| greatest.is_some_and(|max| max < *ns)) else { return };
        let shown = tailbound_core::units::format_ns_i64(ns);
        draft.doubt(
            "source-inconsistent",
            format!("The run was stopped by a latency of {shown}, and its figures were written before it: they hold none as great."),
            "It counts as the greatest of its thread, or of the first where its thread is not in the file.",
            "Run cyclictest with -q, which writes its figures at the end.",
        );
        let at = number.and_then(|n| draft.threads.iter().position(|t| t.thread == n));
        if let Some(thread) = draft.threads.get_mut(at.unwrap_or(0)) {
            thread.wakeup.max_ns = Some(ns);
        }
    }

    /// What it tells of the unit.
    pub(crate) fn clues(&self, words: &Arguments) -> Clues {
        let old = self.version.filter(|v| *v < NSECS_SINCE);
        Clues {
            command_nsecs: self.command.as_ref().map(|_| words.has("N")),
            before_nsecs: old.map(|(major, minor)| format!("cyclictest {major}.{minor}")),
            policy_line: self.policy.is_some(),
            coarse_timers: self.coarse_timers,
            ..Clues::default()
        }
    }
}

/// The command line in a line, from `cyclictest` on.
pub(crate) fn command(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        let bare = word.trim_matches(|c: char| matches!(c, '`' | '"' | '\'' | '$' | '#' | '('));
        if bare.rsplit('/').next() == Some("cyclictest") {
            let rest: Vec<&str> = words
                .take_while(|w| !matches!(*w, "|" | ">" | "2>&1" | "&" | "&&" | ";"))
                .collect();
            return rest.first().is_some_and(|w| w.starts_with('-') && w.len() > 1).then(|| {
                let rest: Vec<&str> = rest
                    .iter()
                    .map(|w| {
                        w.trim_matches(|c: char| matches!(c, '`' | '"' | '\'' | ')' | ',' | '\\'))
                    })
                    .collect();
                format!("cyclictest {}", rest.join(" "))
            });
        }
    }
    None
}

/// `cyclictest-0.11`, `cyclictest V 0.11`, `rt-tests 2.6`.
fn version(line: &str) -> Option<(String, (u32, u32))> {
    let at =
        ["cyclictest V ", "cyclictest-", "cyclictest v", "rt-tests-", "rt-tests v", "rt-tests "];
    at.iter().find_map(|name| {
        let rest = line.split_once(name)?.1;
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let text = rest.get(..end)?.trim_end_matches('.');
        let (major, minor) = text.split_once('.')?;
        let minor = minor.split('.').next()?;
        Some((text.to_owned(), (major.parse().ok()?, minor.parse().ok()?)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_found_in_logs() {
        for (line, want) in [
            (
                "host:/home/user/cyclictest-0.11# ./cyclictest -n -t 4 -p 90",
                Some("cyclictest -n -t 4 -p 90"),
            ),
            ("running cmd: cyclictest -q -D 10m -m", Some("cyclictest -q -D 10m -m")),
            ("$ sudo taskset -c 1 /usr/bin/cyclictest -N -p99 | tee x", Some("cyclictest -N -p99")),
            ("# cyclictest -p 99", Some("cyclictest -p 99")),
            ("WARN: cyclictest was not built with the numa option", None),
            ("cyclictest", None),
        ] {
            assert_eq!(command(line).as_deref(), want, "{line}");
        }
        assert_eq!(version("x/cyclictest-0.11# ./cyclictest -n").map(|v| v.1), Some((0, 11)));
        assert_eq!(version("cyclictest V 2.40").map(|v| v.1), Some((2, 40)));
        assert_eq!(version("cyclictest -n"), None);
    }
}
