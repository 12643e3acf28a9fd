// SPDX-License-Identifier: MIT OR Apache-2.0
//! One record of a trace as a line: who, on which CPU, in which state, when, what.
//!
//! Units: ns. Three layouts: the kernel's (`bash-12 [003] d..1. 1.000002: what`, which trace-cmd and, with
//! the number apart, perf write too), the latency layout (`bash-12   3d..1.   12us+: what`), and perf's.
//! Source: Documentation/trace/ftrace.rst; perf-script(1); trace-cmd-report(1).

use super::state::{Columns, CpuState};

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextRecord<'a> {
    pub(super) comm: &'a str,
    pub(super) pid: i32,
    pub(super) cpu: u32,
    /// Where the line has letters for it.
    pub(super) state: Option<CpuState>,
    pub(super) t_ns: u64,
    /// What happened: `EVENT: FIELDS`, or `function <-caller`.
    pub(super) text: &'a str,
}

impl<'a> TextRecord<'a> {
    /// The name of its event and the fields; `None` for a function.
    pub(super) fn event(&self) -> Option<(&'a str, &'a str)> {
        let (first, rest) = self.text.split_once(char::is_whitespace).unwrap_or((self.text, ""));
        // perf may put the number of events before the name.
        let digits = !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit());
        let (first, rest) = match digits {
            true => {
                let rest = rest.trim_start();
                rest.split_once(char::is_whitespace).unwrap_or((rest, ""))
            }
            false => (first, rest),
        };
        let name = first.strip_suffix(':')?;
        let name = name.rsplit(':').next().unwrap_or(name);
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        (!name.is_empty() && name.bytes().all(plain)).then_some((name, rest.trim()))
    }

    /// A function and who called it.
    pub(super) fn function(&self) -> Option<(&'a str, &'a str)> {
        let (function, caller) = self.text.split_once("<-")?;
        Some((function.trim(), caller.trim()))
    }
}

/// The record that `line` is, in the kernel's layout, trace-cmd's or perf's.
pub(super) fn timed<'a>(line: &'a str, columns: &Columns) -> Option<TextRecord<'a>> {
    let mut from = 0usize;
    // A name may have brackets too: the CPU is the first number in brackets that a time follows.
    while let Some(at) = line.get(from..)?.find('[') {
        let open = from.checked_add(at)?;
        from = open.checked_add(1)?;
        if let Some(record) = timed_at(line, open, columns) {
            return Some(record);
        }
    }
    None
}

fn timed_at<'a>(line: &'a str, open: usize, columns: &Columns) -> Option<TextRecord<'a>> {
    let (cpu, rest) = line.get(open.checked_add(1)?..)?.split_once(']')?;
    let cpu: u32 = number(cpu)?;
    // Linux 4.13 to 4.16 have the number of the process here: `[001] (  123)`.
    let process = rest.trim_start().strip_prefix('(').and_then(|t| t.split_once(')'));
    let (mut word, mut rest) = first_word(process.map_or(rest, |(_, rest)| rest))?;
    let mut state = None;
    if !word.ends_with(':') {
        state = columns.state(word);
        (word, rest) = first_word(rest)?;
    }
    let t_ns = seconds(word.strip_suffix(':')?)?;
    let (comm, pid) = owner(line.get(..open)?)?;
    Some(TextRecord { comm, pid, cpu, state, t_ns, text: rest.trim_start() })
}

/// Is it the begin of a record whose time is on the next line: `bash-12 [003] d..1.`?
pub(super) fn is_cut_before_time(line: &str) -> bool {
    let Some((before, rest)) = line.rsplit_once(']') else { return false };
    let Some((owner_text, cpu)) = before.rsplit_once('[') else { return false };
    let letters = rest.trim();
    number::<u32>(cpu).is_some()
        && owner(owner_text).is_some()
        && (letters.is_empty() || Columns::default().state(letters).is_some())
}

/// The record that `line` is in the latency layout.
pub(super) fn latency<'a>(line: &'a str, columns: &Columns) -> Option<TextRecord<'a>> {
    let (mut at, mut state) = (0usize, None);
    let mut before: Option<(usize, &str)> = None;
    // Names may have blanks: the first word that is a time behind a CPU with letters.
    loop {
        let rest = line.get(at..)?;
        let begin = at.checked_add(rest.len().checked_sub(rest.trim_start().len())?)?;
        let word =
            line.get(begin..)?.split(char::is_whitespace).next().filter(|w| !w.is_empty())?;
        let end = begin.checked_add(word.len())?;
        // `trace-cmd report -l` has whole times here.
        let time = || offset(word).or_else(|| seconds(word.strip_suffix(':')?));
        if let Some((owner_end, letters)) = before
            && let Some(t_ns) = time()
        {
            let digits = letters.bytes().take_while(u8::is_ascii_digit).count();
            if let Some(cpu) = letters.get(..digits).and_then(number) {
                state = state.or_else(|| columns.state(letters.get(digits..)?));
                let text = line.get(end..)?.trim_start();
                let text = text.strip_prefix(':').unwrap_or(text).trim_start();
                let (comm, pid) = owner(line.get(..owner_end)?)?;
                state?;
                return Some(TextRecord { comm, pid, cpu, state, t_ns, text });
            }
        }
        before = Some((begin, word));
        at = end;
    }
}

/// `bash-12`, `bash-12 (   11)` with the number of its process, or, of perf, `bash 12` and `bash 11/12`.
fn owner(text: &str) -> Option<(&str, i32)> {
    let mut text = text.trim();
    if let Some((before, group)) = text.rsplit_once('(')
        && group.ends_with(')')
        && group.bytes().all(|b| b.is_ascii_digit() || b" -)".contains(&b))
    {
        text = before.trim_end();
    }
    let (comm, last) = text.rsplit_once(char::is_whitespace).unwrap_or(("", text));
    let thread = last.rsplit_once('/').map_or(last, |(_, tid)| tid);
    if !comm.is_empty()
        && let Some(pid) = number(thread)
    {
        return Some((named(comm.trim()), pid));
    }
    let (comm, pid) = text.rsplit_once('-')?;
    Some((named(comm.trim()), number(pid)?))
}

/// The kernel's idle threads have one name each in perf, and one for all in the kernel's layout.
fn named(comm: &str) -> &str {
    if comm == "<...>" { "" } else { comm }
}

/// A number that a text has alone.
pub(super) fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
    text.trim().parse().ok()
}

/// The first word of a text, and what follows it.
pub(super) fn first_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (!word.is_empty()).then_some((word, rest))
}

/// `17284.993652` as ns.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    scaled(seconds, fraction, 9)
}

/// A decimal number as a whole one of `digits` further digits.
pub(super) fn scaled(whole: &str, fraction: &str, digits: usize) -> Option<u64> {
    let is_number = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || fraction.len() > digits {
        return None;
    }
    let unit = 10u64.checked_pow(u32::try_from(digits).ok()?)?;
    let part = 10u64.checked_pow(u32::try_from(digits.checked_sub(fraction.len())?).ok()?)?;
    let fraction = fraction.parse::<u64>().ok()?.checked_mul(part)?;
    whole.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(fraction)
}

/// `12us+:`, `12us`, `12ns!:`: a time since the begin, with the mark of a long delay behind it.
fn offset(word: &str) -> Option<u64> {
    let word = word.trim_end_matches(':').trim_end_matches(['+', '!', '#', '*', '@', '$', ' ']);
    match (word.strip_suffix("us"), word.strip_suffix("ns")) {
        (Some(us), _) => number::<u64>(us)?.checked_mul(1000),
        (_, Some(ns)) => number(ns),
        _ => None,
    }
}

/// `289.370 us` as ns.
pub(super) fn micros(text: &str) -> Option<i64> {
    let text = text.trim().strip_suffix("us")?.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    i64::try_from(scaled(whole, fraction, 3)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> TextRecord<'_> {
        let columns = Columns::default();
        timed(line, &columns).or_else(|| latency(line, &columns)).expect(line)
    }

    #[test]
    fn the_layouts_of_kernels_and_tools_are_told_apart() {
        let all = [
            ("    bash-12    [003] d..1.   1.000002: sched_wakeup: comm=x", "bash", 12, 2_000),
            ("    bash-12    [003] d..1   1.000002: sched_wakeup: comm=x", "bash", 12, 2_000),
            ("    bash-12    (     11) [003] d..1.   1.000002: sched_wakeup: c", "bash", 12, 2_000),
            ("    bash-12    [003]   1.000002003: sched_wakeup: comm=x", "bash", 12, 2_003),
            ("bash    12 [003]   1.000002: sched:sched_wakeup: comm=x", "bash", 12, 2_000),
            (
                "Web Content  11/12 [003]   1.000002: 1 sched:sched_wakeup: c",
                "Web Content",
                12,
                2_000,
            ),
            ("  a-[1]-12 [003] 1.000002: sched_wakeup: comm=x", "a-[1]", 12, 2_000),
            ("  bash-12 [003] (   11) d..1 1.000002: sched_wakeup: comm=x", "bash", 12, 2_000),
            ("  bash-12 [003] (-----) d..1 1.000002: sched_wakeup: comm=x", "bash", 12, 2_000),
            ("    bash-12       3d..1. 1.000002: sched_wakeup: comm=x", "bash", 12, 2_000),
        ];
        for (line, comm, pid, ns) in all {
            let r = parsed(line);
            assert_eq!((r.comm, r.pid, r.cpu), (comm, pid, 3), "{line}");
            assert_eq!(r.t_ns, 1_000_000_000 + ns, "{line}");
            assert_eq!(r.event().map(|(n, _)| n), Some("sched_wakeup"), "{line}");
        }
    }

    #[test]
    fn the_latency_layout_of_old_and_new_kernels() {
        let old = parsed("      ps-6143    2d..1  259us+: trace_hardirqs_on <-_raw_spin_unlock");
        assert_eq!((old.comm, old.pid, old.cpu, old.t_ns), ("ps", 6143, 2, 259_000));
        assert_eq!(old.function(), Some(("trace_hardirqs_on", "_raw_spin_unlock")));
        let new = parsed("Web Cont-217     10dn.h413   12us : <stack trace>");
        assert_eq!((new.comm, new.cpu, new.text), ("Web Cont", 10, "<stack trace>"));
        assert_eq!(latency("  => 12us", &Columns::default()), None);
        assert_eq!(latency(" x-1  2d..1 99999999999999999999us: y", &Columns::default()), None);
    }
}
