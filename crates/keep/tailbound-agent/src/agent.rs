// SPDX-License-Identifier: MIT OR Apache-2.0
//! The agent: asks, looks at what it is asked for, refuses or runs it, and hands in what came of it.
//!
//! Every step is an idempotent request to the server, spooled before sending: an interrupted step is
//! resumed, and a run that was begun is never begun again.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::read::GzEncoder;
use tailbound_core::cpus::CpuSet;
use tailbound_core::limits::TEXT_BYTES_MAX;
use tailbound_core::printable;
use tailbound_host::machine_lock as machine;
use tailbound_sys::given;
use tailbound_sys::signal::Signals;

use crate::child::{self, Job};
use crate::client::{Client, ClientError, RunBytes, Server};
use crate::policy::{Policy, PolicyError};
use crate::spool::{OrderLease, Over, Piece, Spool, SpoolError};
use crate::wire::{
    Added, Ask, End, LeaseGrant, Next, Order, PLAIN_RUN_BYTES_MAX, PROTOCOL, PartRun, Refusal,
    SENT_RUN_BYTES_MAX, State, Take, WORK, number,
};

/// The server may wait so long for work before it answers.
const WAIT_S: u32 = 30;
/// After a failure, and doubled with each further one.
const PAUSE_LEAST: Duration = Duration::from_secs(1);
/// An answer without work that comes sooner is one of a server that does not wait.
const SOON: Duration = Duration::from_secs(1);
const LOOK_MS: i32 = 250;
const REASON_CHARS: usize = 600;

/// What an agent is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whom it asks.
    pub server: Server,
    /// The owner's file, instead of the usual one.
    pub policy: Option<PathBuf>,
    /// Where it keeps what it has.
    pub spool: PathBuf,
    /// The longest pause between two questions.
    pub every: Duration,
    /// One question, and what comes of it.
    pub once: bool,
    /// This program, which is started for each campaign.
    pub program: PathBuf,
}

/// Why an agent cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Server, token or authorities.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// The owner's file.
    #[error("{0}")]
    Policy(#[from] PolicyError),
    /// The spool.
    #[error("{0}")]
    Spool(#[from] SpoolError),
    /// Something of the machine.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// With `once`: the machine is not free.
    #[error("held: {0}")]
    Held(String),
}

/// What an agent did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Pieces of work whose runs are complete and handed in.
    pub done: u32,
    /// Those that ended otherwise, and were handed in.
    pub not_complete: u32,
    /// Those that the owner does not allow.
    pub refused: u32,
    /// What is in the spool still.
    pub left: usize,
}

/// What became of a piece of the spool.
enum Went {
    /// It is not there any more.
    Away,
    /// It stays; the same later, when the server answers.
    Later(String),
    /// It stays, until whoever has the machine gives it back.
    Held(String),
    /// It stays, and this process was asked to end.
    Interrupted,
}

struct Agent<'a> {
    settings: &'a Settings,
    client: Arc<Client>,
    spool: Spool,
    signals: &'a Signals,
    note: &'a mut dyn FnMut(&str),
    summary: Summary,
    told: String,
}

/// Asks for work until a signal comes, or once. `note` gets what people should know, a line at a time.
///
/// # Errors
/// What was given cannot be used; or with `once`, what keeps it from asking.
pub fn run(
    settings: &Settings,
    signals: &Signals,
    note: &mut dyn FnMut(&str),
) -> Result<Summary, AgentError> {
    let policy = Policy::read(settings.policy.as_deref())?;
    let client = Arc::new(Client::open(&settings.server)?);
    let spool = Spool::open(&settings.spool)?;
    let by = policy.file.as_ref().map_or_else(
        || "no policy file: measures beside harmless loads and changes nothing".to_owned(),
        |f| format!("policy {}", f.display()),
    );
    note(&format!("asks {} for work; {by}", client.base()));
    let summary = Summary::default();
    let told = String::new();
    Agent { settings, client, spool, signals, note, summary, told }.all()
}

impl Agent<'_> {
    fn all(mut self) -> Result<Summary, AgentError> {
        let mut pause = Duration::ZERO;
        loop {
            let begun = Instant::now();
            let trouble = match self.round() {
                Ok(None) => return self.end(),
                Ok(Some(trouble)) => trouble,
                Err(AgentError::Client(e)) if !self.settings.once && e.may_pass() => e.to_string(),
                Err(e) => return Err(e),
            };
            if self.settings.once {
                return match trouble.is_empty() {
                    true => self.end(),
                    false => Err(AgentError::Held(trouble)),
                };
            }
            self.tell(&trouble);
            pause = match trouble.is_empty() {
                true if begun.elapsed() >= SOON => Duration::ZERO,
                true => PAUSE_LEAST,
                false => (pause * 2).clamp(PAUSE_LEAST, self.settings.every),
            };
            if !pause.is_zero() && self.waited(jittered(pause.min(self.settings.every))) {
                return self.end();
            }
        }
    }

    fn end(mut self) -> Result<Summary, AgentError> {
        self.summary.left = self.spool.pieces()?.len();
        Ok(self.summary)
    }

    /// Says why nothing goes on, once for each reason.
    fn tell(&mut self, trouble: &str) {
        if trouble != self.told {
            trouble.clone_into(&mut self.told);
            if !trouble.is_empty() {
                (self.note)(trouble);
            }
        }
    }

    /// Waits; was it asked to end?
    fn waited(&self, span: Duration) -> bool {
        let ms = i32::try_from(span.as_millis()).unwrap_or(i32::MAX);
        self.signals.wait(ms).is_some()
    }

    /// One look at the spool, and one question. `None`: asked to end. Otherwise why it did not get on, or nothing.
    fn round(&mut self) -> Result<Option<String>, AgentError> {
        let mut held = machine::reserved();
        for piece in self.spool.pieces()? {
            let piece = match piece {
                Ok(piece) => piece,
                Err(e) => {
                    (self.note)(&format!("work that cannot be read is kept aside: {e}"));
                    continue;
                }
            };
            match self.piece(piece)? {
                Went::Away => {}
                Went::Held(who) => held = Some(who),
                // Nothing new while something old cannot be told.
                Went::Later(why) => return Ok(Some(why)),
                Went::Interrupted => return Ok(None),
            }
        }
        let Some(next) = self.asked(held.clone())? else { return Ok(None) };
        if let Some(order) = next.work {
            let piece = self.spool.add(OrderLease { lease: number()?, order: checked(order)? })?;
            return match self.piece(piece)? {
                Went::Away => Ok(Some(String::new())),
                Went::Later(why) | Went::Held(why) => Ok(Some(why)),
                Went::Interrupted => Ok(None),
            };
        }
        Ok(Some(held.unwrap_or_default()))
    }

    /// Asks for work. `None`: asked to end meanwhile.
    fn asked(&self, held: Option<String>) -> Result<Option<Next>, AgentError> {
        let wait_s = if self.settings.once || held.is_some() { 0 } else { WAIT_S };
        let ask = ask(held, wait_s)?;
        let client = Arc::clone(&self.client);
        let (to, answer) = mpsc::channel();
        std::thread::spawn(move || {
            let wait = Duration::from_secs(wait_s.into());
            // Whoever asked may have ended.
            drop(to.send(client.ask::<Next>(WORK, &query(&ask), wait)));
        });
        loop {
            match answer.recv_timeout(Duration::ZERO) {
                Ok(next) => {
                    let next = next.map_err(|e| self.older(e))?;
                    if next.protocol != PROTOCOL {
                        let why = format!(
                            "it speaks version {} of the agents' protocol, and this agent {PROTOCOL}: update the older one",
                            next.protocol
                        );
                        return Err(ClientError::Foreign {
                            base: self.client.base().to_owned(),
                            why,
                        }
                        .into());
                    }
                    return Ok(Some(next));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("asking ended without an answer").into());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.signals.wait(LOOK_MS).is_some() {
                return Ok(None);
            }
        }
    }

    /// A server of before there were agents has no such page.
    fn older(&self, e: ClientError) -> ClientError {
        match e {
            ClientError::Said { status: 404 | 405, .. } => ClientError::Foreign {
                base: self.client.base().to_owned(),
                why: "it has no work for agents: its tailbound is older, or it is another program"
                    .to_owned(),
            },
            e => e,
        }
    }

    /// Goes on with a piece, wherever it is.
    fn piece(&mut self, piece: Piece) -> Result<Went, AgentError> {
        if let Some(over) = piece.over()? {
            return self.hand_in(piece, &over);
        }
        if piece.has_begun() {
            // What was run may be there still, and has the lock then.
            match machine::take() {
                Err(e) => return Ok(Went::Held(e.to_string())),
                Ok(_held) => {}
            }
            let reason = "the agent, or the machine, ended during the run".to_owned();
            let over = Over { complete: false, reason: Some(reason) };
            piece.end(&over)?;
            return self.hand_in(piece, &over);
        }
        self.begin(piece)
    }

    /// Looks at what it is asked for, takes it, and runs it.
    fn begin(&mut self, piece: Piece) -> Result<Went, AgentError> {
        let order = &piece.taken.order;
        let allowed = Policy::read(self.settings.policy.as_deref())
            .map_err(|e| format!("the owner's policy cannot be used: {}", e.why))
            .and_then(|policy| policy.allows(order).map_err(|e| e.to_string()));
        let at = format!("{WORK}/{}", piece.id());
        let allowed = match allowed {
            Ok(allowed) => allowed,
            Err(reason) => {
                let reason = printable::excerpt(&reason, REASON_CHARS);
                (self.note)(&format!("work {} is refused: {reason}", piece.id()));
                let told = self.client.post(&format!("{at}/refuse"), &Refusal { reason });
                if let Settlement::Open(why) = Settlement::of(told)? {
                    return Ok(Went::Later(why.to_string()));
                }
                self.summary.refused += 1;
                piece.remove()?;
                return Ok(Went::Away);
            }
        };
        let held = match machine::take() {
            Ok(held) => held,
            Err(e) => return Ok(Went::Held(e.to_string())),
        };
        let take = Take { lease: piece.taken.lease.clone() };
        let taken = match self.client.post::<LeaseGrant>(&format!("{at}/take"), &take) {
            Ok(taken) => taken,
            // The server may have heard it: the same again.
            Err(e) if e.may_pass() => return Ok(Went::Later(e.to_string())),
            Err(e) => {
                (self.note)(&format!("work {} is not to be had: {e}", piece.id()));
                piece.remove()?;
                return Ok(Went::Away);
            }
        };
        piece.begin()?;
        (self.note)(&format!("work {}: {} begins", piece.id(), allowed.name));
        let job = Job {
            program: &self.settings.program,
            piece: &piece,
            allowed: &allowed,
            held: &held,
            client: &self.client,
            lease_s: taken.lease_s,
        };
        let (over, interrupted) = match child::run(&job, self.signals, self.note) {
            Ok(ran) => (ran.over, ran.interrupted),
            Err(e) => (Over { complete: false, reason: Some(e.to_string()) }, false),
        };
        piece.end(&over)?;
        drop(held);
        let went = self.hand_in(piece, &over)?;
        Ok(if interrupted { Went::Interrupted } else { went })
    }

    /// Hands in the run files, and says that it is over.
    fn hand_in(&mut self, piece: Piece, over: &Over) -> Result<Went, AgentError> {
        let mut sent = piece.sent()?;
        let mut refused = None;
        for (part, file) in piece.files() {
            if sent.contains_key(&part) {
                continue;
            }
            let packed = packed(&file, [PLAIN_RUN_BYTES_MAX, SENT_RUN_BYTES_MAX])?;
            match packed.and_then(|bytes| self.client.hand_in::<Added>(&bytes)) {
                Ok(added) => {
                    sent.insert(part, added.run);
                    piece.keep_sent(&sent)?;
                }
                Err(e) if e.may_pass() => return Ok(Went::Later(e.to_string())),
                Err(e) => refused = Some(format!("{part}: {e}")),
            }
        }
        let made =
            |(part, run): (&String, &String)| PartRun { part: part.clone(), run: run.clone() };
        let reason = over.reason.clone().or_else(|| refused.clone());
        let end = End {
            lease: piece.taken.lease.clone(),
            complete: over.complete && refused.is_none(),
            reason,
            runs: sent.iter().map(made).collect(),
        };
        let id = piece.id().to_owned();
        let told = self.client.post(&format!("{WORK}/{id}/end"), &end);
        let but = match Settlement::of(told)? {
            Settlement::Taken => String::new(),
            Settlement::Useless(is) => format!("; the server says that it {is}"),
            Settlement::Open(why) => return Ok(Went::Later(why.to_string())),
        };
        let why = end.reason.as_ref().map_or_else(String::new, |r| format!(": {r}"));
        let how = if end.complete { "complete" } else { "not complete" };
        (self.note)(&format!("work {id} is handed in, {how}{why}{but}"));
        match end.complete {
            true => self.summary.done += 1,
            false => self.summary.not_complete += 1,
        }
        if refused.is_some() {
            let kept = piece.put_aside()?;
            (self.note)(&format!("what the server did not take is in {}", kept.display()));
        } else {
            piece.remove()?;
        }
        Ok(Went::Away)
    }
}

/// What the server makes of something that it was told about a work.
enum Settlement {
    /// It took it.
    Taken,
    /// It is of no use any more; what the server says of the work.
    Useless(&'static str),
    /// It has to be told again.
    Open(ClientError),
}

impl Settlement {
    /// By the server's answer.
    fn of(told: Result<serde_json::Value, ClientError>) -> Result<Self, AgentError> {
        match told {
            Ok(_) => Ok(Self::Taken),
            Err(e) if e.may_pass() => Ok(Self::Open(e)),
            Err(e) => match (e.state(), &e) {
                (Some(State::Lost), _) => Ok(Self::Useless("was lost meanwhile")),
                (Some(State::Cancelled), _) => Ok(Self::Useless("was taken back")),
                (Some(_), _) => Ok(Self::Useless("is not this agent's")),
                (None, ClientError::Said { status: 404, .. }) => Ok(Self::Useless("is not known")),
                (None, _) => Err(e.into()),
            },
        }
    }
}

/// What an agent says of its machine when it asks.
fn ask(held: Option<String>, wait_s: u32) -> io::Result<Ask> {
    let line = |path: &str| fs::read_to_string(path).map(|t| t.trim().to_owned());
    let cpus: Option<CpuSet> =
        line("/sys/devices/system/cpu/online").ok().and_then(|list| list.parse().ok());
    Ok(Ask {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        // Linux 6.1; before, what this program was made for.
        architecture: line("/proc/sys/kernel/arch")
            .unwrap_or_else(|_| std::env::consts::ARCH.to_owned()),
        kernel: line("/proc/sys/kernel/osrelease")?,
        cpus: cpus.and_then(|c| u32::try_from(c.len()).ok()),
        held,
        wait_s,
    })
}

fn query(ask: &Ask) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("protocol", ask.protocol.to_string()),
        ("version", ask.version.clone()),
        ("architecture", ask.architecture.clone()),
        ("kernel", ask.kernel.clone()),
        ("wait_s", ask.wait_s.to_string()),
    ];
    all.extend(ask.cpus.map(|n| ("cpus", n.to_string())));
    all.extend(ask.held.clone().map(|h| ("held", h)));
    all
}

/// Its identity names a folder.
fn checked(order: Order) -> Result<Order, ClientError> {
    let id = &order.id;
    // In the spool it is text of JSON, which is at most six times as long.
    let fits = order.campaign.len() as u64 <= TEXT_BYTES_MAX / 8;
    if fits && (1..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(order);
    }
    let why = "the identity of its work is no number, or its campaign too long".to_owned();
    Err(ClientError::Foreign { base: "the server".to_owned(), why })
}

/// Somewhat less or more, so that machines that were started together do not ask together.
fn jittered(span: Duration) -> Duration {
    let mut byte = [128u8; 1];
    // Without random bytes all wait the same.
    let _same = getrandom::fill(&mut byte);
    let [byte] = byte;
    // Three quarters to five quarters.
    span * 3 / 4 + span * u32::from(byte) / 512
}

/// A run file, packed; or that no server takes it. `plain_max` and `packed_max` are how many bytes one takes.
fn packed(
    path: &Path,
    [plain_max, packed_max]: [u64; 2],
) -> io::Result<Result<Vec<u8>, ClientError>> {
    let too_large = |kind: RunBytes, most: u64| Ok(Err(ClientError::TooLarge { kind, most }));
    let file: File = given::open(path)?;
    if file.metadata()?.len() > plain_max {
        return too_large(RunBytes::Plain, plain_max);
    }
    let mut bytes = Vec::new();
    GzEncoder::new(file, Compression::default()).take(packed_max + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > packed_max {
        true => too_large(RunBytes::Packed, packed_max),
        false => Ok(Ok(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::number;

    #[test]
    fn a_run_file_that_no_server_takes_is_told_with_its_measure() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tailbound.jsonl");
        let random: String = (0..100).map(|_| number().unwrap()).collect();
        fs::write(&path, &random).unwrap();
        assert!(packed(&path, [4096, 4096]).unwrap().is_ok());
        for (limits, words) in [([4096, 1000], "packed"), ([3199, 4096], "unpacked")] {
            let e = packed(&path, limits).unwrap().unwrap_err();
            assert!(!e.may_pass() && e.to_string().contains(words), "{e}");
        }
    }
}
