// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives back what a fleet run took elsewhere, however the fleet run ended: a process of its own, which waits for the
//! end of its input.
//!
//! A fleet run that is killed cannot give anything back itself; its end of a pipe is closed all the same.

use std::io::Write as _;
use std::process::{Child, ChildStdin, Stdio};

use super::EngineError;
use super::shell::{self, ShellLauncher};

/// The first line of the input is the number of the process that holds the machine: that is over before the last step, or does
/// not end by itself (90 s).
const WAIT: &str = r#"p=; read -r p; last=$(cat)
at_once
n=0
while [ -n "$p" ] && kill -0 "$p" 2>/dev/null && [ $n -lt 450 ]; do sleep 0.2; n=$((n+1)); done
[ "$last" = keep ] || at_last
"#;

/// Such a process; it ends with this.
#[derive(Debug)]
pub(super) struct Keeper {
    child: Child,
    input: Option<ChildStdin>,
}

impl Keeper {
    /// Commands of a shell: what is done at once, and what when the machine's holder has ended.
    pub(super) fn start(at_once: &str, at_last: &str) -> Result<Self, EngineError> {
        let script =
            format!("at_once() {{ :\n{at_once}\n}}\nat_last() {{ :\n{at_last}\n}}\n{WAIT}");
        let mut command = shell::command(&ShellLauncher::here(), &script);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| shell::not_started(&command, "taking the machine", &e))?;
        let input = child.stdin.take();
        Ok(Self { child, input })
    }

    /// Tells it the process that holds the machine.
    pub(super) fn holder(&mut self, process: u32) {
        if let Some(input) = &mut self.input {
            // If it is gone, so is what it would have waited for.
            drop(writeln!(input, "{process}"));
        }
    }

    /// Tells it to give back nothing: somebody else has it.
    pub(super) fn keep(&mut self) {
        if let Some(input) = &mut self.input {
            drop(writeln!(input, "keep"));
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.input = None;
        drop(self.child.wait());
    }
}
