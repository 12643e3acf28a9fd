// SPDX-License-Identifier: MIT OR Apache-2.0
//! A name with options, as people write it: `hackbench`, `signal:between=processes`. Loads, probes and
//! benchmarks are chosen so.
//!
//! Not here: which names and options there are (their catalogues).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A name of a catalogue and options for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Spec {
    /// The name in its catalogue.
    pub name: String,
    /// `key=value` options, in the order written.
    pub options: Vec<(String, String)>,
}

/// Why a text is no [`Spec`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Nothing stands before the colon.
    #[error("`{0}` has no name: write NAME or NAME:OPTION=VALUE")]
    NoName(String),
    /// An option without a value.
    #[error("option `{0}` is not key=value")]
    NoValue(String),
}

impl Spec {
    /// A name without options.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), options: Vec::new() }
    }
    /// The value of option `key`.
    #[must_use]
    pub fn option(&self, key: &str) -> Option<&str> {
        self.options.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }
    /// A shell command as a load or benchmark.
    #[must_use]
    pub fn command(line: &str) -> Self {
        Self { name: "cmd".into(), options: vec![("line".into(), line.into())] }
    }
}

/// Splits `hackbench:groups=4,ipc=inet,memory` into its loads: a part that is an option or a
/// number belongs to the load before it; within a command's line blanks and commas stay as they were written.
#[must_use]
pub fn split_loads(text: &str) -> Vec<String> {
    let mut loads: Vec<String> = Vec::new();
    // What stands between two parts that are not blank.
    let mut blank = String::new();
    for written in text.split(',') {
        let part = written.trim();
        if part.is_empty() {
            blank.push(',');
            blank.push_str(written);
            continue;
        }
        let blank = std::mem::take(&mut blank);
        let option = part.find('=').is_some_and(|eq| part.find(':').is_none_or(|colon| eq < colon));
        let number = part.starts_with(|c: char| c.is_ascii_digit());
        match loads.last_mut() {
            Some(last) if (option || number) && last.starts_with("cmd:") => {
                last.push_str(&blank);
                last.push(',');
                last.push_str(written);
            }
            Some(last) if option || number => {
                last.push(if last.contains(':') { ',' } else { ':' });
                last.push_str(part);
            }
            _ if part.starts_with("cmd:") => loads.push(written.trim_start().to_owned()),
            _ => loads.push(part.to_owned()),
        }
    }
    loads.iter().map(|load| load.trim_end().to_owned()).collect()
}

impl FromStr for Spec {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, rest) = text.split_once(':').map_or((text, ""), |(n, r)| (n, r));
        if name.is_empty() {
            return Err(SpecError::NoName(text.to_owned()));
        }
        // A command line may hold commas and equals signs: `line=` comes last and takes the rest.
        let at = (name == "cmd")
            .then(|| if rest.starts_with("line=") { Some(0) } else { rest.find(",line=") })
            .flatten();
        let (rest, line) = at.map_or((rest, None), |at| {
            let (before, line) = rest.split_at(at);
            (before, line.trim_start_matches(',').strip_prefix("line="))
        });
        let mut options: Vec<(String, String)> = Vec::new();
        for part in rest.split(',').filter(|o| !o.is_empty()) {
            match (part.split_once('='), options.last_mut()) {
                (Some((key, value)), _) => options.push((key.to_owned(), value.to_owned())),
                // A CPU list holds commas of its own: `cpus=0,2-3`.
                (None, Some((key, value))) if key == "cpus" => {
                    value.push(',');
                    value.push_str(part);
                }
                _ => return Err(SpecError::NoValue(part.to_owned())),
            }
        }
        options.extend(line.map(|line| ("line".to_owned(), line.to_owned())));
        Ok(Self { name: name.to_owned(), options })
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options: Vec<String> = self.options.iter().map(|(k, v)| format!("{k}={v}")).collect();
        if options.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}:{}", self.name, options.join(","))
        }
    }
}

impl TryFrom<String> for Spec {
    type Error = SpecError;
    fn try_from(text: String) -> Result<Self, SpecError> {
        text.parse()
    }
}

impl From<Spec> for String {
    fn from(spec: Spec) -> Self {
        spec.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_says_what_is_wrong_with_it_and_not_of_what() {
        let error = |text: &str| text.parse::<Spec>().err().map(|e| e.to_string());
        assert_eq!(
            error(":x"),
            Some("`:x` has no name: write NAME or NAME:OPTION=VALUE".to_owned())
        );
        assert_eq!(error("pi:chain"), Some("option `chain` is not key=value".to_owned()));
    }

    #[test]
    fn specs_round_trip() {
        for text in [
            "hackbench",
            "hackbench:groups=4,ipc=inet",
            "hackbench:cpus=0,2-3,groups=4",
            "cmd:line=a,b=c:d",
            "cmd:repeat=yes,cpus=0,2,line=a,line=b",
        ] {
            assert_eq!(text.parse::<Spec>().map(|s| s.to_string()), Ok(text.to_owned()));
        }
    }
}
