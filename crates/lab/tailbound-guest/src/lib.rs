// SPDX-License-Identifier: MIT OR Apache-2.0
//! PID 1 of the lab: from the kernel to the run file and back to the host.
//!
//! Context: SETUP and COLD. Mounts what a system needs, loads modules, stops where a
//! snapshot may be taken, takes its job, starts what measures as a process of its own,
//! sends what came of it over the second serial line, and restarts, which ends QEMU.
//! Not here: the measurement (`tailbound run`), QEMU (`tailbound-lab`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod child;
mod error;
mod job;
mod shares;
mod system;
mod tune;
mod work;

use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;

use tailbound_core::envelope;
use tailbound_sys::boot;

use crate::error::GuestError;

/// Whether the kernel turns off an interrupt that nobody seems to want. Those of PREEMPT_RT before 6.12 take a serial line's
/// for one as its thread empties the line, and what is left to send then takes a hundred times as long.
const NO_SUSPICION: &str = "/sys/module/spurious/parameters/noirqdebug";

/// What the last line on the console begins with.
pub const SAYS: &str = "tailbound guest: ";

/// Is this process the first of a lab's guest?
#[must_use]
pub fn is_guest() -> bool {
    std::process::id() == 1 && std::env::args_os().next().is_some_and(|a| a == "/init")
}

/// The whole life of the guest.
#[must_use]
pub fn main() -> ExitCode {
    let mut words = Vec::new();
    let ended = system::prepare(&mut words).and_then(|system| {
        let job = job::take(&system)?;
        work::run(&job, &mut words)
    });
    let (files, status) = match ended {
        Ok(work) => (work.files, work.status),
        Err(why) => (Vec::new(), format!("failed: {why}")),
    };
    say(&status);
    if let Err(e) = send(&files, &words, &status) {
        say(&format!("nothing sent: {e}"));
    }
    if let Err(e) = boot::restart() {
        say(&e.to_string());
    }
    ExitCode::FAILURE
}

/// Says something on the console.
fn say(text: &str) {
    if let Ok(mut console) = File::options().write(true).open("/dev/console") {
        drop(writeln!(console, "{SAYS}{text}"));
        drop(boot::drain(&console));
    }
}

fn send(files: &[(String, Vec<u8>)], words: &[String], status: &str) -> Result<(), GuestError> {
    let name = system::word("tailbound.results").unwrap_or_else(|| "/dev/ttyS1".to_owned());
    // Not with the boot: this is after the measurement. Before the line is opened, which is when an interrupt is looked at. A
    // kernel without it has no suspicion.
    drop(File::options().write(true).open(NO_SUSPICION).and_then(|mut f| f.write_all(b"1")));
    let mut line = File::options().write(true).open(&name).map_err(GuestError::file(&name))?;
    boot::make_raw(&line)?;
    let sent = (|| {
        for (name, bytes) in files {
            envelope::write_file(&mut line, name, bytes)?;
        }
        envelope::write_file(&mut line, "words", words.join("\n").as_bytes())?;
        envelope::write_end(&mut line, status)
    })();
    sent.map_err(GuestError::file(&name))?;
    Ok(boot::drain(&line)?)
}
