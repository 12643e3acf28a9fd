// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine that answers, for the time of a measurement: `tailbound box answer` here or over ssh.
//!
//! Units: ns. Its run file comes by its standard output, so that it is on this machine as far as it came, whatever ends
//! it. Its first line is written when it begins to answer: pulses are sent from then on.
//! Source: ssh(1).

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufReader, PipeWriter, Read as _, Seek as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::str::FromStr;

use tailbound_box::stimulus::StimulusPlan;
use tailbound_core::Run;
use tailbound_core::limits::CONSOLE_BYTES_MAX;
use tailbound_core::runfile::read_run;
use tailbound_sys::clock::{CLOCK_MONOTONIC, now_ns};
use tailbound_sys::environment::Environment;
use tailbound_sys::new_file::{Existing, NewFile};
use tailbound_sys::process::{self, Pid, SIGTERM};
use tailbound_sys::spawn::Spawn;
use tailbound_sys::{ipc, program};

use crate::error::StimulusError;
use crate::join::{join, refuse};

/// It answers so much longer than pulses are planned for.
const LONGER_NS: i64 = 10_000_000_000;
/// Until it answers: a connection, and the warm-up.
const BEGINS_WITHIN_NS: i64 = 60_000_000_000;
/// Until it has ended, beyond the time that it was to answer.
const ENDS_WITHIN_NS: i64 = 30_000_000_000;
const LOOK_MS: i32 = 50;
/// ssh(1): "ssh exits with the exit status of the remote command or with 255 if an error occurred".
const SSH_FAILED: i32 = 255;
/// Of a shell that finds no such program.
const NOT_FOUND: i32 = 127;

/// Where the answers are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerPlace {
    /// By this machine.
    Here,
    /// By a host of ssh that has `tailbound` in its PATH.
    Ssh(String),
}

/// A text that is no place of answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of here, ssh:HOST")]
pub struct UnknownPlace(String);

impl FromStr for AnswerPlace {
    type Err = UnknownPlace;

    fn from_str(text: &str) -> Result<Self, UnknownPlace> {
        match text.split_once(':') {
            None if text == "here" => Ok(Self::Here),
            // A host that begins so would be an option of ssh.
            Some(("ssh", host)) if !host.is_empty() && !host.starts_with('-') => {
                Ok(Self::Ssh(host.to_owned()))
            }
            _ => Err(UnknownPlace(text.to_owned())),
        }
    }
}

/// A program that answers; it ends with this value.
#[derive(Debug)]
pub struct Answerer {
    pid: Option<Pid>,
    place: String,
    said: NewFile,
    file: PathBuf,
    until_ns: i64,
    /// Of ssh: it answers until this is closed.
    asks: Option<PipeWriter>,
    status: Option<ExitStatus>,
}

impl Answerer {
    /// Starts it with `words` of `box answer` before ours, and waits until it answers; its run file is `file`, and what may have that name.
    ///
    /// # Errors
    /// It cannot be started, or ended at once: with its own words.
    pub fn begin(
        place: &AnswerPlace,
        words: &[String],
        plan: &StimulusPlan,
        file: &Path,
        existing: Existing,
    ) -> Result<Self, StimulusError> {
        let duration_ns = plan.duration_ns.saturating_add(LONGER_NS);
        let mut all: Vec<String> = ["box", "answer"].map(str::to_owned).into();
        all.extend_from_slice(words);
        let own = [
            "--interval",
            &format!("{}ns", plan.period_ns),
            "--duration",
            &format!("{duration_ns}ns"),
            "--quiet",
            "--out",
            "-",
        ];
        all.extend(own.map(str::to_owned));
        let at = place;
        let (path, arguments, place) = command(at, all)?;
        let refused = |reason: std::io::Error| StimulusError::Unreachable {
            place: file.display().to_string(),
            reason: reason.to_string(),
        };
        let mut run = NewFile::open(file, existing).map_err(refused)?;
        let (hears, asks) = match at {
            AnswerPlace::Here => (File::open("/dev/null").map_err(refused)?.into(), None),
            AnswerPlace::Ssh(_) => {
                let (hears, asks) = std::io::pipe().map_err(refused)?;
                (OwnedFd::from(hears), Some(asks))
            }
        };
        let folder = file.parent().unwrap_or(Path::new("."));
        // It never gets its name.
        let said = NewFile::open(&folder.join("answer.log"), Existing::Replace).map_err(refused)?;
        let child = Spawn {
            program: &path,
            arguments: &arguments,
            descriptors: &[(hears.as_fd(), 0), (run.file().as_fd(), 1), (said.file().as_fd(), 2)],
            pid_namespace: false,
            // Ctrl-C ends the pulses first.
            new_session: true,
            death_signal: SIGTERM,
            cpus: &[],
            environment: Environment::Inherited,
        };
        let begun_ns = now_ns(CLOCK_MONOTONIC);
        let pid = Some(child.start()?);
        // It has its own: the end of ours is the end of all.
        drop(hears);
        let mut this = Self {
            pid,
            place,
            said,
            file: file.to_owned(),
            until_ns: begun_ns.saturating_add(BEGINS_WITHIN_NS),
            asks,
            status: None,
        };
        while !has_line(run.file()) {
            if this.has_ended()? {
                return Err(this.refusal("it ended before it answered"));
            }
            if now_ns(CLOCK_MONOTONIC) >= this.until_ns {
                return Err(this.refusal("it did not begin to answer within a minute"));
            }
            ipc::wait_readable(&[], LOOK_MS)?;
        }
        run.place().map_err(refused)?;
        let answers_ns = duration_ns.saturating_add(ENDS_WITHIN_NS);
        this.until_ns = now_ns(CLOCK_MONOTONIC).saturating_add(answers_ns);
        Ok(this)
    }

    /// Its run file, which may be cut off; waits until it is whole where the pulses were sent as planned. The longest
    /// pulses of `run` are joined with its answers.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn finish(mut self, run: &mut Run) -> Result<PathBuf, StimulusError> {
        if !run.ended_as_planned() {
            self.end();
            self.until_ns = now_ns(CLOCK_MONOTONIC).saturating_add(ENDS_WITHIN_NS);
        }
        while !self.has_ended()? && now_ns(CLOCK_MONOTONIC) < self.until_ns {
            ipc::wait_readable(&[], LOOK_MS)?;
        }
        let file = std::mem::take(&mut self.file);
        let read = File::open(&file).map_err(|e| e.to_string());
        let read = read.and_then(|f| read_run(BufReader::new(f)).map_err(|e| e.to_string()));
        match read {
            Ok(answers) => join(run, &answers),
            Err(e) => refuse(run, &format!("the run file of who answered cannot be read: {e}")),
        }
        Ok(file)
    }

    fn has_ended(&mut self) -> Result<bool, StimulusError> {
        let Some(pid) = self.pid else { return Ok(true) };
        self.status = process::try_wait(pid)?;
        if self.status.is_some() {
            self.pid = None;
        }
        Ok(self.pid.is_none())
    }

    fn end(&mut self) {
        // Of ssh a signal would end the connection, and what the other side has yet to say were lost.
        if self.asks.take().is_none() {
            self.kill();
        }
    }

    fn kill(&self) {
        // It may have ended just now.
        drop(self.pid.map(|pid| process::kill(pid, SIGTERM)));
    }

    fn refusal(&self, what: &str) -> StimulusError {
        let mut said = Vec::new();
        let mut file = self.said.file();
        // What cannot be read back costs its words alone.
        drop(file.rewind().and_then(|()| file.take(CONSOLE_BYTES_MAX).read_to_end(&mut said)));
        let said = String::from_utf8_lossy(&said);
        let said = said.trim();
        let mut reason = if said.is_empty() { what.to_owned() } else { format!("{what}: {said}") };
        let code = self.status.and_then(|status| status.code());
        reason.push_str(match code.filter(|_| self.asks.is_some()) {
            Some(SSH_FAILED) => "\nssh itself failed: try `ssh -o BatchMode=yes` with this host; it may ask for nothing, so a key must be known to its agent",
            Some(NOT_FOUND) => "\nthat host has no `tailbound` in the PATH of a command by ssh: install it there",
            _ => "",
        });
        StimulusError::Unreachable { place: self.place.clone(), reason }
    }
}

impl Drop for Answerer {
    fn drop(&mut self) {
        self.asks = None;
        self.kill();
        if let Some(pid) = self.pid.take() {
            process::wait(pid);
        }
    }
}

fn has_line(run: &File) -> bool {
    let length = run.metadata().map_or(0, |m| m.len()).min(1 << 20);
    let mut begin = vec![0; usize::try_from(length).unwrap_or(0)];
    run.read_exact_at(&mut begin, 0).is_ok() && begin.contains(&b'\n')
}

/// Program, arguments, and what is started, for people.
fn command(
    place: &AnswerPlace,
    words: Vec<String>,
) -> Result<(PathBuf, Vec<OsString>, String), StimulusError> {
    match place {
        AnswerPlace::Here => {
            let exe = std::env::current_exe().map_err(|e| StimulusError::Unreachable {
                place: "box answer".to_owned(),
                reason: format!("this program is not to be found: {e}"),
            })?;
            Ok((exe, words.into_iter().map(OsString::from).collect(), "box answer".to_owned()))
        }
        AnswerPlace::Ssh(host) => {
            let ssh = program::find("ssh").map_err(|e| StimulusError::Unreachable {
                place: host.clone(),
                reason: e.to_string(),
            })?;
            let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            let remote = format!("exec sh -c {}", quoted(&remote(&words.join(" "))));
            let arguments = ["-o", "BatchMode=yes", "--", host, &remote].map(OsString::from);
            Ok((ssh, arguments.into(), format!("box answer at {host}")))
        }
    }
}

/// Runs `tailbound` at the other end until it has ended or the standard input is closed: a connection that breaks ends
/// it too, and what it says until then comes back.
fn remote(words: &str) -> String {
    format!(
        "exec 3<&0; tailbound {words} </dev/null 3<&- & p=$!; \
         {{ cat <&3; kill $p; }} >/dev/null 2>&1 & c=$!; \
         wait $p; s=$?; kill $c 2>/dev/null; exit $s"
    )
}

/// One word for the shell at the other end.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_here_or_a_host_and_no_option_of_ssh() {
        assert_eq!("here".parse(), Ok(AnswerPlace::Here));
        assert_eq!("ssh:root@board".parse(), Ok(AnswerPlace::Ssh("root@board".to_owned())));
        for text in ["", "ssh", "ssh:", "ssh:-oProxyCommand=x", "there", "here:"] {
            let refused = text.parse::<AnswerPlace>();
            assert_eq!(refused, Err(UnknownPlace(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn the_shell_at_the_other_end_sees_each_word_as_it_is() {
        assert_eq!(quoted("fifo:90"), "'fifo:90'");
        assert_eq!(quoted("a'; rm -rf /"), r"'a'\''; rm -rf /'");
    }
}
