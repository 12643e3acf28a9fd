// SPDX-License-Identifier: MIT OR Apache-2.0
//! A board brought into a state by a strategy of labgrid: what boots the kernel of your choice.
//!
//! `labgrid-client --state STATE export -`: it makes the transition, prints what its drivers know, and waits. It is
//! let wait while the board is held, as drivers (of QEMU, of a boot by network) serve the board until it ends. When our end of a
//! pipe closes, it is ended. Source: labgrid-client(1) of labgrid 26.0.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::EngineError;
use super::shell::{self, ShellLauncher, quoted};

const WHAT: &str = "bringing the board into its state";
/// A board was written and has booted in this time, or there is something wrong.
const MOST: Duration = Duration::from_secs(3600);
/// The last of what `export` prints is in this variable.
const READY: &str = "export LG__CLIENT_PID=";
/// Ends the client when the input ends; a client that does not end by SIGTERM is killed.
const SERVE: &str = r#"exec 3<&0
client </dev/null 2>&1 & p=$!
( while read -r _; do :; done; kill -TERM $p; sleep 10; kill -KILL $p ) <&3 >/dev/null 2>&1 & w=$!
exec 3<&-
wait $p; r=$?
kill $w 2>/dev/null
exit $r
"#;

/// A board in the state; its strategy's drivers end with this.
#[derive(Debug)]
pub(super) struct Reached {
    child: Child,
}

impl Reached {
    /// Waits for the transition; `client` are the words of labgrid-client, `heard` gets what it says.
    pub(super) fn by(client: &[String], heard: &mut dyn FnMut(&str)) -> Result<Self, EngineError> {
        let words: Vec<String> = client.iter().map(|w| quoted(w)).collect();
        // Its lines are to come when they are said.
        let script =
            format!("client() {{ PYTHONUNBUFFERED=1 exec {}\n}}\n{SERVE}", words.join(" "));
        let mut command = shell::command(&ShellLauncher::here(), &script);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = child.spawn().map_err(|e| shell::not_started(&command, WHAT, &e))?;
        let mut reached = Self { child };
        let said = reached.child.stdout.take();
        let (to, from) = mpsc::channel();
        thread::spawn(move || {
            // To the end: whoever does not read stops it.
            for line in said.into_iter().flat_map(|s| BufReader::new(s).split(b'\n')) {
                let Ok(line) = line else { break };
                drop(to.send(String::from_utf8_lossy(&line).into_owned()));
            }
        });
        let begun = Instant::now();
        let mut last = "it said nothing".to_owned();
        loop {
            match from.recv_timeout(MOST.saturating_sub(begun.elapsed())) {
                Ok(line) if line.starts_with(READY) => return Ok(reached),
                // What other drivers know is for others.
                Ok(line) if line.starts_with("export LG__") || line.trim().is_empty() => {}
                Ok(line) => {
                    heard(line.trim_end());
                    line.trim().clone_into(&mut last);
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(EngineError::failed(WHAT, last));
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let why =
                        format!("it is not there after {} minutes: {last}", MOST.as_secs() / 60);
                    return Err(EngineError::failed(WHAT, why));
                }
            }
        }
    }
}

impl Drop for Reached {
    fn drop(&mut self) {
        // The end of its input ends it.
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}
