// SPDX-License-Identifier: MIT OR Apache-2.0
//! What mail programs do to text: quoted-printable, and lines wrapped at some seventy characters.
//!
//! Source: RFC 2045, 6.7.

use crate::text::Lines;

/// The labels of a status line, in its order.
const LABELS: [&str; 8] = ["T:", "P:", "I:", "C:", "Min:", "Act:", "Avg:", "Max:"];
/// Lines that end a histogram and hold a number for each thread.
const FEET: [&str; 7] = [
    "# Total:",
    "# Min Latencies:",
    "# Avg Latencies:",
    "# Max Latencies:",
    "# Histogram Overflows:",
    "# Thread ",
    "# SMIs:",
];

/// The text without its quoted-printable encoding, if it has one: a line of a tool never ends in `=`.
pub(crate) fn decoded(bytes: &[u8]) -> Option<Vec<u8>> {
    let soft = |line: &[u8]| {
        let line = line.trim_ascii_end();
        line.ends_with(b"=") && !line.ends_with(b"==")
    };
    // No option of a command line has such a value.
    let coded = |sign: &[u8]| bytes.windows(sign.len()).any(|w| w == sign);
    let told = coded(b"=3D") || coded(b"=09") || coded(b"ransfer-Encoding: quoted-printable");
    if !told && !bytes.split(|b| *b == b'\n').any(soft) {
        return None;
    }
    // In such text each `=` is followed by two digits or by the end of the line; else only the line ends were encoded.
    let hex = |pair: Option<&[u8]>| {
        let text = std::str::from_utf8(pair?).ok()?;
        let upper = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F'));
        u8::from_str_radix(text, 16).ok().filter(|_| upper)
    };
    let all = bytes.iter().enumerate().filter(|(_, b)| **b == b'=').all(|(i, _)| {
        let rest = bytes.get(i + 1..).unwrap_or_default();
        hex(rest.get(..2)).is_some()
            || rest.split(|b| *b == b'\n').next().is_none_or(|l| l.trim_ascii().is_empty())
    });
    let mut out = Vec::with_capacity(bytes.len());
    let mut joined = 0;
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let continues = soft(line);
        let mut text =
            if continues { line.trim_ascii_end().strip_suffix(b"=").unwrap_or(line) } else { line };
        while let Some((&b, rest)) = text.split_first() {
            match (b, hex(rest.get(..2))) {
                (b'=', Some(byte)) if all => {
                    out.push(byte);
                    text = rest.get(2..).unwrap_or_default();
                }
                _ => {
                    out.push(b);
                    text = rest;
                }
            }
        }
        if continues {
            joined += 1;
        } else {
            // The lines that were joined leave empty ones: numbers of lines stay.
            out.extend(std::iter::repeat_n(b'\n', joined));
            joined = 0;
        }
    }
    Some(out)
}

/// Mail programs wrap no shorter lines.
const WRAPPED_FROM: usize = 54;

/// Begins the line as cyclictest's status line?
pub(crate) fn is_status(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("T:") else { return false };
    let rest = rest.trim_start();
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    after.len() < rest.len() && after.trim_start().starts_with('(')
}

/// Is it a status line whose end is missing?
fn is_open(line: &str) -> bool {
    let value = line.split_once("Max:").map(|(_, rest)| rest.trim());
    is_status(line) && value.is_none_or(str::is_empty)
}

/// Could the line be the rest of a status line?
fn is_rest(line: &str) -> bool {
    !line.trim().is_empty()
        && line.split_whitespace().all(|word| {
            let label = LABELS.iter().skip(1).find(|l| word.starts_with(**l));
            let value = label.map_or(word, |l| word.get(l.len()..).unwrap_or(""));
            label.is_some() && value.is_empty() || value.parse::<i64>().is_ok()
        })
}

/// Is it the line of a pair of threads (pmqtest and its kin) whose end is missing?
fn is_open_pair(line: &str) -> bool {
    let cycles = line.rsplit_once("Cycles").map(|(_, rest)| rest.trim());
    let figures = line.contains(" -> #") && line.contains("Min");
    let greatest = line.rsplit_once("Max").map(|(_, rest)| rest.trim());
    line.starts_with('#')
        && (line.contains(": ID") && cycles.is_none_or(str::is_empty)
            || figures && greatest.is_none_or(str::is_empty))
}

/// Could the line be the rest of one of words and numbers, and is it no line of a tool?
fn is_rest_of_words(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty()
        && line.len() < WRAPPED_FROM
        && !line.starts_with(['#', '$', '-', '=', '['])
        && !line.contains("stress-ng:")
        && !super::is_own(line)
}

fn is_numbers(line: &str) -> bool {
    !line.trim().is_empty() && line.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_whitespace())
}

/// The text with its wrapped lines joined, if there are any.
pub(crate) fn unwrapped(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut lines: Vec<String> =
        Lines::new(bytes).filter_map(Result::ok).map(|(_, l)| l.into_owned()).collect();
    let mut joined = false;
    for at in 0..lines.len() {
        let line = lines.get(at).map_or("", |l| l.trim());
        if is_open(line) {
            joined |= join(&mut lines, at, is_rest, |l| is_open(l.trim()));
        } else if FEET.iter().any(|f| line.starts_with(f)) {
            joined |= join(&mut lines, at, is_numbers, |_| true);
        } else if is_open_pair(line) {
            joined |= join(&mut lines, at, is_rest_of_words, |l| is_open_pair(l.trim()));
        } else if line.contains("stress-ng: info:") && line.len() > WRAPPED_FROM {
            let whole = line.len();
            joined |= join(&mut lines, at, is_rest_of_words, |l| l.trim().len() == whole);
        }
    }
    joined |= rows(&mut lines);
    if !joined {
        return None;
    }
    let mut out = lines.join("\n");
    if bytes.ends_with(b"\n") {
        out.push('\n');
    }
    Some(out.into_bytes())
}

/// Joins to line `at` those that follow and are `fit`, while it is `open`.
fn join(
    lines: &mut [String],
    at: usize,
    fit: fn(&str) -> bool,
    open: impl Fn(&str) -> bool,
) -> bool {
    let mut whole = lines.get(at).cloned().unwrap_or_default();
    let mut next = at + 1;
    while open(&whole) {
        let blank = |l: &String| l.trim().is_empty();
        // A quoted line may have become two, with an empty one between.
        let step = usize::from(
            lines.get(next).is_some_and(blank)
                && lines.get(next + 1).is_some_and(|l| fit(l))
                && next > at,
        );
        let Some(rest) = lines.get(next + step).filter(|l| fit(l)) else { break };
        whole = format!("{} {}", whole.trim_end(), rest.trim());
        next += step + 1;
    }
    if next == at + 1 {
        return false;
    }
    lines.get_mut(at + 1..next).into_iter().flatten().for_each(String::clear);
    lines.get_mut(at).into_iter().for_each(|l| *l = whole.clone());
    true
}

/// Joins wrapped rows of a histogram; how many numbers a row has is told by its foot.
fn rows(lines: &mut [String]) -> bool {
    let words = |l: &str| l.split_whitespace().count();
    let foot = lines.iter().find(|l| l.trim_start().starts_with("# Min Latencies:"));
    let foot = foot.or_else(|| lines.iter().find(|l| l.trim_start().starts_with("# Total:")));
    let Some(threads) = foot.map(|f| {
        f.split(':').nth(1).map_or(0, |rest| {
            rest.split_whitespace().take_while(|w| w.parse::<u64>().is_ok()).count()
        })
    }) else {
        return false;
    };
    let Some(begin) = lines.iter().position(|l| l.trim() == "# Histogram") else { return false };
    let mut joined = false;
    let mut at = begin + 1;
    while at < lines.len() {
        let mut end = at + 1;
        if lines.get(at).is_some_and(|l| is_numbers(l)) {
            let mut have = lines.get(at).map_or(0, |l| words(l));
            while have < threads + 1 && lines.get(end).is_some_and(|l| is_numbers(l)) {
                have += lines.get(end).map_or(0, |l| words(l));
                end += 1;
            }
            if end > at + 1 && (threads + 1..=threads + 2).contains(&have) {
                let whole = lines.get(at..end).unwrap_or_default().join(" ");
                lines.get_mut(at..end).into_iter().flatten().for_each(String::clear);
                lines.get_mut(at).into_iter().for_each(|l| *l = whole.clone());
                joined = true;
            }
        }
        at = end;
    }
    joined
}
