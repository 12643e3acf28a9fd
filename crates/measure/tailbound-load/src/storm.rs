// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks that do one thing over and over, each in a process of its own.
//!
//! Context: SETUP; the tasks are the load.
//! Base of the loads that work the kernel (fork, mmap, file): one process per task, because
//! tasks that share an address space would wait for each other's lock of it. A task
//! that cannot go on says why on a pipe before it ends.
//! Not here: loads that want threads (`spin`).

use std::collections::HashSet;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::process::ExitStatus;
use std::time::Instant;

use tailbound_sys::ipc::{self, SharedCounters};
use tailbound_sys::process::{self, Pid};

use crate::failure::{Explain, Failure, MORE_TASKS};
use crate::kind::{Load, Started, Turn};

/// Tasks at work.
pub(crate) struct Tasks {
    pids: HashSet<Pid>,
    started: Instant,
    counters: SharedCounters,
    last_words: (PipeReader, PipeWriter),
}

/// Starts `tasks` processes, each of which runs `work` with its number and a way to count
/// what it did. `work` returns an error when it cannot go on, and nothing at an end of its own.
pub(crate) fn start(
    tasks: usize,
    work: impl Fn(usize, &dyn Fn(u64)) -> Result<(), Failure>,
) -> Started {
    let mut it = Tasks {
        pids: HashSet::new(),
        started: Instant::now(),
        counters: SharedCounters::new(tasks)?,
        last_words: io::pipe().on("pipe")?,
    };
    for slot in 0..tasks {
        let task = || {
            let Err(why) = work(slot, &|n| it.counters.add(slot, n)) else { return 0 };
            // Lost words leave the exit status, which is reported as well.
            let _lost = (&it.last_words.1).write_all(format!("{why}\n").as_bytes());
            1
        };
        let pid = process::fork_task(task)
            .on(format_args!("task {} of {tasks}", slot + 1))
            .remedy(format_args!("{MORE_TASKS} fewer tasks"))?;
        it.pids.insert(pid);
    }
    Ok(Box::new(it))
}

impl Tasks {
    /// The first message of a task, if there is one.
    fn first_message(&self) -> Option<String> {
        let mut reader = &self.last_words.0;
        if ipc::wait_readable(&[reader.as_fd()], 0).ok()?.first() != Some(&true) {
            return None;
        }
        let mut buffer = [0; 1024];
        let n = reader.read(&mut buffer).ok()?;
        let text = String::from_utf8_lossy(buffer.get(..n)?).into_owned();
        text.lines().next().map(str::to_owned)
    }
}

impl Load for Tasks {
    fn count(&self) -> u64 {
        self.counters.total()
    }

    fn turn(&mut self, ended: &[(Pid, ExitStatus)]) -> Result<Turn, Failure> {
        for (pid, status) in ended {
            if self.pids.remove(pid) && !status.success() {
                let ended =
                    || Failure::Ended { what: "a task".into(), how: process::ended(*status) };
                return Err(self.first_message().map_or_else(ended, Failure::Said));
            }
        }
        if self.pids.is_empty() {
            let elapsed_ns = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            return Ok(Turn::Done { elapsed_ns });
        }
        Ok(Turn::Going)
    }
}
