// SPDX-License-Identifier: MIT OR Apache-2.0
//! One campaign, run: `campaign run` as a process of its own, which has the machine's lock.
//!
//! Context: COLD while it measures: this thread looks four times a second, another one tells the server now and then that
//! the machine is still there.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tailbound_core::printable;
use tailbound_host::machine_lock::MachineGuard;
use tailbound_series::campaign::folder;
use tailbound_sys::environment::Environment;
use tailbound_sys::process::{self, SIGTERM};
use tailbound_sys::signal::Signals;
use tailbound_sys::spawn::Spawn;

use crate::client::{Client, ClientError};
use crate::policy::Allowed;
use crate::spool::{Over, Piece};
use crate::wire::{Doing, Renewal, State, WORK};

/// Waiting for a signal, and looking at the child.
const LOOK_MS: i32 = 250;
/// What a campaign takes beside its runs' own time, and the share of that by which their lengths are exceeded.
const BESIDE: Duration = Duration::from_secs(120);
const SHARE: u32 = 10;
/// A child that was asked to end has so long to write its last lines.
const LAST: Duration = Duration::from_secs(30);
/// The server is told at least so often, unless its lease asks for more.
const RENEW_MOST: Duration = Duration::from_secs(60);
const RENEW_LEAST: Duration = Duration::from_secs(1);
/// The descriptor by which the child has the machine's lock.
const LOCK_FD: i32 = 3;
/// The descriptor by which it says what it makes, a line of JSON each time.
const DOING_FD: i32 = 4;
const LINE_CHARS: usize = 400;
/// Another run that has begun is told sooner than the rest, but not more often than this.
const TOLD_LEAST: Duration = Duration::from_secs(2);

/// What a run needs.
pub(crate) struct Job<'a> {
    pub(crate) program: &'a Path,
    pub(crate) piece: &'a Piece,
    pub(crate) allowed: &'a Allowed,
    pub(crate) held: &'a MachineGuard,
    pub(crate) client: &'a Arc<Client>,
    pub(crate) lease_s: u64,
}

/// How it went.
pub(crate) struct Ran {
    pub(crate) over: Over,
    /// This process was asked to end.
    pub(crate) interrupted: bool,
}

/// Runs it to its end; `note` gets each line that it says.
pub(crate) fn run(job: &Job<'_>, signals: &Signals, note: &mut dyn FnMut(&str)) -> io::Result<Ran> {
    let (said, write) = io::pipe()?;
    let (doing, write_doing) = io::pipe()?;
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    let arguments = words(job);
    let begun = Instant::now();
    let child = Spawn {
        program: job.program,
        arguments: &arguments,
        descriptors: &[
            (nothing.as_fd(), 0),
            (nothing.as_fd(), 1),
            (write.as_fd(), 2),
            (job.held.file().as_fd(), LOCK_FD),
            (write_doing.as_fd(), DOING_FD),
        ],
        pid_namespace: false,
        // Ctrl-C reaches this process alone, which hands it on once.
        new_session: true,
        death_signal: SIGTERM,
        cpus: &[],
        environment: Environment::Inherited,
    };
    let child = child.start().map_err(io::Error::other)?;
    // Its end is the end of what is said.
    drop((write, write_doing));
    let (to, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(said).lines().map_while(Result::ok) {
            if to.send(line).is_err() {
                break;
            }
        }
    });
    let talk = Talk::begin(job);
    talk.follow(doing);
    let longest = Duration::from_nanos(job.allowed.longest_ns.unsigned_abs());
    let longest = longest + longest / SHARE + BESIDE;
    let (mut last, mut why, mut asked) = (None, None, None::<Instant>);
    let mut interrupted = false;
    let status = loop {
        if let Some(status) = process::try_wait(child).map_err(io::Error::other)? {
            break status;
        }
        if signals.wait(LOOK_MS).is_some() {
            interrupted = true;
            why.get_or_insert_with(|| "the agent was ended".to_owned());
        }
        hear(&lines, &mut last, &talk, note);
        if begun.elapsed() > longest {
            why.get_or_insert_with(|| "it took longer than the owner allows".to_owned());
        }
        if let Some(stop) = talk.stop() {
            why.get_or_insert(stop);
        }
        match (why.is_some(), asked) {
            (true, None) => {
                asked = Some(Instant::now());
                // It may have ended just now.
                drop(process::kill(child, SIGTERM));
            }
            (true, Some(since)) if since.elapsed() > LAST => process::kill_session(child),
            _ => {}
        }
    };
    process::kill_session(child);
    drop(talk);
    // What it said last may come after its end.
    while let Ok(line) = lines.recv_timeout(Duration::from_millis(500)) {
        heard(line, &mut last, note);
    }
    Ok(Ran { over: over(job, status, why, last.as_deref()), interrupted })
}

fn words(job: &Job<'_>) -> Vec<OsString> {
    let order = &job.piece.taken.order;
    let mut words: Vec<OsString> = vec!["campaign".into(), "run".into()];
    words.push(job.piece.campaign().into());
    words.extend(["--out".into(), job.piece.out().into()]);
    // One word each: what a server writes is never an option.
    words.push(format!("--system={}", order.system).into());
    words.push(format!("--only={}", job.allowed.parts.join(",")).into());
    words.push(format!("--scale={}", order.scale).into());
    words.push(format!("--progress=/proc/self/fd/{DOING_FD}").into());
    words.extend(job.allowed.cpus.as_ref().map(|c| format!("--cpus={c}").into()));
    if job.allowed.commands {
        // The owner's policy is the consent that root is asked for.
        words.push("--yes".into());
    }
    words
}

/// The lines that are there, each told.
fn hear(
    lines: &Receiver<String>,
    last: &mut Option<String>,
    talk: &Talk,
    note: &mut dyn FnMut(&str),
) {
    for line in lines.try_iter() {
        heard(line, last, note);
        if let Some(line) = last {
            talk.say(line);
        }
    }
}

fn heard(line: String, last: &mut Option<String>, note: &mut dyn FnMut(&str)) {
    if !line.trim().is_empty() {
        note(&line);
        *last = Some(line);
    }
}

/// How it ended: by the run files that are there; why it is not complete is in the child's own words.
fn over(job: &Job<'_>, status: ExitStatus, why: Option<String>, last: Option<&str>) -> Over {
    // The status is of the whole campaign (5: others are open, 1: a claim does not hold); this piece is its own runs.
    let files = job.piece.files();
    let is_there = |p: &&String| files.get(*p).is_some_and(|file| folder::is_complete(file));
    let open = job.allowed.parts.iter().find(|p| !is_there(p));
    let own = open.and_then(|p| Some(format!("{p}: {}", job.piece.failed(p)?.trim())));
    let complete = why.is_none() && open.is_none();
    let reason = (!complete).then(|| {
        let said = own.or_else(|| last.map(str::to_owned));
        let said = said.unwrap_or_else(|| "it said nothing".to_owned());
        why.unwrap_or_else(|| format!("{said} ({})", process::ended(status)))
    });
    Over { complete, reason: reason.map(|r| printable::excerpt(&r, LINE_CHARS)) }
}

/// What is said to the server.
#[derive(Default)]
struct Says {
    line: Option<String>,
    doing: Option<Doing>,
}

/// Tells the server that the machine is still there, in a thread of its own: an answer may take its time.
struct Talk {
    says: Arc<Mutex<Says>>,
    stop: Arc<Mutex<Option<String>>>,
    /// A message: look at once, there is something to be told, or it is over.
    soon: Sender<()>,
    over: Arc<AtomicBool>,
}

impl Drop for Talk {
    fn drop(&mut self) {
        // An answer that is still under way is of no use to anybody.
        self.over.store(true, Ordering::Relaxed);
        let _ended = self.soon.send(());
    }
}

impl Talk {
    fn begin(job: &Job<'_>) -> Self {
        let (says, stop) = (Arc::<Mutex<Says>>::default(), Arc::new(Mutex::new(None)));
        let (soon, asked) = mpsc::channel();
        let quarter = Duration::from_secs(job.lease_s) / 4;
        let every = quarter.clamp(RENEW_LEAST, RENEW_MOST);
        let (client, id) = (Arc::clone(job.client), job.piece.id().to_owned());
        let lease = job.piece.taken.lease.clone();
        let (said, stops) = (Arc::clone(&says), Arc::clone(&stop));
        let is_over = Arc::<AtomicBool>::default();
        let over = Arc::clone(&is_over);
        std::thread::spawn(move || {
            while paused(&asked, every) && !over.load(Ordering::Relaxed) {
                let (progress, doing) = {
                    let said = said.lock().unwrap_or_else(PoisonError::into_inner);
                    (said.line.clone(), said.doing.clone())
                };
                let renewal = Renewal { lease: lease.clone(), progress, doing };
                let told: Result<serde_json::Value, ClientError> =
                    client.post(&format!("{WORK}/{id}/renew"), &renewal);
                // Who does not answer is asked again; the run goes on.
                let why = match told.err().as_ref().map(|e| (e.state(), e.may_pass())) {
                    None | Some((None, true)) => continue,
                    Some((Some(State::Cancelled), _)) => "an operator took it back",
                    Some((Some(State::Lost), _)) => "the lease was lost",
                    Some(_) => "the server does not know this work any more",
                };
                *stops.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.to_owned());
                break;
            }
        });
        Self { says, stop, soon, over: is_over }
    }

    fn say(&self, line: &str) {
        let line = printable::excerpt(line, LINE_CHARS);
        self.says.lock().unwrap_or_else(PoisonError::into_inner).line = Some(line);
    }

    /// Follows what the run says of itself, to its end. A run that began is told soon.
    fn follow(&self, doing: io::PipeReader) {
        let (says, soon) = (Arc::clone(&self.says), self.soon.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(doing).lines().map_while(Result::ok) {
                let Ok(doing) = serde_json::from_str::<Doing>(&line) else { continue };
                let mut says = says.lock().unwrap_or_else(PoisonError::into_inner);
                let is_other = says.doing.as_ref().is_none_or(|d| d.part != doing.part);
                says.doing = Some(doing);
                drop(says);
                if is_other && soon.send(()).is_err() {
                    break;
                }
            }
        });
    }

    fn stop(&self) -> Option<String> {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Waits for `every`, or less where something is to be told soon. `false`: it is over.
fn paused(asked: &Receiver<()>, every: Duration) -> bool {
    let begun = Instant::now();
    match asked.recv_timeout(every) {
        Err(RecvTimeoutError::Disconnected) => return false,
        Err(RecvTimeoutError::Timeout) => return true,
        Ok(()) => {}
    }
    loop {
        let left = TOLD_LEAST.min(every).saturating_sub(begun.elapsed());
        match asked.recv_timeout(left) {
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => return true,
            Ok(()) => {}
        }
    }
}
