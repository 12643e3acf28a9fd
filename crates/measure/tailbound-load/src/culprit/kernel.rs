// SPDX-License-Identifier: MIT OR Apache-2.0
//! Troubles made inside the kernel: a long system call, a long work item, and messages on the
//! console.
//!
//! Context: the threads are the load; SETUP elsewhere. Units: ns.
//! How much makes a burst of the length asked for is measured at the start. Where the kernel is
//! preemptible, neither call nor work item keeps a real-time thread from the CPU.
//! Work item: a terminal that is told to show its line again (Ctrl-R) goes through all of it, and so
//! some hundred of these are a millisecond of one work item, `flush_to_ldisc`. It is queued
//! unbound, but its worker begins on the CPU of the thread that writes.
//! Source: poll(2), pty(7), termios(3), drivers/tty/n_tty.c; the kernel's
//! ABI/testing/dev-kmsg, admin-guide/serial-console.rst.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};

use tailbound_core::units;
use tailbound_sys::long_call::LongPoll;
use tailbound_sys::{ipc, process, terminal};

use super::{Options, Pace, least_ns, times};
use crate::failure::{Explain as _, Failure};
use crate::kind::{Note, Started};
use crate::machine::REDUCED;
use crate::spin::Threads;

/// Descriptors of the call by which the length is found: fewer than any limit.
const TRIAL: usize = 512;
/// A line that a terminal still takes (4095 bytes).
const LINE: [u8; 4000] = [b'x'; 4000];
/// VREPRINT, as a new terminal has it: Ctrl-R.
const AGAIN: u8 = 0x12;
/// Repetitions by which the length is found, and the most that stay in one piece of the buffer.
const TRIAL_AGAIN: usize = 128;
const AGAIN_MAX: usize = 1500;
/// No thread waits longer before it looks again.
const WAIT_MS: i32 = 1000;
const KMSG: &str = "/dev/kmsg";
/// Bytes of a message: 9 ms of a serial line of 115,200 bit/s.
const MESSAGE_BYTES: usize = 100;

/// A thread on each of `cpus` that makes a system call of that length at each interval.
pub(super) fn long_call(options: Options, cpus: &[u32], note: Note<'_>) -> Started {
    let mut trial = LongPoll::new(TRIAL)?;
    let trial_ns = least_ns(|| Ok(trial.call()?))?;
    let wanted = times(options.busy_ns, TRIAL, trial_ns);
    let descriptors = match process::allow_open_files(wanted as u64) {
        Ok(()) => wanted,
        Err(_) => most_open_files()?.min(wanted),
    };
    if descriptors < wanted {
        let is_ns = trial_ns.saturating_mul(i64::try_from(descriptors / TRIAL).unwrap_or(1));
        note(format!(
            "{REDUCED}calls of about {} instead of {}: no more than {} files may be open (`ulimit -n`)",
            units::format_ns_i64(is_ns),
            units::format_ns_i64(options.busy_ns),
            units::grouped(descriptors as u64)
        ));
    }
    let threads = Threads::new(cpus.len())?;
    for (slot, cpu) in cpus.iter().enumerate() {
        let mut call = LongPoll::new(descriptors)?;
        threads.spawn(slot, Some(*cpu), move |count| {
            let mut pace = Pace::new(options);
            loop {
                call.call()?;
                count(1);
                pace.wait();
            }
        })?;
    }
    Ok(Box::new(threads))
}

/// As many files as this process may have open, once it has asked for all it may.
fn most_open_files() -> Result<usize, Failure> {
    Ok(usize::try_from(process::raise_open_files()?).unwrap_or(usize::MAX))
}

/// A terminal on each of `cpus` that is given work of that length at each interval.
pub(super) fn kworker(options: Options, cpus: &[u32]) -> Started {
    let mut pair = Pair::new()?;
    let line_ns = least_ns(|| pair.burst(0))?;
    let trial_ns = least_ns(|| pair.burst(TRIAL_AGAIN))?.saturating_sub(line_ns);
    let again = times(options.busy_ns, TRIAL_AGAIN, trial_ns).min(AGAIN_MAX);
    let threads = Threads::new(cpus.len())?;
    for (slot, cpu) in cpus.iter().enumerate() {
        let mut pair = Pair::new()?;
        threads.spawn(slot, Some(*cpu), move |count| {
            let mut pace = Pace::new(options);
            loop {
                pair.burst(again)?;
                count(1);
                pace.wait();
            }
        })?;
    }
    Ok(Box::new(threads))
}

/// A pseudo-terminal.
struct Pair {
    person: OwnedFd,
    terminal: OwnedFd,
}

impl Pair {
    fn new() -> Result<Self, Failure> {
        let (person, terminal) = terminal::pair(terminal::WindowSize::USUAL)
            .remedy("kind=kworker needs /dev/ptmx and /dev/pts")?;
        // Or each byte of the line would be work of its own for the other end.
        terminal::hold_output(terminal.as_fd())?;
        Ok(Self { person, terminal })
    }

    /// Writes a line, has it shown so many times again, and waits until that has been done.
    fn burst(&mut self, again: usize) -> Result<(), Failure> {
        let on = "the terminal";
        let mut order = vec![AGAIN; again];
        order.push(b'\n');
        for part in [&LINE[..], &order] {
            let mut left = part;
            while !left.is_empty() {
                let n = ipc::write(self.person.as_fd(), left).on(on)?;
                left = left.get(n..).unwrap_or_default();
            }
        }
        while ipc::wait_readable(&[self.terminal.as_fd()], WAIT_MS)?.first() != Some(&true) {}
        let mut line = [0; LINE.len() + 1];
        ipc::read(self.terminal.as_fd(), &mut line).on(on)?;
        Ok(())
    }
}

/// A message at each interval that the kernel prints on the console.
pub(super) fn console(options: Options, cpus: &[u32], note: Note<'_>) -> Started {
    let consoles = fs::read_to_string("/proc/consoles").unwrap_or_default();
    if consoles.trim().is_empty() {
        return Err(Failure::Plain("kind=console needs a console: /proc/consoles names none"));
    }
    let path = "/proc/sys/kernel/printk";
    let levels = fs::read_to_string(path).on(path)?;
    let Some(level) = printed_level(&levels) else {
        return Err(Failure::Plain(
            "the console prints none but emergencies (/proc/sys/kernel/printk): kind=console needs `dmesg -n 4`",
        ));
    };
    // Here, where a refusal is the answer to the start.
    open_log()?;
    let named: Vec<_> = consoles.lines().filter_map(|l| l.split_whitespace().next()).collect();
    note(format!(
        "lines of {MESSAGE_BYTES} bytes for {}; they stay in the kernel's log",
        named.join(", ")
    ));
    let text = message(level);
    let threads = Threads::new(1)?;
    // One thread: the console is one, and the log is everybody's.
    threads.spawn(0, cpus.last().copied(), move |count| {
        let mut pace = Pace::new(options);
        loop {
            // Opened anew: of one open file the kernel takes ten lines in five seconds.
            open_log()?.write_all(text.as_bytes()).on(KMSG)?;
            count(1);
            pace.wait();
        }
    })?;
    Ok(Box::new(threads))
}

fn open_log() -> Result<File, Failure> {
    File::options()
        .write(true)
        .open(KMSG)
        .on(KMSG)
        .remedy("kind=console needs root, and a kernel.printk_devkmsg that is not off")
}

/// The level of the least messages that the console still prints; emergencies (0) are not ours to
/// cry.
fn printed_level(levels: &str) -> Option<u32> {
    let console = levels.split_whitespace().next()?.parse::<u32>().ok()?;
    let level = console.checked_sub(1)?.min(7);
    (level > 0).then_some(level)
}

fn message(level: u32) -> String {
    let text = "tailbound: a line that the load culprit:kind=console writes on purpose";
    // A write is a message: its end is not for the line's length.
    format!("<{level}>{text:.<MESSAGE_BYTES$}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_printed_and_no_emergency() {
        assert_eq!(printed_level("4\t4\t1\t7\n"), Some(3));
        assert_eq!(printed_level("15 4 1 7"), Some(7));
        assert_eq!(printed_level("1 4 1 7"), None);
        assert_eq!(printed_level("0 4 1 7"), None);
        assert_eq!(printed_level(""), None);
        assert_eq!(message(3).len(), "<3>".len() + MESSAGE_BYTES + 1);
    }

    #[test]
    fn a_terminal_is_done_with_its_line_each_time() {
        let Ok(mut pair) = Pair::new() else {
            tailbound_testing::skip("pseudo-terminal", "none to be had");
            return;
        };
        for again in [0, 1, 100, AGAIN_MAX] {
            assert!(pair.burst(again).is_ok(), "{again}");
        }
    }
}
