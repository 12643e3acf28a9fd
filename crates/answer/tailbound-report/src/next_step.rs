// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one command that is worth most after a run, by what was found.
//!
//! Not here: advice without a command (`digest::advice`), all of a culprit's remedies (`blame`).

use tailbound_core::blame::KernelKind;
use tailbound_core::units::exact;
use tailbound_core::{Impact, Outcome, Run};
use tailbound_stats::Analysis;
use tailbound_stats::coincidence::DisturbanceKind;

use crate::blame::advice;
use crate::escape::repeat;
use crate::label;

/// A command, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct NextStep {
    /// For a shell.
    pub command: String,
    /// What it does.
    pub purpose: &'static str,
}

impl NextStep {
    /// After the run of `analysis`.
    #[must_use]
    pub fn of(analysis: &Analysis<'_>) -> Self {
        let run = analysis.run();
        let step = |command: String, purpose| Self { command, purpose };
        let cpus = cpus(run);
        if run.header.lab.is_some() {
            let again = "tailbound lab paths RUN".to_owned();
            return step(again, "the kernel's longest sections, of a run made with --paths");
        }
        if run.header.source.is_some() {
            let deadline = run.header.plan.requirement.deadline_ns;
            let deadline = deadline.map_or_else(String::new, |ns| format!(" -d {}", exact(ns)));
            return step(
                format!("tailbound run --blame{deadline}"),
                "measures this machine, and names who made it late",
            );
        }
        let grave = label::findings(run).into_iter().any(|f| f.impact > Impact::Notice);
        if grave && run.violations.is_empty() {
            return step(
                format!("tailbound check{cpus}"),
                "what makes this machine late, and the fix of each",
            );
        }
        if let Some(command) =
            advice::command(&run.blames, KernelKind::of_facts(&run.header.machine))
        {
            return step(command, "against what made most of them late");
        }
        match analysis.coincidence().map(|c| c.kind) {
            Some(DisturbanceKind::Steal) => {
                return step(
                    format!("tailbound check{cpus} --sample 10s"),
                    "watches the steal time, and says what to do on the host",
                );
            }
            Some(
                DisturbanceKind::Interrupt
                | DisturbanceKind::Softirq
                | DisturbanceKind::IrqPressure,
            ) => {
                return step(
                    format!("tailbound irqs{cpus} -D 10s"),
                    "counts each interrupt and what it takes",
                );
            }
            Some(DisturbanceKind::Quota) => {
                return step(
                    format!("tailbound check{cpus}"),
                    "names the control group with the quota, and the command that lifts it",
                );
            }
            Some(DisturbanceKind::Frequency | DisturbanceKind::Firmware) => {
                return step(
                    format!("tailbound check{cpus}"),
                    "what sets the frequency and what the firmware does, and the fix of each",
                );
            }
            _ => {}
        }
        Self::plain(run, analysis, &cpus)
    }

    /// Where nothing shows a reason.
    fn plain(run: &Run, analysis: &Analysis<'_>, cpus: &str) -> Self {
        let blamed = run.header.plan.blame.is_some();
        let ours =
            run.header.command.first().is_some_and(|w| w.rsplit('/').next() == Some("tailbound"));
        let verb = run.header.command.get(1).map(String::as_str);
        if ours && verb == Some("run") && !blamed && analysis.outcome() != Outcome::Met {
            let mut words = run.header.command.clone();
            words.insert(2, "--blame".to_owned());
            return Self {
                command: repeat(&words),
                purpose: "names who makes the latest wake-ups late",
            };
        }
        Self {
            command: format!("tailbound check{cpus}"),
            purpose: "what could still make this machine late",
        }
    }

    /// For people: the command, and what it is for as a comment of the shell.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{}  # {}", self.command, self.purpose)
    }
}

/// The measured CPUs as an option; nothing where threads were not pinned.
fn cpus(run: &Run) -> String {
    match run.header.plan.cpus.is_empty() {
        true => String::new(),
        false => format!(" -c {}", run.header.plan.cpus),
    }
}
