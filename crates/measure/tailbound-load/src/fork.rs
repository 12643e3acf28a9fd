// SPDX-License-Identifier: MIT OR Apache-2.0
//! A storm of processes that are made, end at once, and are waited for; on demand each
//! executes a program in between, which is this one, told to do nothing.
//!
//! Context: the tasks are the load; SETUP elsewhere. Units: forks.
//! Source: fork(2), execve(2), wait(2).

use tailbound_sys::process;
use tailbound_sys::sched;
use tailbound_sys::short_lived::{self, NOT_EXECUTED, Program};

use crate::error::LoadError;
use crate::failure::{Explain, Failure, MORE_TASKS};
use crate::kind::{CPUS, LoadKind, Note, Start, Started};
use crate::options::Reader;
use crate::storm;

pub(crate) static KIND: LoadKind = LoadKind {
    name: "fork",
    unit: "forks",
    about: "processes that are made, end at once and are waited for: scheduler, memory maps, RCU",
    options: &[
        ("tasks", "processes that fork (default: 2 per CPU)"),
        ("exec", "yes: each child executes this program, which exits at once (default no)"),
        CPUS,
    ],
    coarse: false,
    command: None,
    prepare: |r| Ok(Start::new(Options::read(r)?, start)),
};

/// Two, so that one can fork while another's child ends.
const TASKS_PER_CPU: usize = 2;
/// The specification of a worker that has nothing to do.
pub(crate) const NOTHING: &str = "nothing";
/// Names this program also where its file has been replaced.
const OURSELVES: &str = "/proc/self/exe";

/// How many processes fork, and what their children do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    tasks: Option<usize>,
    exec: bool,
}

impl Options {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        Ok(Self { tasks: r.tasks("tasks")?, exec: r.yes_no("exec")?.unwrap_or(false) })
    }
}

fn start(options: Options, _: Note<'_>) -> Started {
    let cpus = sched::affinity(0)?.len().max(1);
    let program = if options.exec { Some(ourselves()?) } else { None };
    storm::start(options.tasks.unwrap_or(TASKS_PER_CPU * cpus), |_, count| {
        loop {
            let status = short_lived::run(program.as_ref())
                .remedy(format_args!("{MORE_TASKS} fewer tasks"))?;
            match status.code() {
                Some(0) => count(1),
                Some(NOT_EXECUTED) => {
                    return Err(Failure::Plain("could not be executed").on(OURSELVES));
                }
                _ => {
                    let how = process::ended(status);
                    return Err(Failure::Ended { what: "a child".into(), how });
                }
            }
        }
    })
}

/// The words this worker was called with, but for the last, which is its specification.
fn ourselves() -> Result<Program, Failure> {
    std::fs::metadata(OURSELVES).on(format_args!("exec=yes needs {OURSELVES}"))?;
    let mut words: Vec<_> = std::env::args_os().collect();
    words.pop();
    words.push(NOTHING.into());
    Ok(Program::new(OURSELVES, words)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::read;

    #[test]
    fn options_are_read() {
        let asked = read("fork:tasks=3,exec=yes", Options::read);
        assert_eq!(asked, Options { tasks: Some(3), exec: true });
        assert_eq!(read("fork", Options::read), Options { tasks: None, exec: false });
    }
}
