// SPDX-License-Identifier: MIT OR Apache-2.0
//! In which unit a text of cyclictest is, which no line of it names: found out, or asked for, never guessed.
//!
//! Grounds that are proof: `--unit`; the command line (`-N`); a version or a layout that is older than `-N`
//! (0.32); a smallest latency that no Linux reaches in ns; the layout of `-N` (`C:%7 Min:%7 Act:%8 Avg:%8 Max:%8`) beside
//! a line `policy:`, which is younger than 0.32. The same layout alone, and figures that make no sense in µs, are reasons:
//! the unit is then a doubt, which forbids the verdict "met". Proofs that contradict each other refuse the file.
//! Widths that were changed on the way (a mail, a wiki) are no layout and tell nothing.
//! Source: the history of cyclictest.c in rt-tests (0.13 to 2.10).

use crate::draft::Draft;
use crate::error::Fault;
use crate::read::Options;

/// Below this many of the source's units, the smallest latency can only be in µs: no Linux wakes a thread within 500 ns.
const NOT_NS_BELOW: i64 = 500;

/// How wide a status line's fields are, where that is the layout of some version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Eight characters each, the interval too: before 0.13.
    Oldest,
    /// `Act:` and `Avg:` have five.
    Micro,
    /// `Act:` and `Avg:` have eight.
    Nano,
}

/// What a text tells of its unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clues {
    /// Is `-N` on the command line, where there is one?
    pub(crate) command_nsecs: Option<bool>,
    /// The tool is older than `-N`.
    pub(crate) before_nsecs: Option<String>,
    /// There is a line `policy:` (0.47 and later).
    pub(crate) policy_line: bool,
    pub(crate) layout: Option<Layout>,
    /// The least latency of any thread with samples.
    pub(crate) smallest: Option<i64>,
    /// A mean that is beyond its thread's interval of so many µs, were it in µs.
    pub(crate) beyond_interval: Option<(i64, u64)>,
    /// The kernel's timers are no finer than its tick: such means are then usual.
    pub(crate) coarse_timers: bool,
}

impl Clues {
    fn proofs(&self) -> Vec<(u64, String)> {
        let mut out = Vec::new();
        match self.command_nsecs {
            Some(true) => out.push((1, "the command line has -N (ns)".to_owned())),
            Some(false) => out.push((1000, "the command line has no -N (µs)".to_owned())),
            None => {}
        }
        if let Some(version) = &self.before_nsecs {
            out.push((1000, format!("{version} is older than -N, which came with 0.32 (µs)")));
        }
        match self.layout {
            Some(Layout::Oldest) => out.push((
                1000,
                "the layout is that of versions before 0.13, which had no -N (µs)".to_owned(),
            )),
            Some(Layout::Micro) => {
                out.push((1000, "the columns are those of cyclictest without -N (µs)".to_owned()))
            }
            Some(Layout::Nano) if self.policy_line => {
                out.push((1, "the columns are those of cyclictest -N (ns)".to_owned()))
            }
            Some(Layout::Nano) | None => {}
        }
        if let Some(least) = self.smallest.filter(|m| *m < NOT_NS_BELOW) {
            out.push((1000, format!("a smallest latency of {least} can only be µs")));
        }
        out
    }

    fn reasons(&self) -> Vec<String> {
        let mut out = Vec::new();
        if self.layout == Some(Layout::Nano) {
            out.push("the columns are those of cyclictest -N (and of 0.32 without it)".to_owned());
        }
        if let Some((mean, interval)) = self.beyond_interval.filter(|_| !self.coarse_timers) {
            out.push(format!(
                "as µs the mean of {mean} would be longer than the interval of {interval} µs"
            ));
        }
        out
    }

    /// Length of the unit in ns.
    ///
    /// # Errors
    /// Nothing tells, or what tells contradicts itself.
    pub(crate) fn unit(&self, options: &Options, draft: &mut Draft) -> Result<u64, Fault> {
        if let Some(unit) = options.unit_ns.filter(|u| *u > 0) {
            draft.cut_values(unit);
            draft.lose("The unit is not in the file; it was given by the user.");
            return Ok(unit);
        }
        let proofs = self.proofs();
        let reasons = self.reasons();
        let units = |unit: u64| proofs.iter().find(|(u, _)| *u == unit);
        let found = match (units(1000), units(1)) {
            (Some((_, micro)), Some((_, nano))) => {
                return Err(Fault::file(format!(
                    "the unit is contradictory: {micro}, but {nano}: give the unit (--unit us or --unit ns)"
                )));
            }
            (Some((unit, why)), None) | (None, Some((unit, why))) => {
                draft.lose(format!("The unit is not in the file itself: {why}."));
                *unit
            }
            (None, None) if !reasons.is_empty() => {
                draft.doubt(
                    "source-unit",
                    format!("The unit is not in the file; it was read as ns, for {}.", reasons.join(", and ")),
                    "If it is µs, every figure is a thousand times as large.",
                    "Find out whether cyclictest ran with -N, and import with --unit ns or --unit us.",
                );
                1
            }
            (None, None) => {
                let least = self.smallest.map_or_else(String::new, |m| {
                    format!(", and a smallest latency of {m} could be ns (cyclictest -N) or µs")
                });
                return Err(Fault::file(format!(
                    "the unit is not in the file{least}: give the unit (--unit us or --unit ns)"
                )));
            }
        };
        // In µs by its layout or its smallest value, and yet every wake-up later than the interval.
        if found == 1000
            && self.command_nsecs.is_none()
            && let Some((mean, interval)) = self.beyond_interval.filter(|_| !self.coarse_timers)
        {
            draft.doubt(
                "source-unit",
                format!(
                    "The mean latency of {mean} µs is longer than the interval of {interval} µs."
                ),
                "Either the machine could not keep the schedule at all, or the unit is another.",
                "Find out whether cyclictest ran with -N, and import with --unit ns or --unit us.",
            );
        }
        draft.cut_values(found);
        Ok(found)
    }
}

/// The layout of a status line, of which `raw` is the text from `T:` on with its blanks.
pub(crate) fn layout(raw: &str) -> Option<Layout> {
    /// A field's characters, its digits, and whether blanks fill it.
    fn field(raw: &str, from: &str, to: Option<&str>) -> Option<(usize, usize)> {
        let (_, rest) = raw.split_once(from)?;
        let text = match to {
            Some(to) => rest.split_once(to)?.0,
            None => {
                let blanks = rest.len() - rest.trim_start().len();
                let digits = rest.split_whitespace().next()?.len();
                rest.get(..blanks + digits)?
            }
        };
        // The blank before the next label is not the field's.
        let text = if to.is_some() { text.strip_suffix(' ')? } else { text };
        Some((text.len(), text.trim().len()))
    }
    let fits = |f: Option<(usize, usize)>, width: usize| {
        f.is_some_and(|(chars, digits)| chars == digits.max(width) && digits > 0)
    };
    let interval = field(raw, " I:", Some("C:"));
    let cycles = field(raw, " C:", Some("Min:"));
    let min = field(raw, " Min:", Some("Act:"));
    let (act, avg) = (field(raw, " Act:", Some("Avg:")), field(raw, " Avg:", Some("Max:")));
    let max = field(raw, " Max:", None);
    if [interval, cycles, min, act, avg, max].iter().all(|f| fits(*f, 8)) {
        return Some(Layout::Oldest);
    }
    if !(fits(interval, 1) && fits(cycles, 7) && fits(min, 7) && fits(max, 8)) {
        return None;
    }
    match (fits(act, 5) && fits(avg, 5), fits(act, 8) && fits(avg, 8)) {
        (true, false) => Some(Layout::Micro),
        (false, true) => Some(Layout::Nano),
        // Numbers that fill both.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_the_versions_or_none() {
        for (line, want) in [
            (
                "T: 0 ( 9802) P:90 I:    1000 C:    1000 Min:       7 Act:      11 Avg:      16 Max:     561",
                Some(Layout::Oldest),
            ),
            (
                "T: 0 (33915) P:99 I:1000 C: 100000 Min:      5 Act:    7 Avg:    7 Max:      98",
                Some(Layout::Micro),
            ),
            (
                "T: 0 (33915) P:99 I:1000 C:12345678 Min:      5 Act:123456 Avg:    7 Max:      98",
                Some(Layout::Micro),
            ),
            (
                "T: 0 ( 3504) P:90 I:1000 C:    292 Min:   2400 Act:    2522 Avg:    2895 Max:    6642",
                Some(Layout::Nano),
            ),
            (
                "T: 0 ( 3407) P:99 I:1000 C: 100000 Min:      928 Act:   1376 Avg:   1154 Max:      18373",
                None,
            ),
            ("T: 0 ( 884) P:80 I:250 C:4688252 Min: 3 Act: 6 Avg: 6 Max: 51956", None),
            (
                "T: 0 ( 3504) P:90 I:1000 C:    292 Min:   2400 Act:123456789 Avg:123456789 Max:123456789",
                None,
            ),
        ] {
            assert_eq!(layout(line), want, "{line}");
        }
    }

    #[test]
    fn proof_reason_question() {
        let ask = |clues: &Clues| {
            let mut draft = Draft::new("cyclictest", "");
            let unit = clues.unit(&Options::default(), &mut draft);
            (unit.map_err(|f| f.reason), !draft.findings.is_empty())
        };
        let large = Clues { smallest: Some(2400), ..Clues::default() };
        let says = |c: &Clues, words: &str| {
            ask(c).0.is_err_and(|e| e.contains(words) && e.contains("--unit"))
        };
        assert!(says(&large, "2400 could be ns"));
        assert_eq!(ask(&Clues { command_nsecs: Some(true), ..large.clone() }), (Ok(1), false));
        assert_eq!(ask(&Clues { command_nsecs: Some(false), ..large.clone() }), (Ok(1000), false));
        assert_eq!(ask(&Clues { layout: Some(Layout::Nano), ..large.clone() }), (Ok(1), true));
        let certain = Clues { layout: Some(Layout::Nano), policy_line: true, ..large.clone() };
        assert_eq!(ask(&certain), (Ok(1), false));
        assert!(says(&Clues { command_nsecs: Some(false), ..certain }, "contradictory"));
        let beyond = Clues { beyond_interval: Some((2900, 1000)), ..large };
        assert_eq!(ask(&beyond), (Ok(1), true));
        assert!(says(&Clues { coarse_timers: true, ..beyond }, "give the unit"));
        let small = Clues { smallest: Some(3), ..Clues::default() };
        assert_eq!(ask(&small), (Ok(1000), false));
        assert!(says(&Clues { command_nsecs: Some(true), ..small }, "contradictory"));
    }
}
