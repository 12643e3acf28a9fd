// SPDX-License-Identifier: MIT OR Apache-2.0
//! PID 1 of the lab and of boards: from the kernel to the run file and back to the host.
//!
//! Context: SETUP and COLD. Mounts what a system needs, loads modules, stops where a
//! snapshot may be taken, takes its job, starts what measures as a process of its own,
//! sends what came of it over the second serial line, and restarts, which ends QEMU.
//! A board's own is in `board`.
//! Not here: the measurement (`tailbound run`), QEMU (`tailbound-lab`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod board;
mod child;
mod error;
mod job;
mod shares;
mod system;
mod tune;
mod work;

use std::fs::File;
use std::io::{self, Write as _};
use std::process::ExitCode;

use tailbound_core::envelope;
use tailbound_sys::boot;

use crate::error::GuestError;

/// Whether the kernel turns off an interrupt that nobody seems to want. Those of PREEMPT_RT before 6.12 take a serial line's
/// for one as its thread empties the line, and what is left to send then takes a hundred times as long.
const NO_SUSPICION: &str = "/sys/module/spurious/parameters/noirqdebug";

const CONSOLE: &str = "/dev/console";
/// What the last line on the console begins with.
pub const SAYS: &str = "tailbound guest: ";

/// Is this process the first of a lab's guest, or of a board that booted our initramfs? Of a machine or a container whose
/// first process happens to be this program it is not.
#[must_use]
pub fn is_guest() -> bool {
    std::process::id() == 1
        && std::env::args_os().next().is_some_and(|a| a == "/init")
        && board::may_begin()
}

/// The whole life of the guest.
#[must_use]
pub fn main() -> ExitCode {
    if board::is_board() {
        return board::main();
    }
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
    on_console(&format!("{SAYS}{text}"));
}

fn on_console(line: &str) {
    if let Ok(mut console) = File::options().write(true).open(CONSOLE) {
        drop(writeln!(console, "{line}"));
        drop(boot::drain(&console));
    }
}

/// Lets the kernel have no suspicion. Not with the boot: this is after the measurement. Before the line is opened, which is
/// when an interrupt is looked at. A kernel without it has no suspicion.
fn no_suspicion() {
    drop(File::options().write(true).open(NO_SUSPICION).and_then(|mut f| f.write_all(b"1")));
}

fn send(files: &[(String, Vec<u8>)], words: &[String], status: &str) -> Result<(), GuestError> {
    let name = system::word("tailbound.results").unwrap_or_else(|| "/dev/ttyS1".to_owned());
    no_suspicion();
    let mut line = File::options().write(true).open(&name).map_err(GuestError::file(&name))?;
    boot::make_raw(&line)?;
    write_all(&mut line, files, words, status).map_err(GuestError::file(&name))?;
    Ok(boot::drain(&line)?)
}

/// Everything that is sent, in its envelope.
fn write_all(
    line: &mut impl io::Write,
    files: &[(String, Vec<u8>)],
    words: &[String],
    status: &str,
) -> io::Result<()> {
    for (name, bytes) in files {
        envelope::write_file(line, name, bytes)?;
    }
    envelope::write_file(line, "words", words.join("\n").as_bytes())?;
    envelope::write_end(line, status)
}
