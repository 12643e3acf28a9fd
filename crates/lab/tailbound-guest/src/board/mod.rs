// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first process of a board that booted an initramfs of `tailbound board initramfs`: measures, hands in, ends.
//!
//! Context: SETUP, COLD. Units: s. Whatever fails is said on the console, and the board ends as it was asked to.
//! Nothing is said and nothing is sent while it measures: a serial line interrupts.
//! Not here: the measurement (`work`), the lines on the console (`tailbound_core::frames`), who makes the initramfs (`tailbound-lab`).

mod dhcp;
mod http;
mod network;
mod patience;

use std::fs::{self, File};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use tailbound_core::board::{BoardEnd, BoardJob, Destination, JOB, SAYS};
use tailbound_core::frames;
use tailbound_sys::{boot, scratch};

use self::patience::Patience;
use crate::error::GuestError;
use crate::{CONSOLE, no_suspicion, on_console, system, work, write_all};

/// What a kernel that panics does: 0 stands still for ever.
const PANIC: &str = "/proc/sys/kernel/panic";
/// Which of its messages a kernel writes to the console.
const LOGLEVEL: &str = "/proc/sys/kernel/printk";
/// Until the measurement begins: mounts, modules, a kernel that has just booted.
const BEGIN_S: u64 = 120;
/// Beside the measurement's own limit.
const WORK_S: u64 = 60;
/// For some lines on the console; the slowest has 9600 baud.
const LINES_S: u64 = 120;
const LINES: usize = 16;
/// For the end itself.
const END_S: u64 = 60;
/// Lines of what the tool complained of that are said.
const COMPLAINT_LINES: usize = 5;

/// May this process take the machine over? Only from an initramfs: the root of a machine or a container is no memory alone.
pub(crate) fn may_begin() -> bool {
    !is_board() || scratch::in_memory(Path::new("/")) == Ok(true)
}

/// Is it a board's initramfs?
pub(crate) fn is_board() -> bool {
    Path::new(JOB).is_file()
}

/// From the kernel to the end of the board.
pub(crate) fn main() -> ExitCode {
    let job = read();
    let then = job.as_ref().map_or(BoardEnd::default(), |job| job.then);
    let patience = Patience::begin(then, BEGIN_S);
    let lived = catch_unwind(AssertUnwindSafe(|| job.and_then(|job| live(&job, &patience))));
    patience.allow(END_S);
    let last = match lived {
        Ok(Ok(done)) => format!("done: {done}"),
        Ok(Err(why)) => format!("failed: {why}"),
        Err(_) => "failed: this is a bug of tailbound, which the message above names".to_owned(),
    };
    say(&format!("{last}; {}", then.doing()));
    if let Err(e) = end(then) {
        say(&format!("it cannot: {e}; without its first process the kernel panics now"));
    }
    ExitCode::FAILURE
}

fn end(then: BoardEnd) -> Result<(), GuestError> {
    let ended = match then {
        BoardEnd::Poweroff => boot::power_off(),
        BoardEnd::Reboot => boot::restart(),
        BoardEnd::Halt => boot::halt(),
    };
    Ok(ended?)
}

fn say(text: &str) {
    on_console(&format!("{SAYS}{text}"));
}

fn read() -> Result<BoardJob, GuestError> {
    let bytes = fs::read(JOB).map_err(GuestError::file(JOB))?;
    let job: BoardJob = serde_json::from_slice(&bytes)?;
    match job.unknown_fields().first() {
        Some(name) => Err(GuestError::UnknownField(name.clone())),
        None => Ok(job),
    }
}

/// Measures and hands in; what came of it, as a sentence.
fn live(job: &BoardJob, patience: &Patience) -> Result<String, GuestError> {
    say(&format!(
        "tailbound {}: measures, hands in to {}, then {}",
        env!("CARGO_PKG_VERSION"),
        job.send,
        job.then.doing()
    ));
    let mut words = Vec::new();
    system::prepare(&mut words)?;
    for word in &words {
        say(word);
    }
    if fs::read_to_string(PANIC).is_ok_and(|text| text.trim() == "0") {
        say("a kernel that panics stands still: panic=10 on its command line restarts it");
    }
    let limit_s = job.job.limit_s;
    say(&format!("measures, for at most {limit_s} s; silent until then"));
    patience.allow(limit_s.saturating_add(WORK_S));
    let (files, status) = match work::run(&job.job, &mut words) {
        Ok(work) => (work.files, work.status),
        // What a run file holds so far is a run.
        Err(why) => (what_there_is(), format!("failed: {why}")),
    };
    say(&format!("measured: {status}"));
    let file = |name: &str| files.iter().find(|(n, _)| n == name).map(|(_, bytes)| bytes);
    let run = file(work::RUN).filter(|bytes| !bytes.is_empty());
    if run.is_none() {
        say("no run came of it:");
        complain(file("stderr").map_or(&[][..], Vec::as_slice));
    }
    let mut handed_in = None;
    if let (Destination::Http(to), Some(run)) = (&job.send, run) {
        let sent = network::up(job.address, patience)
            .and_then(|()| http::hand_in(to, job.token.as_deref(), run, patience));
        match sent {
            Ok(answer) => handed_in = Some(format!("the run is at {}: {answer}", job.send)),
            Err(why) => {
                say(&format!("not handed in to {}: {why}; it goes to the console", job.send));
                words.push(format!("{}: {why}", job.send));
            }
        }
    }
    let handed_in = match handed_in {
        Some(text) => text,
        None => over_console(&files, &words, &status, patience)?,
    };
    match run {
        Some(_) => Ok(format!("{status}; {handed_in}")),
        None => Err(GuestError::NoRun { status, handed_in }),
    }
}

fn what_there_is() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    work::collect(&mut files, work::RUN, Path::new(work::OUT));
    work::collect(&mut files, "stderr", Path::new("/run/out.stderr"));
    files
}

/// The end of what the tool complained of.
fn complain(stderr: &[u8]) {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    for line in lines.iter().rev().take(COMPLAINT_LINES).rev() {
        say(line);
    }
}

/// Sends everything over the console, between what the kernel says.
fn over_console(
    files: &[(String, Vec<u8>)],
    words: &[String],
    status: &str,
    patience: &Patience,
) -> Result<String, GuestError> {
    let mut envelope = Vec::new();
    write_all(&mut envelope, files, words, status).map_err(GuestError::file(CONSOLE))?;
    let lines = frames::lines(&envelope);
    say(&format!("sends {} lines", lines.len()));
    no_suspicion();
    // It may still speak where it dies.
    drop(fs::write(LOGLEVEL, "1"));
    let mut console =
        File::options().write(true).open(CONSOLE).map_err(GuestError::file(CONSOLE))?;
    for some in lines.chunks(LINES) {
        patience.allow(LINES_S);
        let text: String = some.iter().map(|line| format!("{line}\n")).collect();
        console.write_all(text.as_bytes()).map_err(GuestError::file(CONSOLE))?;
        boot::drain(&console)?;
    }
    Ok(format!("sent over the console in {} lines", lines.len()))
}
