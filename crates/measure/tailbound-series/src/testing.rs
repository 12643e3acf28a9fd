// SPDX-License-Identifier: MIT OR Apache-2.0
//! A caller without a machine, for the tests of series: its runs are files with one word, and their place in a series.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tailbound_core::campaign::Part;
use tailbound_core::plan::{Clock, Means, RunConfig};
use tailbound_core::record::{End, Header, SCHEMA};
use tailbound_core::requirement::Requirement;
use tailbound_core::{EndReason, Plan, Policy, Run};
use tailbound_sys::new_file::{self, Existing};

use crate::campaign::CampaignCaller;
use crate::{Caller, ChildEnd, SeriesError};

/// A plan of one second.
pub(crate) fn plan() -> Plan {
    Plan {
        name: None,
        probe: "cyclic".to_owned(),
        options: std::collections::BTreeMap::new(),
        event: None,
        property: None,
        interval_ns: 1_000_000,
        activations: 1000,
        warm_up_ns: 0,
        cpus: "0".parse().expect("a list"),
        policy: Policy::Other,
        clock: Clock::Monotonic,
        means: Means::Nanosleep,
        loads: Vec::new(),
        requirement: Requirement::default(),
        cpu_dma_latency_us: None,
        raw: false,
        paranoid: false,
        observe: None,
        blame: None,
        tasks: None,
        spread: None,
        timer_slack_ns: None,
        tune: None,
        work: None,
        until: None,
    }
}

/// A run that ended so, or was cut off.
pub(crate) fn run(end: Option<EndReason>) -> Run {
    let mut run = Run::new(Header {
        schema: SCHEMA.to_owned(),
        tool: "tailbound".to_owned(),
        id: "test".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        command: Vec::new(),
        plan: plan(),
        machine: Default::default(),
        source: None,
        lab: None,
        round: None,
        purpose: None,
    });
    run.end = end.map(|reason| End { reason, measured_ns: 1_000_000_000, lines: 1 });
    run
}

/// Makes every run but those in `fails`, and is interrupted after `until` of them.
#[derive(Debug, Default)]
pub(crate) struct Fake {
    /// Names of the files that were made, in their order.
    pub(crate) made: Vec<String>,
    /// Names of files that are not made.
    pub(crate) fails: Vec<String>,
    /// The number of runs after which a signal arrives.
    pub(crate) until: Option<usize>,
}

fn last(arguments: &[OsString]) -> PathBuf {
    arguments.last().map(PathBuf::from).expect("a file")
}

impl Caller for Fake {
    type Error = SeriesError;

    fn make(
        &mut self,
        arguments: &[OsString],
        _: &Path,
        tick: &mut dyn FnMut(),
    ) -> Result<ChildEnd, SeriesError> {
        tick();
        let file = last(arguments);
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        if self.until == Some(self.made.len()) {
            return Ok(ChildEnd { message: String::new(), interrupted: true });
        }
        if self.fails.contains(&name) {
            let message = "tailbound: no such CPU".to_owned();
            return Ok(ChildEnd { message, interrupted: false });
        }
        let round = arguments.iter().skip_while(|a| *a != "--as-round").nth(1);
        let round = round.map(|r| r.to_string_lossy().into_owned()).unwrap_or_default();
        let text = format!("complete{round}");
        new_file::write(&file, Existing::Replace, text.as_bytes()).expect("written");
        self.made.push(name);
        Ok(ChildEnd::default())
    }

    fn read(&mut self, path: &Path, _: &[&str]) -> Result<Run, SeriesError> {
        match std::fs::read_to_string(path) {
            Ok(text) => match text.strip_prefix("complete") {
                None => Ok(run(None)),
                Some(round) => {
                    let mut run = run(Some(EndReason::Complete));
                    run.header.round = serde_json::from_str(round).ok();
                    Ok(run)
                }
            },
            Err(source) => Err(SeriesError::Read { path: path.to_owned(), source }),
        }
    }
}

impl CampaignCaller for Fake {
    fn plan(&mut self, config: &RunConfig, _: &Part) -> Result<Plan, SeriesError> {
        match &config.cpus {
            Some(cpus) if cpus == "none" => {
                Err(SeriesError::ChildFile(std::io::Error::other("no CPU")))
            }
            _ => Ok(plan()),
        }
    }

    fn page(&mut self, _: &Run, _: &Path, page: &Path) -> Result<(), SeriesError> {
        new_file::write(page, Existing::Replace, b"page")
            .map_err(|e| SeriesError::unwritten(page, e))
    }
}
