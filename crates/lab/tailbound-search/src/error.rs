// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a search has no answer, by who can mend it.
//!
//! Units: ns.

use std::error::Error;
use std::path::PathBuf;

use tailbound_core::FailureKind;
use tailbound_core::calls::CallsError;
use tailbound_core::campaign::CampaignError;
use tailbound_core::units::{ParseTimeError, exact, format_ns_i64, format_span};
use tailbound_core::words::UnknownWord;
use tailbound_lab::{Arch, LabError};
use tailbound_paths::plan::PlanError;
use tailbound_run::RunError;
use tailbound_series::SeriesError;
use tailbound_series::auto::DesignError;
use tailbound_tune::TuneError;

use crate::bisect::EndsError;

/// A search that has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The program that searches failed, in its own words.
    #[error("{text}")]
    Caller {
        /// Who can mend it.
        kind: FailureKind,
        /// What it says.
        text: String,
    },
    /// The lab's reason.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A measurement cannot be made on this machine.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The last measurement cannot be made.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// A profile is none.
    #[error(transparent)]
    Tune(#[from] TuneError),

    // Campaigns and changes in the lab.
    /// A campaign in virtual time takes days.
    #[error("{part} would take {} of virtual time, of which a second costs this machine many: give --scale {scale} or less, or --yes", format_span(*.ns))]
    TooLong {
        /// Its longest part.
        part: String,
        /// How long that is.
        ns: i64,
        /// A scale at which it would not.
        scale: f64,
    },
    /// There is nothing to be tried.
    #[error(transparent)]
    Design(#[from] DesignError),
    /// Too few rounds.
    #[error("--rounds {rounds}: write {least} or more: fewer give no intervals")]
    TooFewRounds {
        /// What was asked for.
        rounds: u32,
        /// The fewest.
        least: u32,
    },
    /// A run of a set of changes failed.
    #[error("round {round}, {set}: {why}")]
    RoundFailed {
        /// From 1.
        round: usize,
        /// The set.
        set: String,
        /// What the lab said.
        why: String,
    },

    // Hunts.
    /// A file or folder of a search cannot be read or written.
    #[error("{}: {why}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A folder to go on in holds no hunt.
    #[error("--resume {}: there is no corpus.jsonl", .folder.display())]
    NoCorpus {
        /// The folder.
        folder: PathBuf,
    },
    /// A corpus does not begin as one.
    #[error("{}: line 1 is not that of a hunt: {source}", .path.display())]
    NoHunt {
        /// Its file.
        path: PathBuf,
        /// What is wrong with the line.
        source: serde_json::Error,
    },
    /// A corpus is of another version.
    #[error("{}: holds a hunt of another version ({schema}; this one goes on with {ours}): choose another folder with --out", .path.display())]
    OtherVersion {
        /// Its file.
        path: PathBuf,
        /// Its version.
        schema: String,
        /// That of this program.
        ours: &'static str,
    },
    /// A line of a corpus cannot be read.
    #[error("{}: line {line}: {source}", .path.display())]
    CorpusLine {
        /// Its file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The folder holds another hunt.
    #[error("{}: holds another hunt ({}): choose another folder with --out", .path.display(), .differing.join("; "))]
    OtherHunt {
        /// The folder.
        path: PathBuf,
        /// What differs.
        differing: Vec<String>,
    },
    /// A line of a corpus is none that this search would have written.
    #[error("{}: candidate {nr}: {why}: choose another folder with --out", .path.display())]
    ForeignCandidate {
        /// The corpus.
        path: PathBuf,
        /// The candidate's number.
        nr: u64,
        /// What it contradicts.
        why: &'static str,
    },
    /// A candidate of the corpus shows something else when it is run again.
    #[error("{}: candidate {nr} ({candidate}): {then} there, {now} when it is run again: this is no corpus of this kernel and program; choose another folder with --out", .path.display())]
    OtherResult {
        /// The corpus.
        path: PathBuf,
        /// The candidate's number.
        nr: u64,
        /// The candidate.
        candidate: String,
        /// What it showed.
        then: String,
        /// What it shows.
        now: String,
    },
    /// The length of a run of a candidate cannot be read.
    #[error("--each: {0}")]
    Each(ParseTimeError),
    /// The runs of candidates are too short.
    #[error("--each: write at least {}", exact(*.least_ns))]
    EachTooShort {
        /// The shortest.
        least_ns: i64,
    },
    /// Too few or too many runs of each candidate.
    #[error("--rounds: write 1 to {most}")]
    CandidateRounds {
        /// The most.
        most: u32,
    },
    /// The runs of candidates measure nothing.
    #[error("--loops: at least 1")]
    NoLoops,
    /// No candidate of this number ran.
    #[error("--shrink {nr}: no such candidate ran; {of} are in the folder, from 0")]
    NoCandidate {
        /// Its number.
        nr: u64,
        /// So many there are.
        of: usize,
    },
    /// No candidate ran.
    #[error("no candidate ran: {why}")]
    NothingRan {
        /// Why the first of them did not.
        why: String,
    },
    /// A signal came before anything is known.
    #[error("interrupted before any candidate ran")]
    NothingRanYet,
    /// There is no kernel.
    #[error("no kernel")]
    NoKernel,
    /// Watching changes a run.
    #[error("a run has other bytes when it is watched")]
    WatchedDiffers,
    /// System calls of a workload cannot be read.
    #[error(transparent)]
    Calls(#[from] CallsError),
    /// Options cannot be put into words.
    #[error(transparent)]
    Toml(#[from] toml::ser::Error),
    /// The last runs cannot be compared.
    #[error("{why}")]
    NotCompared {
        /// Why.
        why: String,
    },
    /// A campaign that was written is none.
    #[error("this is a bug of tailbound: {file}: {why}")]
    OwnCampaign {
        /// Its file.
        file: &'static str,
        /// What is wrong with it.
        why: CampaignError,
    },

    // One sample.
    /// No such architecture.
    #[error(transparent)]
    Arch(UnknownWord),
    /// Guests of this architecture cannot be varied.
    #[error("{} is of {arch}: only runs of x86-64 guests can be varied from an instant on", .path.display())]
    OtherArch {
        /// The run's file.
        path: PathBuf,
        /// Its architecture.
        arch: Arch,
    },
    /// Activations have no numbers.
    #[error("{} keeps no raw samples, so that no activation has a number: make it with `lab run --paths` or `lab run --raw`", .path.display())]
    NoRaw {
        /// The run's file.
        path: PathBuf,
    },
    /// The run is another one here.
    #[error("the run does not repeat here, so that nothing can be said of its samples{}", if .differing.is_empty() { String::new() } else { format!(": {}", .differing.join("; ")) })]
    NotRepeated {
        /// What differs in its record.
        differing: Vec<String>,
    },
    /// The run has no such activation.
    #[error("--activation {nr}: the run has {of}, and their numbers begin at 0")]
    NoActivation {
        /// Its number.
        nr: usize,
        /// So many there are.
        of: usize,
    },
    /// The run has no activations.
    #[error("the run has no samples")]
    NoSamples,
    /// The instant is behind the sample.
    #[error("--at {since_start_ns}: not before the sample's end")]
    BehindSample {
        /// Since the first activation was due.
        since_start_ns: i64,
    },
    /// Random numbers cannot be varied.
    #[error("--seeds: {0}")]
    NoSeeds(&'static str),
    /// Without a change the sample is another.
    #[error("{how} the sample is {} instead of {}: nothing can be said of it", format_ns_i64(*.ns), format_ns_i64(*.sample_ns))]
    ControlDiffers {
        /// How it was made again.
        how: &'static str,
        /// The sample then.
        ns: i64,
        /// The sample as it was.
        sample_ns: i64,
    },
    /// Without a change the sample is not there.
    #[error("{how} the sample does not come: nothing can be said of it")]
    ControlMissed {
        /// How it was made again.
        how: &'static str,
    },
    /// The kernel cannot be watched.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// What the plugin saw says nothing.
    #[error("{0}")]
    Look(Box<dyn Error + Send + Sync>),

    // Bisections.
    /// A signal ended it.
    #[error("interrupted: {known}; what was measured is kept in {}, and the same command goes on", .folder.display())]
    Interrupted {
        /// What is known.
        known: String,
        /// Where it is kept.
        folder: PathBuf,
    },
    /// The journal cannot be read.
    #[error("{}: {why}", .path.display())]
    Journal {
        /// Its file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The journal is of something else.
    #[error("{}: {why}: choose another --out, or give --force to begin anew there", .path.display())]
    OtherJournal {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A run file contradicts a step of the journal.
    #[error("{}: step {step} ({title}): {why}; remove that run file to have the step measured again, or give --force to begin anew", .path.display())]
    Contradicted {
        /// The journal.
        path: PathBuf,
        /// From 1.
        step: usize,
        /// What a reader calls it.
        title: String,
        /// What contradicts it.
        why: String,
    },
    /// A run file is not of the step that names it.
    #[error("{}: it is not a run of the step that the journal names it for ({title}): {}; remove it to have the step measured again, or give --force to begin anew", .path.display(), .differing.join("; "))]
    OtherStep {
        /// The run file.
        path: PathBuf,
        /// What a reader calls the step.
        title: String,
        /// What differs.
        differing: Vec<String>,
    },
    /// The limit cannot be read.
    #[error("--limit: {0}")]
    Limit(ParseTimeError),
    /// Real time answers nothing.
    #[error("bisect --kvm: in real time of a shared host one run answers nothing; leave it out")]
    RealTime,
    /// No such figure.
    #[error("--measure {text}: max, section, or a percentile from p1 to p99.999")]
    Measure {
        /// What was asked for.
        text: String,
    },
    /// A run has no such figure, nor will others.
    #[error("{why}")]
    Figure {
        /// Why.
        why: String,
    },
    /// A variant was not measured, for a reason that is not its own.
    #[error("{title}: {source}\n  What was measured is kept in {}: the same command goes on", .folder.display())]
    HostFailed {
        /// What a reader calls it.
        title: String,
        /// Where the search goes on.
        folder: PathBuf,
        /// What failed.
        source: Box<LabError>,
    },
    /// A variant cannot be measured.
    #[error("{why}")]
    Unfit {
        /// Why.
        why: String,
    },
    /// An end of the search cannot be measured.
    #[error("an end has no figure: {title}: {why}")]
    EndUnfit {
        /// What a reader calls it.
        title: String,
        /// Why.
        why: String,
    },
    /// The ends are not apart.
    #[error("{0}. Another --measure (p50, p99), more --loops or more --seeds may tell them apart")]
    Ends(EndsError),
    /// Configurations are the same.
    #[error("{} and {} have the same options", .good.display(), .bad.display())]
    SameOptions {
        /// Of the good end.
        good: PathBuf,
        /// Of the bad end.
        bad: PathBuf,
    },
    /// The ends are the same.
    #[error(
        "the good end and the bad end are the same: give --bad WORDS, --bad-load or --bad-set what differs"
    )]
    SameEnds,
    /// Several kernels or loads.
    #[error(
        "bisect looks at one kernel with one load at a time: give one --kernel, and several loads with commas"
    )]
    Several,
}

impl SearchError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Caller { kind, .. } => *kind,
            Self::Lab(e) => e.kind(),
            Self::HostFailed { source, .. } => source.kind(),
            Self::Run(e) => e.kind(),
            Self::Series(e) => e.kind(),
            Self::Tune(e) => e.kind(),
            Self::OwnCampaign { .. } => FailureKind::Bug,
            Self::NothingRanYet | Self::Interrupted { .. } => FailureKind::CutOff,
            Self::RoundFailed { .. }
            | Self::File { .. }
            | Self::NothingRan { .. }
            | Self::NoKernel
            | Self::WatchedDiffers
            | Self::Calls(_)
            | Self::Toml(_)
            | Self::NotCompared { .. }
            | Self::OtherArch { .. }
            | Self::NotRepeated { .. }
            | Self::NoSamples
            | Self::NoSeeds(_)
            | Self::ControlDiffers { .. }
            | Self::ControlMissed { .. }
            | Self::Plan(_)
            | Self::Look(_)
            | Self::Unfit { .. }
            | Self::EndUnfit { .. } => FailureKind::Cannot,
            Self::TooLong { .. }
            | Self::Design(_)
            | Self::TooFewRounds { .. }
            | Self::NoCorpus { .. }
            | Self::NoHunt { .. }
            | Self::OtherVersion { .. }
            | Self::CorpusLine { .. }
            | Self::OtherHunt { .. }
            | Self::ForeignCandidate { .. }
            | Self::OtherResult { .. }
            | Self::Each(_)
            | Self::EachTooShort { .. }
            | Self::CandidateRounds { .. }
            | Self::NoLoops
            | Self::NoCandidate { .. }
            | Self::Arch(_)
            | Self::NoRaw { .. }
            | Self::NoActivation { .. }
            | Self::BehindSample { .. }
            | Self::Journal { .. }
            | Self::OtherJournal { .. }
            | Self::Contradicted { .. }
            | Self::OtherStep { .. }
            | Self::Limit(_)
            | Self::RealTime
            | Self::Measure { .. }
            | Self::Figure { .. }
            | Self::Ends(_)
            | Self::SameOptions { .. }
            | Self::SameEnds
            | Self::Several => FailureKind::Usage,
        }
    }
    /// What the plugin saw says nothing.
    pub(crate) fn look(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Look(why.into())
    }
    /// A signal ended it.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.kind() == FailureKind::CutOff
    }
}
