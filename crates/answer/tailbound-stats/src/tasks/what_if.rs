// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of a model that are tried out: another priority, another CPU, one more task.
//!
//! Documentation: docs/tasks.md.
//! Not here: the analysis (`bound`), command lines (`tailbound`).

use std::fmt;
use std::str::FromStr;

use tailbound_core::cpus::MAX_CPU;
use tailbound_core::policy::Policy;
use tailbound_core::tasks::{Model, Task, TaskFileError};
use tailbound_core::words::did_you_mean;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A thread gets this priority; its policy stays, and one without fixed priority becomes fifo.
    Priority {
        /// Which thread.
        name: String,
        /// 1 to 99.
        priority: u8,
    },
    /// A thread runs on this CPU alone.
    Cpu {
        /// Which thread.
        name: String,
        /// Where.
        cpu: u32,
    },
    /// One more.
    Add(Box<Task>),
}

/// Why a text is no change, or a model cannot be changed so.
#[derive(Debug, thiserror::Error)]
pub enum WhatIfError {
    /// Another word.
    #[error(
        "`{0}` is none of priority:NAME=80, cpu:NAME=1, add:name=x,period=5ms,wcet=1ms,priority=60"
    )]
    Form(String),
    /// A number out of its range.
    #[error("`{text}`: {what} is not between {least} and {most}")]
    Range {
        /// As typed.
        text: String,
        /// Of what.
        what: &'static str,
        /// Lowest.
        least: u32,
        /// Highest.
        most: u32,
    },
    /// The added task is none.
    #[error("add: {0}")]
    Task(#[from] TaskFileError),
    /// No such thread.
    #[error("there is no thread `{name}`{near}")]
    NoThread {
        /// As typed.
        name: String,
        /// What it may be a slip of.
        near: String,
    },
    /// Several threads of one name.
    #[error("{count} tasks are named `{name}`: give each a name of its own")]
    Several {
        /// Which.
        name: String,
        /// How many.
        count: usize,
    },
    /// There is one already.
    #[error("add: there is a thread `{0}` already")]
    Twice(String),
}

impl FromStr for Change {
    type Err = WhatIfError;

    fn from_str(text: &str) -> Result<Self, WhatIfError> {
        let form = || WhatIfError::Form(text.to_owned());
        let (what, rest) = text.split_once(':').ok_or_else(form)?;
        if what == "add" {
            return Ok(Self::Add(Box::new(Task::of_pairs(rest)?)));
        }
        // Names may hold `=`, as kernel threads' do not but users' may.
        let (name, number) = rest.rsplit_once('=').ok_or_else(form)?;
        let name = name.to_owned();
        let range =
            |what, least, most| WhatIfError::Range { text: text.to_owned(), what, least, most };
        let number: u32 = number.trim().parse().map_err(|_| form())?;
        match what {
            "priority" => match u8::try_from(number) {
                Ok(priority @ 1..=99) => Ok(Self::Priority { name, priority }),
                _ => Err(range("the priority", 1, 99)),
            },
            "cpu" if number <= MAX_CPU => Ok(Self::Cpu { name, cpu: number }),
            "cpu" => Err(range("the CPU", 0, MAX_CPU)),
            _ => Err(form()),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Priority { name, priority } => write!(f, "{name} has priority {priority}"),
            Self::Cpu { name, cpu } => write!(f, "{name} runs on CPU {cpu}"),
            Self::Add(task) => write!(
                f,
                "{} is added on CPU {} with {}",
                task.name,
                task.cpu().unwrap_or(0),
                task.policy
            ),
        }
    }
}

impl Change {
    /// Changes `model`.
    ///
    /// # Errors
    /// There is no such thread, there are several, or there is one already.
    pub fn apply(&self, model: &mut Model) -> Result<(), WhatIfError> {
        match self {
            Self::Priority { name, priority } => {
                let task = named(model, name)?;
                task.policy = match task.policy {
                    Policy::Rr(_) => Policy::Rr(*priority),
                    _ => Policy::Fifo(*priority),
                };
            }
            Self::Cpu { name, cpu } => named(model, name)?.cpus = vec![*cpu],
            Self::Add(task) => {
                if model.tasks.iter().any(|t| t.name == task.name) {
                    return Err(WhatIfError::Twice(task.name.clone()));
                }
                model.tasks.push((**task).clone());
            }
        }
        Ok(())
    }
}

/// The one thread of that name.
///
/// # Errors
/// There is none, or there are several.
pub fn named<'m>(model: &'m mut Model, name: &str) -> Result<&'m mut Task, WhatIfError> {
    let count = model.tasks.iter().filter(|t| t.name == name).count();
    if count > 1 {
        return Err(WhatIfError::Several { name: name.to_owned(), count });
    }
    let near = did_you_mean(name, model.tasks.iter().map(|t| t.name.as_str()));
    let found = model.tasks.iter_mut().find(|t| t.name == name);
    found.ok_or(WhatIfError::NoThread { name: name.to_owned(), near })
}
