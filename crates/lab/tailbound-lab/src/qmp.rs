// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU's control line.
//!
//! Units: ms of the host. One JSON object a line; answers are told from
//! events by their keys. Commands of the monitor touch no virtual CPU: what the guest
//! executes does not depend on when it is asked.
//! Source: QEMU docs/interop/qmp-spec.txt, qapi/misc.json, qapi/replay.json.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::error::{LabError, QemuError};

/// How long an answer may take: on a loaded host QEMU's main loop is not at once there.
const PATIENCE: Duration = Duration::from_secs(60);

/// Longest answer: registers of a processor, in words.
const LINE_BYTES_MAX: u64 = 4 << 20;
/// Most events that are kept until somebody asks.
const EVENTS_MAX: usize = 4096;

/// The line.
#[derive(Debug)]
pub(crate) struct Qmp {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
    partial: Vec<u8>,
    events: VecDeque<String>,
}

/// What waiting brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// An event.
    Event(String),
    /// Nothing in that time.
    Silence,
    /// QEMU is gone.
    Closed,
}

fn ended(command: &str) -> LabError {
    QemuError::Ended { command: command.to_owned() }.into()
}

impl Qmp {
    /// Greets and is greeted.
    pub(crate) fn new(stream: UnixStream) -> Result<Self, LabError> {
        let clone = stream.try_clone().map_err(QemuError::Connection)?;
        let lines = BufReader::new(clone);
        let mut qmp = Self { stream, lines, partial: Vec::new(), events: VecDeque::new() };
        qmp.answer("greeting", |v| v.get("QMP").is_some())?.ok_or_else(|| ended("greeting"))?;
        qmp.ask("qmp_capabilities", &json!({}))?;
        Ok(qmp)
    }

    /// Gives a command and waits for its answer.
    pub(crate) fn ask(&mut self, command: &str, arguments: &Value) -> Result<Value, LabError> {
        self.ask_who_may_end(command, arguments)?.ok_or_else(|| ended(command))
    }

    /// Lets the guest go. What it was to do may be done, and QEMU gone, before there is an answer: [`Self::hear`] tells that.
    pub(crate) fn go_on(&mut self) -> Result<(), LabError> {
        self.ask_who_may_end("cont", &json!({})).map(drop)
    }

    /// None: QEMU is gone.
    fn ask_who_may_end(
        &mut self,
        command: &str,
        arguments: &Value,
    ) -> Result<Option<Value>, LabError> {
        let text = json!({"execute": command, "arguments": arguments}).to_string() + "\n";
        self.stream
            .write_all(text.as_bytes())
            .map_err(|source| QemuError::Deaf { command: command.to_owned(), source })?;
        let is_it = |v: &Value| v.get("return").is_some() || v.get("error").is_some();
        let Some(answer) = self.answer(command, is_it)? else { return Ok(None) };
        match answer.get("error").and_then(|e| e.get("desc")).and_then(Value::as_str) {
            Some(why) => {
                let (command, why) = (command.to_owned(), why.to_owned());
                Err(QemuError::Refuses { command, why }.into())
            }
            None => Ok(Some(answer.get("return").cloned().unwrap_or_default())),
        }
    }

    /// Waits for something to happen.
    pub(crate) fn hear(&mut self, timeout: Duration) -> Heard {
        if let Some(event) = self.events.pop_front() {
            return Heard::Event(event);
        }
        let until = Instant::now() + timeout;
        loop {
            match self.read(until) {
                Ok(Some(value)) => {
                    if let Some(event) = value.get("event").and_then(Value::as_str) {
                        return Heard::Event(event.to_owned());
                    }
                }
                Ok(None) => return Heard::Silence,
                Err(()) => return Heard::Closed,
            }
        }
    }

    fn answer(
        &mut self,
        command: &str,
        is_it: impl Fn(&Value) -> bool,
    ) -> Result<Option<Value>, LabError> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.read(until) {
                Ok(Some(value)) if is_it(&value) => return Ok(Some(value)),
                Ok(Some(value)) => {
                    let event = value.get("event").and_then(Value::as_str).map(str::to_owned);
                    self.events.extend(event);
                    self.events.truncate(EVENTS_MAX);
                }
                Ok(None) => {
                    return Err(QemuError::Silent { command: command.to_owned() }.into());
                }
                Err(()) => return Ok(None),
            }
        }
    }

    /// One object; `None`: not by then; an error: the other side is gone.
    fn read(&mut self, until: Instant) -> Result<Option<Value>, ()> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.stream.set_read_timeout(Some(left)).map_err(drop)?;
            let room = LINE_BYTES_MAX.saturating_sub(self.partial.len() as u64);
            match (&mut self.lines).take(room).read_until(b'\n', &mut self.partial) {
                Ok(0) => return Err(()),
                Ok(_) if self.partial.ends_with(b"\n") => {
                    let line = std::mem::take(&mut self.partial);
                    if let Ok(value) = serde_json::from_slice(&line) {
                        return Ok(Some(value));
                    }
                }
                Ok(_) => return Err(()),
                // What was read before the time was over stays in `partial`.
                Err(e)
                    if matches!(
                        e.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) => {}
                Err(_) => return Err(()),
            }
        }
    }
}
