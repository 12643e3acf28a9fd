// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model written by hand: TOML with one table `[[task]]` for each task, and the same words on the
//! command line.
//!
//! Units: in the file those of `parse_ns` (`5ms`). Documentation: docs/tasks.md.
//! Not here: reading files (`tailbound`), models of runs (`model`).

use serde::Deserialize;

use crate::cpus::MAX_CPU;
use crate::policy::Policy;
use crate::units::{ParseTimeError, parse_ns};

use super::model::{Arrivals, Model, Task};

/// Longest time of a model: a day.
const TIME_MAX_NS: i64 = 86_400_000_000_000;
/// Most tasks of a model.
const TASKS_MAX: usize = 1024;
/// Most entries of a list of times.
const LIST_MAX: usize = 1024;

/// Why a text is not a model.
#[derive(Debug, thiserror::Error)]
pub enum TaskFileError {
    /// It is not TOML, or has other words.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// It has none.
    #[error("there is no [[task]]: write one for each thread (docs/tasks.md)")]
    Empty,
    /// Too many.
    #[error("{found} tasks, at most {TASKS_MAX}")]
    TooMany {
        /// How many.
        found: usize,
    },
    /// Two have one name.
    #[error("two tasks are named `{name}`: give each a name of its own")]
    Twice {
        /// Which.
        name: String,
    },
    /// A word of `key=value` is none.
    #[error("`{word}` is not KEY=VALUE: write name=x,period=5ms,wcet=1ms,priority=60")]
    NotAPair {
        /// Which.
        word: String,
    },
    /// A value that no task can have.
    #[error("task `{task}`, {key}: {reason}")]
    Value {
        /// Which task.
        task: String,
        /// Which key.
        key: &'static str,
        /// Why.
        reason: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    task: Vec<Words>,
}

/// One text or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Several(Vec<String>),
}

impl Texts {
    fn iter(&self) -> std::slice::Iter<'_, String> {
        match self {
            Self::One(text) => std::slice::from_ref(text).iter(),
            Self::Several(texts) => texts.iter(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Words {
    name: String,
    priority: u8,
    #[serde(default)]
    policy: Option<String>,
    #[serde(default)]
    cpu: u32,
    period: Option<String>,
    min_distance: Option<Texts>,
    jitter: Option<String>,
    wcet: Texts,
    suspension: Option<String>,
    suspensions: Option<u32>,
    blocking: Option<String>,
    latency: Option<String>,
    non_preemptible: Option<String>,
    deadline: Option<String>,
}

/// Reads a model.
///
/// # Errors
/// What is wrong, in which task, at which key.
pub fn parse(text: &str) -> Result<Model, TaskFileError> {
    let file: File = toml::from_str(text)?;
    if file.task.is_empty() {
        return Err(TaskFileError::Empty);
    }
    if file.task.len() > TASKS_MAX {
        return Err(TaskFileError::TooMany { found: file.task.len() });
    }
    let tasks: Vec<Task> = file.task.iter().map(Words::task).collect::<Result<_, _>>()?;
    for (i, task) in tasks.iter().enumerate() {
        if tasks.iter().take(i).any(|t| t.name == task.name) {
            return Err(TaskFileError::Twice { name: task.name.clone() });
        }
    }
    Ok(Model { tasks, watched_ns: None })
}

impl Task {
    /// Reads a task as it is typed: `name=x,period=5ms,wcet=1ms,priority=60`, with the keys of the file.
    ///
    /// # Errors
    /// As [`parse`].
    pub fn of_pairs(text: &str) -> Result<Self, TaskFileError> {
        let mut table = toml::Table::new();
        for word in text.split(',') {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| TaskFileError::NotAPair { word: word.to_owned() })?;
            let (key, value) = (key.trim().to_owned(), value.trim());
            // A time without its unit shall be told so.
            let is_number = matches!(key.as_str(), "priority" | "cpu" | "suspensions");
            let value = match value.parse::<i64>() {
                Ok(number) if is_number => toml::Value::Integer(number),
                _ => toml::Value::String(value.to_owned()),
            };
            table.insert(key, value);
        }
        table.try_into::<Words>()?.task()
    }
}

impl Words {
    fn wrong(&self, key: &'static str, reason: impl ToString) -> TaskFileError {
        TaskFileError::Value { task: self.name.clone(), key, reason: reason.to_string() }
    }

    fn time(&self, key: &'static str, text: &str) -> Result<i64, TaskFileError> {
        let ns = parse_ns(text).map_err(|e: ParseTimeError| self.wrong(key, e))?;
        match ns {
            0..=TIME_MAX_NS => Ok(ns),
            _ => Err(self.wrong(key, format!("`{text}` is not between 0 and 24h"))),
        }
    }

    fn positive(&self, key: &'static str, text: &str) -> Result<i64, TaskFileError> {
        match self.time(key, text)? {
            0 => Err(self.wrong(key, "must be above zero")),
            ns => Ok(ns),
        }
    }

    fn or_none(&self, key: &'static str, text: Option<&String>) -> Result<i64, TaskFileError> {
        text.map_or(Ok(0), |t| self.time(key, t))
    }

    /// Times that do not fall.
    fn rising(&self, key: &'static str, texts: &Texts) -> Result<Vec<i64>, TaskFileError> {
        let all: Vec<i64> = texts.iter().map(|t| self.time(key, t)).collect::<Result<_, _>>()?;
        if all.is_empty() || all.len() > LIST_MAX {
            return Err(self.wrong(key, format!("give 1 to {LIST_MAX} times")));
        }
        if !all.is_sorted() {
            return Err(self.wrong(
                key,
                "each time is of more jobs than the one before and cannot be shorter",
            ));
        }
        match all.last() {
            Some(0) => Err(self.wrong(key, "must be above zero")),
            _ => Ok(all),
        }
    }

    fn arrivals(&self, jitter_ns: i64) -> Result<(Arrivals, Option<i64>), TaskFileError> {
        match (&self.period, &self.min_distance) {
            (Some(period), None) => {
                let period_ns = self.positive("period", period)?;
                Ok((Arrivals::Periodic { period_ns, jitter_ns }, Some(period_ns)))
            }
            (None, Some(_)) if jitter_ns > 0 => {
                Err(self
                    .wrong("jitter", "distances that may occur contain it already: leave it out"))
            }
            (None, Some(texts)) => Ok((Arrivals::Curve(self.rising("min-distance", texts)?), None)),
            (Some(_), Some(_)) => {
                Err(self.wrong("min-distance", "stands beside a period: give one of them"))
            }
            (None, None) => Err(self.wrong("period", "is missing: give period or min-distance")),
        }
    }

    fn task(&self) -> Result<Task, TaskFileError> {
        let policy = match (self.policy.as_deref().unwrap_or("fifo"), self.priority) {
            ("fifo", p @ 1..=99) => Policy::Fifo(p),
            ("rr", p @ 1..=99) => Policy::Rr(p),
            ("fifo" | "rr", _) => return Err(self.wrong("priority", "is not between 1 and 99")),
            _ => return Err(self.wrong("policy", "is neither fifo nor rr")),
        };
        if self.cpu > MAX_CPU {
            return Err(self.wrong("cpu", format!("is above {MAX_CPU}")));
        }
        let jitter_ns = self.or_none("jitter", self.jitter.as_ref())?;
        let (arrivals, period_ns) = self.arrivals(jitter_ns)?;
        let suspension_ns = self.or_none("suspension", self.suspension.as_ref())?;
        let blocking_once_ns = self.or_none("blocking", self.blocking.as_ref())?;
        let latency_ns = self.or_none("latency", self.latency.as_ref())?;
        let each = |ns: i64| if ns == 0 { Vec::new() } else { vec![ns] };
        Ok(Task {
            period_ns,
            jitter_ns,
            execution_ns: self.rising("wcet", &self.wcet)?,
            suspension_ns: each(suspension_ns),
            suspensions: self.suspensions.unwrap_or(u32::from(suspension_ns > 0)).min(1 << 20),
            blocking_once_ns,
            latency_ns: each(latency_ns),
            non_preemptible_ns: self.or_none("non-preemptible", self.non_preemptible.as_ref())?,
            deadline_ns: self
                .deadline
                .as_ref()
                .map(|t| self.positive("deadline", t))
                .transpose()?,
            ..Task::new(&self.name, policy, self.cpu, arrivals, 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_a_task() {
        let text = "[[task]]\nname = \"a\"\npriority = 80\ncpu = 1\nperiod = \"5ms\"\njitter = \"10us\"\n\
                    wcet = [\"1ms\", \"1.5ms\"]\nsuspension = \"100us\"\ndeadline = \"4ms\"\n";
        let model = parse(text).unwrap_or_else(|e| panic!("{e}"));
        let expected = Task {
            execution_ns: vec![1_000_000, 1_500_000],
            suspension_ns: vec![100_000],
            suspensions: 1,
            deadline_ns: Some(4_000_000),
            ..Task::new(
                "a",
                Policy::Fifo(80),
                1,
                Arrivals::Periodic { period_ns: 5_000_000, jitter_ns: 10_000 },
                0,
            )
        };
        assert_eq!(model.tasks, [expected]);
        let typed = Task::of_pairs("name=7,period=5ms,wcet=1ms,priority=60,cpu=2")
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            (typed.name.as_str(), typed.cpu(), typed.fixed_priority()),
            ("7", Some(2), Some(60))
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let task = |more: &str| format!("[[task]]\nname = \"a\"\n{more}");
        for (text, words) in [
            (String::new(), "no [[task]]"),
            (
                task("priority = 0\nperiod = \"1s\"\nwcet = \"1ms\""),
                "task `a`, priority: is not between",
            ),
            (task("priority = 1\nwcet = \"1ms\""), "period: is missing"),
            (task("priority = 1\nperiod = \"5\"\nwcet = \"1ms\""), "task `a`, period"),
            (task("priority = 1\nperiod = \"0s\"\nwcet = \"1ms\""), "above zero"),
            (task("priority = 1\nperiod = \"-1s\"\nwcet = \"1ms\""), "not between 0 and 24h"),
            (task("priority = 1\nperiod = \"1s\"\nwcet = [\"2ms\", \"1ms\"]"), "cannot be shorter"),
            (
                task("priority = 1\nperiod = \"1s\"\nwcet = \"1ms\"\nperoid = \"1s\""),
                "unknown field",
            ),
        ] {
            let got = parse(&text).map_err(|e| e.to_string());
            assert!(got.as_ref().is_err_and(|e| e.contains(words)), "{text}: {got:?}");
        }
        assert!(Task::of_pairs("name").is_err_and(|e| e.to_string().contains("KEY=VALUE")));
    }
}
