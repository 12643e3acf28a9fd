// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tool's text as others carried it: quoted in a mail, encoded, wrapped, stamped by a console or a CI system.
//! Here it becomes the tool's own lines again, and what was done is said.
//!
//! Lines keep their numbers: what is joined to a line leaves an empty one behind.
//! Limits: text of more than 16 MiB is not searched for wrapped lines: nobody mails it.
//! Not here: what the lines mean (the readers); JSON, XML and binary files, which are read as they are.

mod mail;
mod stamps;

use std::borrow::Cow;
use tailbound_core::order;

use crate::text::Lines;

/// Longest text that is searched for wrapped lines.
const WRAPPED_MAX: usize = 16 << 20;
/// The marks before lines are learned from so much.
const HEAD: usize = crate::format::FAR;

/// Text with the marks of its way taken off.
#[derive(Debug)]
pub(crate) struct Carried<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    /// What was done to it, in sentences.
    pub(crate) said: Vec<String>,
    /// Of how many machines, programs or files the lines are, by what stands before them.
    pub(crate) sources: Sources,
}

/// Whose lines a text holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sources {
    #[default]
    One,
    /// So many, one behind the other; the marks of two.
    Apart(usize, String, String),
    /// Between each other; the marks of two.
    Mixed(String, String),
}

impl Sources {
    /// The marks of two of them, where `runs` runs cannot be one of each.
    pub(crate) fn inseparable(&self, runs: usize) -> Option<(&str, &str)> {
        match self {
            Self::One => None,
            Self::Apart(n, ..) if runs >= *n => None,
            Self::Apart(_, one, other) | Self::Mixed(one, other) => Some((one, other)),
        }
    }
}

/// The tool's own lines of a text.
pub(crate) fn plain(bytes: &[u8]) -> Carried<'_> {
    let mut said = Vec::new();
    let mut out = Cow::Borrowed(bytes);
    if bytes.windows(2).any(|w| matches!(w, [b'\r', next] if !matches!(next, b'\n' | b'\r'))) {
        out = Cow::Owned(apart(&out));
        said.push("Carriage returns within lines were read as ends of lines.".to_owned());
    }
    if let Some(spaced) = spaced(&out) {
        out = Cow::Owned(spaced);
        said.push("No-break spaces and tabs within lines were read as spaces.".to_owned());
    }
    if let Some(decoded) = mail::decoded(&out) {
        out = Cow::Owned(decoded);
        said.push("The text was encoded as mail (quoted-printable) and was decoded.".to_owned());
    }
    let shapes = stamps::learned(out.get(..HEAD).unwrap_or(&out));
    let sources = sources(&out, &shapes);
    if let Some(first) = shapes.first() {
        said.push(format!("What stands before each line ({}) was taken off.", first.example()));
        out = Cow::Owned(unstamped(&out, &shapes));
    }
    if out.len() <= WRAPPED_MAX
        && let Some(joined) = mail::unwrapped(&out)
    {
        out = Cow::Owned(joined);
        said.push("Lines that were wrapped on the way were joined.".to_owned());
    }
    Carried { bytes: out, said, sources }
}

/// Whose lines they are: those of two sources that take turns are mixed.
fn sources(bytes: &[u8], shapes: &[stamps::Shape]) -> Sources {
    let differ = |a: &stamps::Shape| shapes.iter().any(|b| a.is_other_source(b));
    if !shapes.iter().any(differ) {
        return Sources::One;
    }
    let mut order: Vec<&stamps::Shape> = Vec::new();
    for (_, line) in Lines::new(bytes.get(..HEAD).unwrap_or(bytes)).filter_map(Result::ok) {
        let own = |s: &&stamps::Shape| s.after(&line).is_some_and(|rest| is_own(rest.trim()));
        let Some(shape) = shapes.iter().find(own) else { continue };
        let Some(last) = order.last().copied().filter(|l| !std::ptr::eq(*l, shape)) else {
            if order.is_empty() {
                order.push(shape);
            }
            continue;
        };
        if last.is_other_source(shape) && order.iter().any(|s| std::ptr::eq(*s, shape)) {
            return Sources::Mixed(shape.example(), last.example());
        }
        order.push(shape);
    }
    let mut all: Vec<&stamps::Shape> = order.into_iter().filter(|s| differ(s)).collect();
    order::by_key(&mut all, |s| s.example());
    all.dedup_by(|a, b| std::ptr::eq(*a, *b));
    match all.as_slice() {
        [one, other, ..] => Sources::Apart(all.len(), one.example(), other.example()),
        _ => Sources::One,
    }
}

/// The text with plain spaces, if there are others: pages and word processors have no-break ones, and columns may be set by tabs.
fn spaced(bytes: &[u8]) -> Option<Vec<u8>> {
    const OTHERS: [(&[u8], u8); 4] =
        [(b"\xc2\xa0", b' '), (b"\xe2\x80\xaf", b' '), (b"\xe2\x80\x87", b' '), (b"&nbsp;", b' ')];
    let status = |line: &[u8]| {
        let line = line.trim_ascii_start();
        line.starts_with(b"T:") && line.contains(&b'\t')
    };
    let other = |rest: &[u8]| OTHERS.iter().find(|(from, _)| rest.starts_with(from));
    let any = |line: &[u8]| {
        status(line)
            || line.iter().enumerate().any(|(i, b)| {
                matches!(b, 0xc2 | 0xe2 | b'&') && line.get(i..).and_then(other).is_some()
            })
    };
    if !bytes.split(|b| *b == b'\n').any(any) {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let tabs = status(line);
        let mut rest = line;
        while let Some((first, next)) = rest.split_first() {
            let found = if matches!(first, 0xc2 | 0xe2 | b'&') { other(rest) } else { None };
            if let Some((from, to)) = found {
                out.push(*to);
                rest = rest.get(from.len()..).unwrap_or_default();
            } else {
                out.push(if tabs && *first == b'\t' { b' ' } else { *first });
                rest = next;
            }
        }
    }
    Some(out)
}

/// Carriage returns within lines as ends of lines.
fn apart(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for i in 0..out.len() {
        // At the end of the file it ends the last line.
        let next = bytes.get(i + 1).copied().unwrap_or(b' ');
        if bytes.get(i) == Some(&b'\r') && !matches!(next, b'\n' | b'\r') {
            out.get_mut(i).into_iter().for_each(|b| *b = b'\n');
        }
    }
    out
}

/// Each line without the first of `shapes` that it begins with.
fn unstamped(bytes: &[u8], shapes: &[stamps::Shape]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let ends = bytes.ends_with(b"\n");
    for (_, line) in Lines::new(bytes).filter_map(Result::ok) {
        let rest = shapes.iter().find_map(|s| s.after(&line)).unwrap_or(&line);
        out.extend_from_slice(rest.as_bytes());
        out.push(b'\n');
    }
    if !ends {
        out.pop();
    }
    out
}

/// Begins a line so as only a tool's own line does? Softer than what a format is known by: a wrapped line counts.
fn is_own(line: &str) -> bool {
    let of_cyclictest = || {
        const BEGINNINGS: [&str; 6] = [
            "# Total:",
            "# Min Latencies:",
            "# Avg Latencies:",
            "# Max Latenc",
            "# /dev/cpu_dma_latency set",
            "policy: ",
        ];
        BEGINNINGS.iter().any(|b| line.starts_with(b)) || mail::is_status(line)
    };
    of_cyclictest()
        || is_sample(line)
        || !line.contains("stress-ng:")
            && crate::cyclictest::verbose::sample(line).is_none()
            && crate::format::of_line(line).is_some()
}

/// Is it a sample of cyclictest in its columns? Without them it could be the time of day.
fn is_sample(line: &str) -> bool {
    let mut fields = line.split(':');
    let (thread, cycle, value) = (fields.next(), fields.next(), fields.next());
    let column = |field: Option<&str>| {
        field.is_some_and(|f| {
            let digits = f.trim_start();
            f.len() >= 8 && f.len() > digits.len() && digits.bytes().all(|b| b.is_ascii_digit())
        })
    };
    let number = thread.is_some_and(|t| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit()));
    number && column(cycle) && column(value) && fields.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &str) -> String {
        String::from_utf8_lossy(&plain(bytes.as_bytes()).bytes).into_owned()
    }

    const STATUS: &str =
        "T: 0 (33915) P:99 I:1000 C: 100000 Min:      5 Act:    7 Avg:    7 Max:      98";

    #[test]
    fn a_clean_text_is_not_touched() {
        let clean = format!(
            "# /dev/cpu_dma_latency set to 0us\r\npolicy: fifo: loadavg: 1.0\n\n{STATUS}\n"
        );
        for whole in [clean.as_str(), "# us\n1\n2\n", "# Histogram\n000001 000002\n", ""] {
            let carried = plain(whole.as_bytes());
            assert!(
                matches!(carried.bytes, Cow::Borrowed(_)) && carried.said.is_empty(),
                "{whole}"
            );
        }
    }

    #[test]
    fn every_kind_of_mark_is_taken_off() {
        for stamp in [
            "2025-05-09T10:11:12.123456 ",
            "2025-05-09T10:11:12.1234567Z ",
            "2025-05-09 10:11:12,123 INFO: ",
            "[2025-05-09 10:11:12.123] ",
            "[   12.345678] ",
            "<6>[12345.678901] ",
            "Nov 27 20:18:48 host cyclictest[123]: ",
            "10:11:12 ",
            "10:11:12.345| ",
            "1715248272.123456 ",
            "> ",
            ">> ",
            "> > ",
            "| ",
            "board-1  | ",
            "job\tstep\t2025-05-09T10:11:12.1Z ",
            "[Fri May  9 10:11:12 2025] ",
            "05-09 10:11:12.123  1234  1234 I cyclictest: ",
        ] {
            let lines = [
                "# /dev/cpu_dma_latency set to 0us",
                STATUS,
                "",
                "# Histogram",
                "000005 000007\t000008",
                "000098 000001\t000000",
                "# Min Latencies: 00005 00005",
            ];
            let later =
                stamp.replace("12.", "59.").replace("   12", "  112").replace("Nov 27", "Dec  7");
            let carried: Vec<String> = lines
                .iter()
                .enumerate()
                .map(|(i, l)| format!("{}{l}\n", if i % 2 == 0 { stamp } else { &later }))
                .collect();
            let got = text(&carried.concat());
            assert_eq!(got.lines().map(str::trim).collect::<Vec<_>>(), lines, "`{stamp}`");
        }
    }

    #[test]
    fn screens_and_wrapped_rows_are_put_right() {
        assert_eq!(text(&format!("{STATUS}\r{STATUS}\n")), format!("{STATUS}\n{STATUS}\n"));
        let wrapped = "# Histogram\n000001 000001 000002\n000003\n000002 000004 000005\n000006\n\
                       # Total: 000000005 000000007\n000000009\n# Min Latencies: 00001 00001\n00001\n";
        let got = text(wrapped);
        assert!(
            got.contains("000001 000001 000002 000003\n\n000002 000004 000005 000006\n"),
            "{got}"
        );
        assert!(got.contains("# Total: 000000005 000000007 000000009\n"), "{got}");
    }
}
