// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the words of a command line to options with their values, as getopt_long(3) takes them.
//!
//! Not here: what they mean (`options`).

use crate::error::CyclictestError;
use crate::option::{CyclicOption, OPTIONS, Takes};

/// An option and its value.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) option: &'static CyclicOption,
    pub(crate) value: Option<String>,
}

/// A command line.
#[derive(Debug, Default)]
pub(crate) struct GetoptLine {
    pub(crate) given: Vec<Given>,
    /// Words that are neither, which cyclictest passes over.
    pub(crate) stray: Vec<String>,
}

/// # Errors
/// An option that cyclictest does not have, or without its value.
pub(crate) fn parse(words: &[String]) -> Result<GetoptLine, CyclictestError> {
    let mut line = GetoptLine::default();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at = at.saturating_add(1);
        let next = words.get(at).map(String::as_str);
        let used = match word.strip_prefix("--") {
            Some("") => {
                line.stray.extend(words.iter().skip(at).cloned());
                break;
            }
            Some(long) => line.long(long, next)?,
            None => match word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                Some(letters) => line.cluster(letters, next)?,
                None => {
                    line.stray.push(word.clone());
                    Next::Left
                }
            },
        };
        if used == Next::Taken {
            at = at.saturating_add(1);
        }
    }
    Ok(line)
}

/// What became of the word behind an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Taken,
    Left,
}

impl GetoptLine {
    /// `--interval=200`, `--interval 200`, or as much of the name as is unambiguous.
    fn long(&mut self, long: &str, next: Option<&str>) -> Result<Next, CyclictestError> {
        let (name, joined) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let option = by_name(name)?;
        let (value, used) = match (option.takes, joined) {
            (Takes::Nothing, Some(_)) => {
                return Err(CyclictestError::NoValue { option: option.shown() });
            }
            (Takes::Value(_), None) => match next {
                Some(next) => (Some(next), Next::Taken),
                None => return Err(CyclictestError::ValueMissing { option: option.shown() }),
            },
            (Takes::Maybe(_), None) => optional(next),
            (_, joined) => (joined, Next::Left),
        };
        self.given.push(Given { option, value: value.map(str::to_owned) });
        Ok(used)
    }

    /// `-Smp99`: letters without a value, and one with it, joined or the next word.
    fn cluster(&mut self, cluster: &str, next: Option<&str>) -> Result<Next, CyclictestError> {
        let mut letters = cluster.chars();
        while let Some(letter) = letters.next() {
            let option = OPTIONS.iter().find(|o| o.short == Some(letter));
            let Some(option) = option else {
                return Err(CyclictestError::Unknown { option: format!("-{letter}") });
            };
            let joined = Some(letters.as_str()).filter(|rest| !rest.is_empty());
            let (value, used) = match (option.takes, joined, next) {
                (Takes::Nothing, ..) => {
                    self.given.push(Given { option, value: None });
                    continue;
                }
                (_, Some(joined), _) => (Some(joined), Next::Left),
                (Takes::Value(_), None, Some(next)) => (Some(next), Next::Taken),
                (Takes::Value(_), None, None) => {
                    return Err(CyclictestError::ValueMissing { option: option.shown() });
                }
                (Takes::Maybe(_), None, next) => optional(next),
            };
            self.given.push(Given { option, value: value.map(str::to_owned) });
            return Ok(used);
        }
        Ok(Next::Left)
    }
}

/// The next word, where it is a number or a list of CPUs.
fn optional(next: Option<&str>) -> (Option<&str>, Next) {
    match next.filter(|word| word.starts_with(|c: char| c.is_ascii_digit() || c == '!')) {
        Some(word) => (Some(word), Next::Taken),
        None => (None, Next::Left),
    }
}

fn by_name(name: &str) -> Result<&'static CyclicOption, CyclictestError> {
    let unknown = || CyclictestError::Unknown { option: format!("--{name}") };
    // As cyclictest(8) has it, though the program does not.
    let name = match name {
        "prio" => "priority",
        "align" => "aligned",
        other => other,
    };
    if let Some(exact) = OPTIONS.iter().find(|o| o.long == name) {
        return Ok(exact);
    }
    let mut begun = OPTIONS.iter().filter(|o| o.long.starts_with(name));
    match (begun.next(), begun.next()) {
        (Some(only), None) => Ok(only),
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match parse(&words) {
            Ok(line) => {
                let given = line.given.iter().map(|g| {
                    format!("{}{}", g.option.shown(), g.value.as_deref().unwrap_or_default())
                });
                let stray = line.stray.iter().map(|word| format!("[{word}]"));
                given.chain(stray).collect::<Vec<_>>().join(" ")
            }
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn words_are_taken_as_getopt_takes_them() {
        for (line, taken) in [
            ("-Smp99", "-S -m -p99"),
            ("-a0-3 -t4 -i200", "-a0-3 -t4 -i200"),
            ("-a 0 -t 1 -D 1m -m", "-a0 -t1 -D1m -m"),
            ("-t -a -p 80", "-t -a -p80"),
            ("-qmu -h 3500 -p95", "-q -m -u -h3500 -p95"),
            ("--smp --interval=200 --distance 0", "-S -i200 -d0"),
            ("--json=a.json --hist=3", "[--hist]"),
            ("--thread=3 --mlock --prio=5", "-t3 -m -p5"),
            ("- m -q", "-q [-] [m]"),
            ("-q -- -m", "-q [-m]"),
        ] {
            if taken == "[--hist]" {
                assert!(read(line).contains("--hist"), "{line}: ambiguous");
                continue;
            }
            assert_eq!(read(line), taken, "{line}");
        }
        assert!(read("-z").contains("-z") && read("-q -i").contains("-i"));
        assert!(read("--quiet=1").contains("-q"));
    }
}
