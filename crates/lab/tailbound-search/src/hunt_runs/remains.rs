// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is left of the worst, as files: a run that must show the same again, and a campaign.
//!
//! Units: ns. The run is made as `lab run` makes it, without being watched, and its latest wake-up is
//! compared with the one that the search saw. A campaign's job bears its name, and a longer job is read for longer
//! before the loads begin: so what the campaign shows is measured by itself and said.

use std::path::{Path, PathBuf};

use tailbound_core::Run;
use tailbound_core::calls::Calls;
use tailbound_core::campaign::{CampaignFile, Kind, Step, Text, TextSystem, TimedFrom, Variant};
use tailbound_core::plan::RunConfig;
use tailbound_core::units::format_ns_i64;
use tailbound_lab::Request;
use tailbound_lab::keep::{keep, write_text};
use tailbound_report::escape::shell;
use tailbound_sys::new_file::Existing;

use super::corpus::CorpusHeader;
use super::guests::{self, Guests};
use crate::error::SearchError;
use crate::hunt::{Candidate, Shrunk, c_program};

const RUN: &str = "worst.tailbound.jsonl";
const CAMPAIGN: &str = "worst.campaign.toml";
const PROGRAM: &str = "worst.calls.c";
/// The load that is a sequence of system calls.
const CALLS: &str = "calls";
/// Of the campaign and its only step.
const NAME: &str = "hunt-worst";
const STEP: &str = "worst";
/// Of its variant, where words are appended to the kernel's command line.
const APPENDED: &str = "appended";

/// What was left, and what it showed when it was run by itself.
#[derive(Debug)]
pub(super) struct Remains {
    /// The latest wake-up in the search.
    pub(super) expected_ns: i64,
    /// The same by the command.
    pub(super) latest_ns: i64,
    /// The same by the campaign.
    pub(super) campaign_ns: i64,
    /// The command for the campaign.
    pub(super) campaign: Vec<String>,
    /// The C program of its system calls, where it has some.
    pub(super) program: Option<PathBuf>,
}

impl Remains {
    /// Did the command show just what the search saw?
    pub(super) const fn same(&self) -> bool {
        self.expected_ns == self.latest_ns
    }
}

/// Runs it, and writes the files.
pub(super) fn make(
    guests: &Guests<'_>,
    words: &Request,
    header: &CorpusHeader,
    shrunk: &Shrunk,
    folder: &Path,
) -> Result<Remains, SearchError> {
    let candidate = &shrunk.candidate;
    let made = guests.plain(&guests.cell(candidate)?)?;
    keep(&folder.join(RUN), &made.run, &made.console, Existing::Replace)?;
    let command = shell(&guests::command(words, candidate));
    let mut named = words.clone();
    let variant = if header.append.is_empty() { String::new() } else { format!("-{APPENDED}") };
    named.campaign.name = Some(format!("{NAME}/{STEP}{variant}"));
    let asked = guests::request(&named, candidate);
    let cell = guests.cell_of(asked.clone())?;
    let of_campaign = guests.plain(&cell)?.run;
    let campaign_ns = guests::latest_ns(&of_campaign)?;
    let remains = Remains {
        expected_ns: shrunk.latest_ns,
        latest_ns: guests::latest_ns(&made.run)?,
        campaign_ns,
        campaign: campaign_command(header, candidate.seed, folder),
        program: program(candidate, &command, folder)?,
    };
    let config = RunConfig { name: None, load: Some(vec![candidate.load()]), ..asked.campaign };
    let text = campaign(&config, header, &remains, &command, &of_campaign)?;
    write_text(&folder.join(CAMPAIGN), &text)?;
    Ok(remains)
}

/// Writes the C program of the system calls, if the workload has some.
fn program(
    candidate: &Candidate,
    command: &str,
    folder: &Path,
) -> Result<Option<PathBuf>, SearchError> {
    let Some(load) = candidate.loads.iter().find(|load| load.name == CALLS) else {
        return Ok(None);
    };
    let calls = match load.option("do") {
        None => Calls::sample(),
        Some(text) => text.parse()?,
    };
    let tasks = load.option("tasks").and_then(|n| n.parse().ok());
    let told = [
        "System calls found and made smaller by `tailbound lab hunt`, of this workload:".to_owned(),
        format!("  {command}"),
        format!("Build and run it: cc -O2 -pthread -o worst {PROGRAM} && ./worst [PASSES]"),
    ];
    let path = folder.join(PROGRAM);
    write_text(&path, &c_program(&calls, tasks, &told))?;
    Ok(Some(path))
}

fn campaign_command(header: &CorpusHeader, seed: u32, folder: &Path) -> Vec<String> {
    let file = folder.join(CAMPAIGN);
    // A name without a folder would be that of a campaign that comes with the program.
    let file = if file.is_absolute() { file } else { Path::new(".").join(file) };
    let file = file.display().to_string();
    let seed = seed.to_string();
    let words = ["tailbound", "campaign", "run", &file, "-k", &header.kernel, "--seed", &seed];
    words.map(str::to_owned).to_vec()
}

/// The file, which must be one that `campaign run` takes.
fn campaign(
    config: &RunConfig,
    header: &CorpusHeader,
    remains: &Remains,
    command: &str,
    run: &Run,
) -> Result<String, SearchError> {
    let told = format!(
        "latest wake-up {} ns on {} in the lab, of {} activations",
        remains.latest_ns, header.kernel, header.loops
    );
    let appended = Variant {
        id: APPENDED.to_owned(),
        title: "with the words appended".to_owned(),
        append: header.append.clone(),
        run: RunConfig::default(),
        lab: RunConfig::default(),
        smp: None,
        not_in_lab: None,
    };
    let step = Step {
        id: STEP.to_owned(),
        title: "The worst workload".to_owned(),
        told,
        ours: None,
        tasks: None,
        only_work: false,
        timed_from: TimedFrom::Inside,
        run: config.clone(),
        lab: RunConfig::default(),
        lab_note: None,
        not_in_lab: None,
        variants: if header.append.is_empty() { Vec::new() } else { vec![appended] },
    };
    let whole = CampaignFile {
        name: NAME.to_owned(),
        text: Text {
            title: format!("The worst workload found for {}", header.kernel),
            authors: vec!["tailbound lab hunt".to_owned()],
            year: run.header.started.get(..4).and_then(|y| y.parse().ok()).unwrap_or(0),
            published: None,
            machine: "a guest of the lab".to_owned(),
            about: "How late is a wake-up under the worst workload that was found?".to_owned(),
        },
        systems: vec![TextSystem {
            id: "found".to_owned(),
            name: header.kernel.clone(),
            kind: Kind::Other,
        }],
        steps: vec![step],
        figures: Vec::new(),
        claims: Vec::new(),
        differs: Vec::new(),
    };
    let file = format!(
        "# SPDX-License-Identifier: MIT OR Apache-2.0\n\
         # Found and made smaller by `tailbound lab hunt`. As one command, which gives the same bytes for everybody who has\n\
         # the same kernel, QEMU and build of tailbound:\n\
         #   {command}\n\
         # Latest wake-up there {} ({} ns); as this campaign, whose job bears a name, {} ({} ns):\n\
         #   {}\n\n{}",
        format_ns_i64(remains.latest_ns),
        remains.latest_ns,
        format_ns_i64(remains.campaign_ns),
        remains.campaign_ns,
        shell(&remains.campaign),
        toml::to_string(&whole)?,
    );
    CampaignFile::parse(&file).map_err(|why| SearchError::OwnCampaign { file: CAMPAIGN, why })?;
    Ok(file)
}
