// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU that is taken off and on again: for the last step of that the kernel stops every other CPU
//! (stop_machine).
//!
//! Context: the thread is the load; SETUP elsewhere.
//! Interrupts and threads that were moved away do not all come back, so this is done in a guest of the lab
//! alone, which ends with its run. The CPU is on again between bursts.
//! Source: the kernel's core-api/cpu_hotplug.rst, kernel/cpu.c (`takedown_cpu`).

use std::fs::{self, File};
use std::io::Write as _;

use super::{Options, Pace};
use crate::failure::{Explain as _, Failure};
use crate::kind::Started;
use crate::spin::Threads;

/// A word of the command line that every guest of the lab has.
const GUEST: &str = "tailbound.job=";

/// Is this a guest of the lab?
pub(super) fn is_guest() -> bool {
    fs::read_to_string("/proc/cmdline").unwrap_or_default().contains(GUEST)
}

/// Takes the last of `cpus` off and on at each interval.
pub(super) fn start(options: Options, cpus: &[u32]) -> Started {
    if !is_guest() {
        return Err(Failure::Plain(
            "kind=hotplug changes the machine for good, and works in a guest of the lab alone: `tailbound lab run --smp 2`",
        ));
    }
    let Some(cpu) = cpus.last().filter(|cpu| **cpu > 0) else {
        return Err(Failure::TooFewCpus {
            option: "kind=hotplug",
            why: "`tailbound lab run --smp 2` gives a guest two",
        });
    };
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    fs::read(&path).on(&path).remedy("kind=hotplug needs a kernel with CONFIG_HOTPLUG_CPU")?;
    let threads = Threads::new(1)?;
    // On the CPU that stays.
    threads.spawn(0, Some(0), move |count| {
        let mut pace = Pace::new(options);
        loop {
            for state in [b"0", b"1"] {
                File::options()
                    .write(true)
                    .open(&path)
                    .and_then(|mut f| f.write_all(state))
                    .on(&path)?;
            }
            count(1);
            pace.wait();
        }
    })?;
    Ok(Box::new(threads))
}
