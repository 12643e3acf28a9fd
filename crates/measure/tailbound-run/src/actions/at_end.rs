// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is done when the run is over and its file complete.
//!
//! The file is closed by then: how it went is shown, not recorded.

use std::path::{Path, PathBuf};

use tailbound_core::{FailureKind, Run};
use tailbound_sys::addressee::signal_name;

use super::Action;
use super::command::{CommandEnd, Shell, Variables, path_variable, shown};
use crate::error::RunError;
use crate::trace_file::KEPT;
use crate::view::View;
use crate::world::Interruptions;

/// Between two looks at a command that is waited for.
const LOOK_MS: i32 = 20;

/// What a run came to.
type MadeRun = Result<(Run, Option<PathBuf>), RunError>;

/// Performs `actions` in their order, up to one that fails. A signal ends the command that is under way, and them all.
pub(crate) fn at_end(
    actions: &[Action],
    shell: &mut dyn Shell,
    (made, trace): (&MadeRun, Option<&Path>),
    signals: &impl Interruptions,
    show: &mut dyn FnMut(View<'_>),
) {
    let variables = variables(made, trace);
    for (at, action) in actions.iter().enumerate() {
        let why = match action {
            Action::Signal { to, number } => to.send(*number).err().map(|e| {
                format!("{} to process {} was not sent: {e}", signal_name(*number), to.pid())
            }),
            Action::Command(line) => match run(line, shell, &variables, signals) {
                Ok(end) if end.succeeded => None,
                Ok(end) => Some(format!("{}: {}", shown(line), end.how)),
                Err(e) => Some(format!("{} was not started: {e}", shown(line))),
            },
        };
        if let Some(why) = why {
            let left = match actions.len() - at - 1 {
                0 => String::new(),
                n => format!("; {n} more left out"),
            };
            show(View::Alert(&format!("--on-end: {why}{left}")));
            return;
        }
    }
}

fn run(
    line: &str,
    shell: &mut dyn Shell,
    variables: &Variables,
    signals: &impl Interruptions,
) -> Result<CommandEnd, tailbound_sys::SysError> {
    let mut command = shell.start(line, variables)?;
    loop {
        if let Some(end) = command.ended() {
            return Ok(end);
        }
        if signals.wait(LOOK_MS).is_some() {
            return Ok(command.end());
        }
    }
}

fn variables(made: &MadeRun, trace: Option<&Path>) -> Variables {
    let (status, verdict, file) = match made {
        Ok((run, path)) => match &run.verdict {
            Some(v) => (v.outcome.exit_status(), v.outcome.word(), path.as_ref()),
            None => (FailureKind::Bug.exit_status(), "", path.as_ref()),
        },
        Err(RunError::SavedElsewhere { saved, .. }) => {
            (FailureKind::Cannot.exit_status(), "", Some(saved))
        }
        Err(e) => (e.kind().exit_status(), "", None),
    };
    let kept = made.as_ref().is_ok_and(|(run, _)| run.findings.iter().any(|f| f.id == KEPT));
    let mut all = vec![
        "TAILBOUND_EVENT=end".to_owned(),
        format!("TAILBOUND_STATUS={status}"),
        format!("TAILBOUND_VERDICT={verdict}"),
    ];
    all.extend(file.map(|path| path_variable("TAILBOUND_FILE", path)));
    all.extend(trace.filter(|_| kept).map(|path| path_variable("TAILBOUND_TRACE", path)));
    all
}
