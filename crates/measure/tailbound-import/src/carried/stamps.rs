// SPDX-License-Identifier: MIT OR Apache-2.0
//! What consoles, mail programs and CI systems write before each line: learned from the lines of a tool that stand behind it,
//! whatever it looks like.
//!
//! A shape is the mark with its numbers and the names of days and months left open.
//! Limits: 160 characters before a line, 8 shapes a file.

use crate::error::excerpt;
use crate::text::Lines;
use tailbound_core::order;

/// Longest mark.
const LONGEST: usize = 160;
/// Most kinds of marks in a file.
const SHAPES_MAX: usize = 8;
const NAMES: [&str; 19] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Mon",
    "Tue", "Wed", "Thu", "Fri", "Sat", "Sun",
];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// A number, with spaces before it or not.
    Number,
    /// Blanks.
    Blank,
    /// The name of a day or a month.
    Name,
    /// These characters.
    Literal(String),
}

/// What stands before a tool's lines.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    parts: Vec<Part>,
    example: String,
}

/// The shapes of the marks before the tools' lines in `head`; rows of numbers show none.
pub(crate) fn learned(head: &[u8]) -> Vec<Shape> {
    let mut shapes: Vec<Shape> = Vec::new();
    for (_, line) in Lines::new(head).filter_map(Result::ok) {
        let words = line.bytes().any(|b| b.is_ascii_alphabetic() || b == b'#');
        if !words && !line.contains(": ") {
            continue;
        }
        if super::is_own(line.trim())
            || shapes.iter().any(|s| s.after(&line).is_some_and(|r| super::is_own(r.trim())))
        {
            continue;
        }
        let Some(at) = own_part(&line) else { continue };
        let mark = line.get(..at).unwrap_or("");
        let new = Shape { parts: parts(mark), example: excerpt(mark.trim()) };
        if shapes.len() < SHAPES_MAX && !shapes.iter().any(|s| s.parts == new.parts) {
            shapes.push(new);
        }
    }
    // The longer one first: `> > ` before `> `.
    order::by_key(&mut shapes, |s| std::cmp::Reverse(s.parts.len()));
    shapes
}

/// Where a tool's own line begins behind something else.
fn own_part(line: &str) -> Option<usize> {
    let mut before = ' ';
    for (at, c) in line.char_indices().take(LONGEST) {
        let begins = matches!(before, ' ' | '\t' | '|' | '>' | ']' | ':') && !c.is_whitespace();
        if at > 0 && begins && line.get(at..).is_some_and(super::is_own) {
            let empty = line.get(..at).is_none_or(|mark| mark.trim().is_empty());
            return (!empty).then_some(at);
        }
        before = c;
    }
    None
}

fn parts(mark: &str) -> Vec<Part> {
    let mut out: Vec<Part> = Vec::new();
    let mut rest = mark;
    while let Some(c) = rest.chars().next() {
        let run = |f: fn(char) -> bool| rest.find(|c| !f(c)).unwrap_or(rest.len());
        // `host1` is a name and no word with a number; `T` of `2025-05-09T10` is none.
        let named = c.is_alphabetic() && !matches!(out.last(), Some(Part::Number));
        let name = if named { run(|c| c.is_alphanumeric() || matches!(c, '_' | '-')) } else { 0 };
        let name = rest.get(..name).unwrap_or("");
        let used = if name.contains(|c: char| c.is_ascii_digit()) {
            out.push(Part::Literal(name.to_owned()));
            name.len()
        } else if c.is_ascii_digit() {
            if out.last() == Some(&Part::Blank) {
                out.pop();
            }
            out.push(Part::Number);
            run(|c| c.is_ascii_digit())
        } else if c.is_whitespace() {
            out.push(Part::Blank);
            run(char::is_whitespace)
        } else if c.is_alphabetic() {
            let used = run(char::is_alphabetic);
            let word = rest.get(..used).unwrap_or("");
            out.push(if NAMES.contains(&word) {
                Part::Name
            } else {
                Part::Literal(word.to_owned())
            });
            used
        } else {
            out.push(Part::Literal(c.to_string()));
            c.len_utf8()
        };
        rest = rest.get(used..).unwrap_or("");
    }
    out
}

/// Words that differ from line to line of one source.
const LEVELS: [&str; 14] = [
    "INFO", "DEBUG", "WARN", "WARNING", "NOTICE", "ERROR", "info", "debug", "warn", "warning",
    "notice", "error", "stdout", "stderr",
];

impl Shape {
    /// Is `other` the same mark of another source: another machine's name, another program's, another file's?
    pub(crate) fn is_other_source(&self, other: &Self) -> bool {
        let name = |p: &Part| match p {
            Part::Literal(text) => text.len() > 1 && !LEVELS.contains(&text.as_str()),
            _ => false,
        };
        let mut differ = self.parts.iter().zip(&other.parts).filter(|(a, b)| a != b);
        self.parts.len() == other.parts.len()
            && differ.next().is_some_and(|(a, b)| name(a) && name(b))
            && differ.next().is_none()
    }

    /// The mark as it stood before the first line.
    pub(crate) fn example(&self) -> String {
        format!("`{}`", self.example)
    }

    /// What follows the mark in `line`; nothing where the line has only the mark.
    pub(crate) fn after<'a>(&self, line: &'a str) -> Option<&'a str> {
        let mut rest = line;
        for part in &self.parts {
            let next = match part {
                Part::Number => {
                    let digits = rest.trim_start();
                    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
                    (rest.len() < digits.len()).then_some(rest)
                }
                // An editor may have cut it from the end of the line.
                Part::Blank => {
                    let after = rest.trim_start();
                    (after.len() < rest.len() || rest.is_empty()).then_some(after)
                }
                Part::Name => NAMES.iter().find_map(|n| rest.strip_prefix(n)),
                Part::Literal(text) => rest.strip_prefix(text.as_str()),
            };
            rest = next?;
        }
        Some(rest)
    }
}
