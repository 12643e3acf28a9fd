// SPDX-License-Identifier: MIT OR Apache-2.0
//! Troubles that the kernel makes when it is asked to tell of itself (SysRq): non-maskable interrupts
//! to the other CPUs, and a list of all tasks on the console.
//!
//! Context: the thread is the load; SETUP elsewhere.
//! What is told stays in the kernel's log. A list on a real serial line takes seconds, in which nobody gets the CPU:
//! that one is made in a guest of the lab alone.
//! Source: the kernel's admin-guide/sysrq.rst (`l`, `t`), lib/nmi_backtrace.c.

use std::fs::File;
use std::io::Write as _;

use super::hotplug::is_guest;
use super::{Options, Pace};
use crate::failure::{Explain as _, Failure};
use crate::kind::{Note, Started};
use crate::spin::Threads;

const REQUESTS: &str = "/proc/sysrq-trigger";
const LEVELS: &str = "/proc/sys/kernel/printk";

/// A thread on the first of `cpus` by which all others get a non-maskable interrupt at each interval, and
/// print in it where they are.
pub(super) fn nmi(options: Options, cpus: &[u32], note: Note<'_>) -> Started {
    let Some(from) = cpus.first().filter(|_| cpus.len() > 1) else {
        return Err(Failure::TooFewCpus { option: "kind=nmi", why: "a CPU sends none to itself" });
    };
    note("each burst leaves a stack of each CPU in the kernel's log".into());
    asks(options, *from, b"l")
}

/// A thread on the last of `cpus` that has the kernel print all tasks at each interval.
pub(super) fn task_list(options: Options, cpus: &[u32]) -> Started {
    if !is_guest() {
        return Err(Failure::Plain(
            "kind=task-list takes seconds on a real console, and works in a guest of the lab alone: `tailbound lab run`",
        ));
    }
    // Everything is printed.
    open(LEVELS)?.write_all(b"8").on(LEVELS)?;
    asks(options, cpus.last().copied().unwrap_or(0), b"t")
}

fn asks(options: Options, cpu: u32, request: &'static [u8]) -> Started {
    open(REQUESTS)?;
    let threads = Threads::new(1)?;
    threads.spawn(0, Some(cpu), move |count| {
        let mut pace = Pace::new(options);
        loop {
            open(REQUESTS)?.write_all(request).on(REQUESTS)?;
            count(1);
            pace.wait();
        }
    })?;
    Ok(Box::new(threads))
}

fn open(path: &'static str) -> Result<File, Failure> {
    let needs = "needs root and a kernel with CONFIG_MAGIC_SYSRQ";
    File::options().write(true).open(path).on(path).remedy(needs)
}
