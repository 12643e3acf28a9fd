// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that outlives a killed run and removes its trace instance: a tracer left on
//! would go on waking its threads at the highest priority.
//!
//! Context: SETUP, COLD. Units: ms where named.
//!
//! ```text
//! run:    start the guard ─► ready? ─► mkdir ─► tell a setting ─► write it … ─► rmdir ─► done
//! guard:        ready ─► reads the pipe ─► its end without `done`: put back, rmdir, again while it is busy
//! ```
//!
//! The guard stands before there is anything to remove, and is told of a setting before that is
//! written: a kill at any instant leaves nothing. It is in a session of its own before its program
//! begins, so that a signal to the run's process group does not reach it. It reads a pipe:
//! `PATH=VALUE` lines are shared settings to put back, `done` means that nothing is left to do, and
//! the end of the pipe that the run is gone. The kernel closes the pipe only after a call that was
//! under way: a mkdir or a write is whole or never comes.
//! Source: pipe(7), setsid(2).

use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write, pipe};
use std::iter::successors;
use std::os::fd::AsFd;
use std::path::Path;

use tailbound_sys::SysError;
use tailbound_sys::clock::{self, CLOCK_MONOTONIC};
use tailbound_sys::environment::Environment;
use tailbound_sys::ipc::wait_readable;
use tailbound_sys::process::{Pid, try_wait};
use tailbound_sys::spawn::Spawn;

use crate::root::Root;
use crate::tracefs::removal::take_down;
use crate::tracefs::{NAME_PREFIX, Tracefs};

const READY: &[u8] = b"ready\n";
/// So long a machine that is busy may need to start it.
const READY_MS: i32 = 10_000;
/// More than this is no answer.
const ANSWER_BYTES_MAX: usize = 4096;
/// So long an instance that is busy is tried again, and the longest pause.
const BUSY_MS: u64 = 10_000;
const PAUSE_MS_MAX: u64 = 512;
/// Longer than the command line of a guard.
const COMMAND_BYTES_MAX: u64 = 1 << 16;

/// The guard of one instance, or why there is none. An instance needs one to be made: it is
/// started before.
#[derive(Debug)]
pub(super) struct Guard {
    name: String,
    standing: Option<Standing>,
    absent: Option<String>,
}

/// Why no guard stands.
#[derive(Debug, thiserror::Error)]
enum GuardError {
    /// No pipe, no process, or no wait for its answer.
    #[error(transparent)]
    System(#[from] SysError),
    #[error("trace-guard: {0}")]
    Answer(io::Error),
    #[error("trace-guard is not ready after {s} s")]
    Late { s: i32 },
    #[error("trace-guard ended before it was ready; it said: {said}")]
    Ended { said: String },
}

#[derive(Debug)]
struct Standing {
    pid: Pid,
    line: PipeWriter,
}

impl Guard {
    /// Starts `exe trace-guard NAME` and waits until it stands.
    pub(super) fn start(exe: &Path, name: String) -> Self {
        match Standing::start(exe, &name) {
            Ok(standing) => Self { name, standing: Some(standing), absent: None },
            Err(why) => Self { name, standing: None, absent: Some(why.to_string()) },
        }
    }

    /// The instance's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Why it was not started.
    pub(super) fn absent(&self) -> Option<&str> {
        self.absent.as_deref()
    }

    /// Tells it of a shared setting, as it is before it is changed.
    pub(super) fn tell(&mut self, path: &str, value: &str) {
        if let Some(standing) = &mut self.standing {
            standing.say(&format!("{path}={value}\n"));
        }
    }

    /// Lets it go: the instance is removed, or never was.
    pub(super) fn dismiss(&mut self) {
        self.standing.take().into_iter().for_each(Standing::dismiss);
    }
}

impl Standing {
    fn start(exe: &Path, name: &str) -> Result<Self, GuardError> {
        let failed =
            |e: io::Error| SysError::code("pipe", "trace guard", e.raw_os_error().unwrap_or(0));
        let (read, line) = pipe().map_err(failed)?;
        let (answer, said) = pipe().map_err(failed)?;
        let pid = Spawn {
            program: exe,
            arguments: &["trace-guard".into(), name.into()],
            // It holds nothing of the caller's: whoever reads the output of a killed run sees its end.
            descriptors: &[(read.as_fd(), 0), (said.as_fd(), 1), (said.as_fd(), 2)],
            pid_namespace: false,
            new_session: true,
            death_signal: 0,
            cpus: &[],
            environment: Environment::Inherited,
        }
        .start()?;
        drop((read, said));
        let standing = Self { pid, line };
        match ready(answer) {
            Ok(()) => Ok(standing),
            Err(why) => {
                // One that is late all the same must not take the end of the pipe for an end of the run.
                standing.dismiss();
                Err(why)
            }
        }
    }

    /// One write, which the kernel does whole or not at all.
    fn say(&mut self, text: &str) {
        // A guard that is gone guards nothing, which harms nobody who ends by himself.
        drop(self.line.write_all(text.as_bytes()));
    }

    fn dismiss(mut self) {
        self.say("done\n");
        drop(self.line);
        // It ends at once; if not yet, whoever adopts it collects it.
        drop(try_wait(self.pid));
    }
}

/// Waits until the guard says that it reads; else what it says instead.
fn ready(mut answer: PipeReader) -> Result<(), GuardError> {
    let now_ms = || clock::now_ns(CLOCK_MONOTONIC) / 1_000_000;
    let until_ms = now_ms().saturating_add(READY_MS.into());
    let mut said = Vec::new();
    while said.len() < ANSWER_BYTES_MAX {
        let left_ms = until_ms.saturating_sub(now_ms());
        if left_ms <= 0 {
            return Err(GuardError::Late { s: READY_MS / 1000 });
        }
        let left_ms = i32::try_from(left_ms).unwrap_or(READY_MS);
        let there = wait_readable(&[answer.as_fd()], left_ms)?;
        if !there.contains(&true) {
            continue;
        }
        let mut bytes = [0; 256];
        match answer.read(&mut bytes).map_err(GuardError::Answer)? {
            0 => break,
            n => said.extend_from_slice(bytes.get(..n).unwrap_or_default()),
        }
        if said.starts_with(READY) {
            return Ok(());
        }
    }
    let said = String::from_utf8_lossy(&said);
    let first = said.lines().find(|l| !l.trim().is_empty()).unwrap_or("nothing");
    Err(GuardError::Ended { said: first.to_owned() })
}

/// The body of the hidden `trace-guard` verb: says to `output` that it stands, waits for the end of
/// `input`, then removes the instance `name`, unless it was told that there is nothing to do.
#[must_use]
pub fn guard_main(root: &Root, name: &str, input: impl Read, output: impl Write) -> u8 {
    guard(root, name, input, output, &mut sleep)
}

fn guard(
    root: &Root,
    name: &str,
    input: impl Read,
    mut output: impl Write,
    pause: &mut dyn FnMut(u64),
) -> u8 {
    if !name.starts_with(NAME_PREFIX) || name.contains('/') {
        return 2;
    }
    // Whoever does not hear it is gone, which the end of `input` tells.
    drop(output.write_all(READY).and_then(|()| output.flush()));
    drop(output);
    let Some(mut before) = told(input) else { return 0 };
    let Ok(tracefs) = Tracefs::find(root) else { return 3 };
    // Busy: other descriptors of a process that is ending are closed after its pipe, and somebody may still read the trace.
    let mut pauses = pauses(BUSY_MS);
    loop {
        let removed = take_down(&tracefs, name, &mut before);
        if removed.is_ok() && before.is_empty() {
            return 0;
        }
        let Some(ms) = pauses.next() else { return 3 };
        pause(ms);
    }
}

/// What is to be put back, in the order it was changed; `None`: nothing is left to do.
fn told(input: impl Read) -> Option<Vec<(String, String)>> {
    let mut input = BufReader::new(input);
    let mut before = Vec::new();
    loop {
        let mut line = Vec::new();
        let read = input.read_until(b'\n', &mut line);
        // The end; a line that was not told whole is of a setting that was not changed yet.
        let Some(line) = line.strip_suffix(b"\n").filter(|_| read.is_ok()) else {
            return Some(before);
        };
        let line = String::from_utf8_lossy(line);
        match line.split_once('=') {
            Some((path, value)) => before.push((path.to_owned(), value.to_owned())),
            None if line == "done" => return None,
            None => {}
        }
    }
}

/// Waits, for some seconds at most, for guards that are at work on `instances`: what they put back
/// is not to be taken for what somebody wants.
pub(super) fn wait_for_guards(root: &Root, instances: &[String]) {
    for ms in pauses(BUSY_MS) {
        if !instances.iter().any(|name| is_guarded(root, name)) {
            return;
        }
        sleep(ms);
    }
}

fn is_guarded(root: &Root, name: &str) -> bool {
    let words = format!("\0trace-guard\0{name}\0");
    let is_guard = |pid: &String| {
        pid.bytes().all(|b| b.is_ascii_digit())
            && root
                .bytes(&format!("/proc/{pid}/cmdline"), COMMAND_BYTES_MAX)
                .is_ok_and(|line| line.windows(words.len()).any(|w| w == words.as_bytes()))
    };
    root.list("/proc").unwrap_or_default().iter().any(is_guard)
}

/// Growing pauses, `all_ms` together.
fn pauses(all_ms: u64) -> impl Iterator<Item = u64> {
    let mut left_ms = all_ms;
    let growing = successors(Some(1), |ms| Some(u64::saturating_mul(*ms, 2).min(PAUSE_MS_MAX)));
    growing.map_while(move |ms| {
        let ms = ms.min(left_ms);
        left_ms = left_ms.saturating_sub(ms);
        (ms > 0).then_some(ms)
    })
}

fn sleep(ms: u64) {
    let ns = i64::try_from(ms).unwrap_or(i64::MAX).saturating_mul(1_000_000);
    clock::sleep_until(CLOCK_MONOTONIC, clock::now_ns(CLOCK_MONOTONIC).saturating_add(ns));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::fs;
    use std::path::PathBuf;

    use crate::tracefs::Instance;

    const NAME: &str = "tailbound-1-2";

    /// A tracefs with one instance and shared settings.
    struct Tree {
        _dir: tempfile::TempDir,
        root: Root,
        tracing: PathBuf,
    }

    impl Tree {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let tracing = dir.path().join("sys/kernel/tracing");
            for folder in ["osnoise", "instances", &format!("instances/{NAME}")] {
                fs::create_dir_all(tracing.join(folder)).unwrap();
            }
            fs::write(tracing.join("osnoise/cpus"), "1").unwrap();
            Self { root: Root::at(dir.path()), tracing, _dir: dir }
        }

        fn instance(&self) -> PathBuf {
            self.tracing.join("instances").join(NAME)
        }

        fn cpus(&self) -> String {
            fs::read_to_string(self.tracing.join("osnoise/cpus")).unwrap()
        }

        /// The guard, told `input`; what it answered and how often it paused.
        fn guard(&self, input: &str, pause: &dyn Fn(usize)) -> (u8, usize) {
            let pauses = RefCell::new(0);
            let mut said = Vec::new();
            let status = guard(&self.root, NAME, input.as_bytes(), &mut said, &mut |_ms| {
                *pauses.borrow_mut() += 1;
                pause(*pauses.borrow());
            });
            assert_eq!(said, READY);
            (status, pauses.into_inner())
        }
    }

    /// A guard whose pipe a test reads.
    fn guard_and_pipe() -> (Guard, PipeReader) {
        let (read, line) = pipe().unwrap();
        // Nobody's number: nothing is collected.
        let standing = Standing { pid: Pid(i32::MAX), line };
        (Guard { name: NAME.to_owned(), standing: Some(standing), absent: None }, read)
    }

    fn no_pause(n: usize) {
        panic!("pause {n}");
    }

    #[test]
    fn removes_what_is_left_and_nothing_else() {
        let tree = Tree::new();
        assert_eq!(tree.guard("osnoise/cpus=0-3\ndone\n", &no_pause).0, 0);
        assert!(tree.instance().exists(), "told that there is nothing to do");
        for other in ["../osnoise", "tailbound-/../x", "mine"] {
            assert_eq!(guard_main(&tree.root, other, &b""[..], Vec::new()), 2);
        }
        assert_eq!(tree.guard("osnoise/cpus=0-3\n", &no_pause).0, 0);
        assert!(!tree.instance().exists());
        assert_eq!(tree.cpus(), "0-3");
    }

    #[test]
    fn what_is_busy_at_first_is_tried_again() {
        let tree = Tree::new();
        let open = tree.instance().join("open");
        fs::write(&open, "").unwrap();
        let closes = |n| {
            if n == 3 {
                fs::remove_file(&open).unwrap();
            }
        };
        assert_eq!(tree.guard("osnoise/cpus=0-3\n", &closes), (0, 3));
        assert!(!tree.instance().exists());
        assert_eq!(tree.cpus(), "0-3");
    }

    #[test]
    fn what_stays_busy_is_left_after_some_seconds_with_the_settings_put_back() {
        let tree = Tree::new();
        fs::write(tree.instance().join("open"), "").unwrap();
        let (status, pauses) = tree.guard("osnoise/cpus=0-3\n", &|_| {});
        assert!(status == 3 && (10..100).contains(&pauses), "{status} {pauses}");
        assert_eq!(tree.cpus(), "0-3");
        assert_eq!(super::pauses(BUSY_MS).sum::<u64>(), BUSY_MS);
    }

    #[test]
    fn an_instance_that_was_never_made_is_gone() {
        let tree = Tree::new();
        fs::remove_dir(tree.instance()).unwrap();
        assert_eq!(tree.guard("", &no_pause), (0, 0));
    }

    #[test]
    fn a_line_that_was_cut_off_is_of_nothing_that_was_changed() {
        let tree = Tree::new();
        assert_eq!(tree.guard("osnoise/cpus=0-3\nosnoise/cpus=0", &no_pause).0, 0);
        assert_eq!(tree.cpus(), "0-3");
    }

    #[test]
    fn settings_are_told_before_they_are_written() {
        let tree = Tree::new();
        fs::remove_dir(tree.instance()).unwrap();
        let (guard, mut pipe) = guard_and_pipe();
        let tracefs = Tracefs::find(&tree.root).unwrap();
        let mut instance = Instance::guarded(tracefs, guard).unwrap();
        assert!(tree.instance().exists());
        instance.set_shared("osnoise/cpus", "0").unwrap();
        // As if it had been killed just before the write: these cannot be written.
        let refuses = tree.tracing.join("osnoise/refuses");
        std::os::unix::fs::symlink("/proc/version", refuses).unwrap();
        assert!(instance.set_shared("osnoise/refuses", "0").is_err());
        assert!(instance.set_option("osnoise/options", "WORD", "NO_WORD").is_err());
        let told = {
            let mut bytes = [0; 4096];
            let n = pipe.read(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes[..n]).into_owned()
        };
        let version = fs::read_to_string("/proc/version").unwrap();
        let version = version.trim();
        let all = format!("osnoise/cpus=1\nosnoise/refuses={version}\nosnoise/options=NO_WORD\n");
        assert_eq!(told, all);
        instance.remove().unwrap();
        assert!(!tree.instance().exists());
        assert_eq!(tree.cpus(), "1");
        let mut last = String::new();
        pipe.read_to_string(&mut last).unwrap();
        assert_eq!(last, "done\n");
    }

    #[test]
    fn a_guard_that_cannot_be_started_is_told_and_the_instance_is_made() {
        let tree = Tree::new();
        for (exe, why) in [("/nonexistent/tailbound", "execve"), ("/bin/true", "said: nothing")] {
            let tracefs = Tracefs::find(&tree.root).unwrap();
            let mut instance = Instance::make(tracefs, Some("x"), Path::new(exe)).unwrap();
            let absent = instance.unguarded().unwrap_or_default();
            assert!(absent.contains(why), "{absent}");
            assert!(tree.tracing.join("instances").join(instance.name()).exists());
            instance.remove().unwrap();
        }
        let wrong = Guard::start(Path::new("/bin/ls"), "/".to_owned());
        let absent = wrong.absent().unwrap_or_default();
        assert!(absent.contains("trace-guard"), "what it said: {absent}");
    }

    #[test]
    fn an_instance_that_is_there_already_keeps_its_own_guard() {
        let tree = Tree::new();
        let (guard, mut pipe) = guard_and_pipe();
        let tracefs = Tracefs::find(&tree.root).unwrap();
        assert!(Instance::guarded(tracefs, guard).is_err());
        let mut told = String::new();
        pipe.read_to_string(&mut told).unwrap();
        assert_eq!(told, "done\n", "the second guard does not remove it");
        assert!(tree.instance().exists());
    }

    #[test]
    fn a_guard_at_work_is_known_by_its_words() {
        let tree = Tree::new();
        let process = tree.root.path("/proc/41");
        fs::create_dir_all(&process).unwrap();
        fs::write(process.join("cmdline"), format!("tailbound\0trace-guard\0{NAME}\0")).unwrap();
        assert!(is_guarded(&tree.root, NAME));
        assert!(!is_guarded(&tree.root, "tailbound-1"));
        assert!(!is_guarded(&tree.root, "tailbound-1-23"));
    }
}
