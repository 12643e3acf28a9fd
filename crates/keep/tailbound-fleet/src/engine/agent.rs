// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine for machines that nobody reaches: work is handed out by a server, which the machine's own agent asks.
//!
//! One piece of work for each run. Its identity is noted before it is handed out, so that a fleet run that was
//! cut off finds it again instead of having it done twice.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tailbound_agent::client::{Client, ClientError, Server};
use tailbound_agent::wire::{Agents, Batch, HandOut, PartRun, State, Status, WORK, number};
use tailbound_series::campaign::{self, Folder, folder};
use tailbound_sys::new_file::{self, Existing};

use super::kept::{is_complete, read, write};
use super::target::Target;
use super::{Engine, EngineError, Facts, Lease, Load, Placed, Power, Task};

const HANDING_OUT: &str = "handing it out";
const FETCHING: &str = "getting the run";
/// A server that does not answer for longer ends a fleet run; what it has handed out stays.
const PATIENCE: Duration = Duration::from_secs(600);
const LOOK_LEAST: Duration = Duration::from_millis(500);
const LOOK_MOST: Duration = Duration::from_secs(5);
/// An agent asks at least so often.
const SILENT_S: u64 = 180;

pub(super) struct Agent {
    target: Target,
    server: Server,
    system: String,
}

/// What was handed out for a run, beside the results.
#[derive(Serialize, Deserialize)]
struct Note {
    id: String,
}

impl Agent {
    pub(super) fn of(target: &Target, server: &Server, system: &str) -> Self {
        Self { target: target.clone(), server: server.clone(), system: system.to_owned() }
    }

    fn client(&self) -> Result<Client, EngineError> {
        Client::open(&self.server).map_err(|e| EngineError::failed("asking the server", e))
    }

    /// Asks until the server answers, or has not for too long.
    fn patient<T>(
        &self,
        what: &'static str,
        heard: &mut dyn FnMut(&str),
        ask: &mut dyn FnMut() -> Result<T, ClientError>,
    ) -> Result<T, EngineError> {
        let (begun, mut pause, mut told) = (Instant::now(), LOOK_LEAST, false);
        loop {
            match ask() {
                Ok(answer) => return Ok(answer),
                // A token does not become valid by waiting.
                Err(e @ ClientError::Said { status: 401 | 403, .. }) => {
                    return Err(EngineError::failed(what, e));
                }
                Err(e) if e.may_pass() && begun.elapsed() < PATIENCE => {
                    if !told {
                        heard(&format!("{e}; asked again"));
                        told = true;
                    }
                }
                Err(e) => return Err(EngineError::failed(what, e)),
            }
            std::thread::park_timeout(pause);
            pause = (pause * 2).min(LOOK_MOST);
        }
    }

    /// Waits until the work is over.
    fn watched(
        &self,
        client: &Client,
        id: &str,
        heard: &mut dyn FnMut(&str),
    ) -> Result<Status, EngineError> {
        let (mut last, mut pause) = (None, LOOK_LEAST);
        loop {
            let path = format!("{WORK}/{id}");
            let status: Status = self
                .patient("asking for the work", heard, &mut || client.get(&path, Duration::ZERO))?;
            if !matches!(status.state, State::Waiting | State::Running) {
                return Ok(status);
            }
            let said = match (&status.state, &status.progress) {
                (State::Waiting, _) => "waits for the machine's agent".to_owned(),
                (_, Some(progress)) => progress.clone(),
                (_, None) => "the agent has it".to_owned(),
            };
            if last.as_ref() != Some(&said) {
                heard(&said);
                last = Some(said);
                pause = LOOK_LEAST;
            }
            std::thread::park_timeout(pause);
            pause = (pause * 2).min(LOOK_MOST);
        }
    }

    /// Brings a run file here, whole.
    fn fetch(
        &self,
        client: &Client,
        made: &PartRun,
        to: &Path,
        heard: &mut dyn FnMut(&str),
    ) -> Result<(), EngineError> {
        let bytes = self.patient(FETCHING, heard, &mut || client.file(&made.run))?;
        let hash: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
        if hash != made.run {
            return Err(EngineError::failed(FETCHING, "it did not come whole"));
        }
        new_file::write(to, Existing::Replace, &bytes).map_err(|e| EngineError::file(to, e))
    }

    /// The folder of the machine's runs.
    fn settled(&self, task: &Task<'_>) -> Result<PathBuf, EngineError> {
        let what = "the folder of results";
        let wrong = |e: &dyn std::fmt::Display| EngineError::failed(what, e);
        let chosen = campaign::parse("the campaign", task.load.campaign.to_owned())
            .map_err(|e| wrong(&e))?;
        let results =
            Folder::settle(task.load.folder, &chosen, Existing::Keep).map_err(|e| wrong(&e))?;
        results.system(&self.target.name).map_err(|e| wrong(&e))
    }
}

impl Engine for Agent {
    fn list(&self, _: Option<&Lease>) -> Result<Facts, EngineError> {
        let what = "asking the server for the machine";
        let known: Agents = self
            .client()?
            .get("/api/v1/agents", Duration::ZERO)
            .map_err(|e| EngineError::failed(what, e))?;
        let agent = known.agents.into_iter().find(|a| a.system == self.system);
        let agent = agent.ok_or_else(|| {
            let why = format!("no agent of `{}` was heard of since the server began", self.system);
            EngineError::failed(what, why)
        })?;
        if agent.seen_s_ago > SILENT_S {
            let why = format!("its agent is silent for {} minutes", agent.seen_s_ago / 60);
            return Err(EngineError::failed(what, why));
        }
        let cpus = agent.said.cpus;
        Ok(Facts {
            architecture: agent.said.architecture,
            kernel: agent.said.kernel,
            cpus: cpus.ok_or_else(|| EngineError::failed(what, "it cannot say its CPUs"))?,
            home: String::new(),
            held: agent.said.held,
        })
    }

    fn reserve(&self, _: &mut dyn FnMut(&str)) -> Result<Lease, EngineError> {
        self.list(None).map(|_| Lease::Agent)
    }

    fn put(&self, _: &Lease, _: &Facts, load: &Load<'_>) -> Result<Placed, EngineError> {
        // The machine has its own program, and the campaign travels with each piece of work.
        let campaign = load.folder.join(folder::FILE).display().to_string();
        Ok(Placed { program: None, campaign, folder: load.folder.display().to_string() })
    }

    fn run(
        &self,
        _: &mut Lease,
        task: &Task<'_>,
        heard: &mut dyn FnMut(&str),
    ) -> Result<i32, EngineError> {
        let system = self.settled(task)?;
        let file = folder::run_file(&system, task.part);
        if is_complete(&file) {
            heard("it is complete already");
            return Ok(0);
        }
        let client = self.client()?;
        let noted = task.load.notes.join(format!("{}.work", task.part));
        let note = if noted.exists() {
            read::<Note>(&noted)?
        } else {
            Note { id: number().map_err(|e| EngineError::failed(HANDING_OUT, e))? }
        };
        write(&noted, &note)?;
        let order = HandOut {
            id: note.id,
            system: self.system.clone(),
            campaign: task.load.campaign.to_owned(),
            parts: vec![task.part.to_owned()],
            scale: task.scale,
            cpus: self.target.cpus.clone(),
            batch: Some(Batch { id: task.load.identity.to_owned(), at: task.at, of: task.of }),
        };
        let _there: serde_json::Value =
            self.patient(HANDING_OUT, heard, &mut || client.post(WORK, &order))?;
        let status = self.watched(&client, &order.id, heard)?;
        let reason = status.reason.unwrap_or_else(|| "it says no reason".to_owned());
        let ended = match status.state {
            State::Done | State::Failed => {
                match status.runs.iter().find(|m| m.part == task.part) {
                    Some(made) => {
                        self.fetch(&client, made, &file, heard)?;
                        folder::forget_failed(&system, task.part);
                    }
                    None => folder::keep_failed(&system, task.part, &reason)
                        .map_err(|e| EngineError::failed(FETCHING, e))?,
                }
                Ok(if status.state == State::Done { 0 } else { 5 })
            }
            State::Refused => Err(EngineError::Refused(reason)),
            State::Lost => Err(EngineError::Lost(reason)),
            State::Cancelled => Err(EngineError::failed(HANDING_OUT, "an operator took it back")),
            State::Waiting | State::Running | State::Unknown => Err(EngineError::failed(
                HANDING_OUT,
                "the server is of a later version: update this one",
            )),
        };
        // Whoever asks again gets new work: this one is told.
        new_file::remove(&noted).map_err(|e| EngineError::file(&noted, e))?;
        ended
    }

    fn get(&self, _: &Lease, _: &Placed, _: &Load<'_>) -> Result<(), EngineError> {
        // Each run comes when it is over.
        Ok(())
    }

    fn power(&self, _: Power, _: &mut dyn FnMut(&str)) -> Result<(), EngineError> {
        let what = "control of the machine's power";
        Err(EngineError::Cannot { engine: self.target.reach.engine(), what })
    }
}
