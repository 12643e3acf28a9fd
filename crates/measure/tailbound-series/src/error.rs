// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a series cannot be made or read, and the exit status that says who can mend it.

use std::io;
use std::path::{Path, PathBuf};

use tailbound_core::FailureKind;
use tailbound_core::unwritten::{Alternative, UnwrittenFile};
use tailbound_sys::error::SysError;

use crate::rounds::DescriptionError;

/// A series that cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    /// A file or folder of the series cannot be made.
    #[error("{}: {source}", .path.display())]
    Make {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file or folder that was named cannot be read.
    #[error("{}: {source}", .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of the series is not written.
    #[error(transparent)]
    Unwritten(#[from] UnwrittenFile),
    /// What describes the series cannot be put into words.
    #[error("{}: {source}", .path.display())]
    Encode {
        /// The file it was meant for.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// The place of a run in its series cannot be put into words.
    #[error("rounds: {0}")]
    Place(serde_json::Error),
    /// A run of a campaign that is timed from outside, without a source of pulses.
    #[error(
        "it is timed from outside: name the source of pulses with --via, as `tailbound box run` does"
    )]
    NoSource,
    /// The file or pipe of a run of its own.
    #[error("a run of its own: {0}")]
    ChildFile(io::Error),
    /// A system call for a run of its own.
    #[error("a run of its own: {0}")]
    ChildCall(#[from] SysError),
    /// The description of a series of rounds is none.
    #[error("{}: {why}", .path.display())]
    Description {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        why: DescriptionError,
    },
    /// The folder holds other rounds.
    #[error("{} holds rounds of other variants, flags or seed: choose another --out, or give --force to begin anew", .path.display())]
    OtherRounds {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds something else.
    #[error("{} exists and holds no rounds: choose another --out", .path.display())]
    NoRounds {
        /// The folder.
        path: PathBuf,
    },
    /// A run file of the series holds something else than its name says.
    #[error("{} is not round {round} of variant `{variant}` in this series: {why}; remove it, choose another --out, or give --force to begin anew", .path.display())]
    OtherRun {
        /// The file.
        path: PathBuf,
        /// Whose it should be.
        variant: String,
        /// Which round, from 1.
        round: u32,
        /// What it holds.
        why: String,
    },
    /// A run of a round failed.
    #[error("variant `{variant}`, round {round}: {why}")]
    Incomplete {
        /// Whose.
        variant: String,
        /// Which, from 1.
        round: u32,
        /// What it said.
        why: String,
    },
    /// No campaign has this name.
    #[error("no campaign is called `{name}`, and there is no such file{hint}; there are {}", .known.join(", "))]
    UnknownCampaign {
        /// What was asked for.
        name: String,
        /// A name like it, as the end of a sentence.
        hint: String,
        /// All names.
        known: Vec<&'static str>,
    },
    /// The file of a campaign is none.
    #[error("{name}: {why}")]
    Campaign {
        /// Its name or file.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A file of a campaign cannot be read.
    #[error("{name}: {source}")]
    CampaignFile {
        /// As it was named.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// A folder says nothing of its campaign.
    #[error("{}: {source}; a campaign's folder holds it, or name one with --campaign", .path.display())]
    CampaignMissing {
        /// The file that would say it.
        path: PathBuf,
        /// Why it does not.
        source: io::Error,
    },
    /// The folder holds another campaign.
    #[error("{} holds another campaign, or another version of it: choose another --out, or give --force to keep those of its runs that were made with the same options", .path.display())]
    OtherCampaign {
        /// The folder.
        path: PathBuf,
    },
    /// The folder is of another campaign than the others.
    #[error("{}: its runs are of `{is}`, not of `{wanted}`: a page shows one campaign; make one page for each", .path.display())]
    OtherThan {
        /// The folder.
        path: PathBuf,
        /// Its campaign.
        is: String,
        /// That of the others.
        wanted: String,
    },
    /// The folder holds something else.
    #[error("{} exists and holds no campaign: choose another --out", .path.display())]
    NoCampaign {
        /// The folder.
        path: PathBuf,
    },
    /// A run that is there was made with other options.
    #[error("{} holds a run made with different options, such as another --scale: choose another --out, or give --force to make it again", .path.display())]
    OtherOptions {
        /// Its file.
        path: PathBuf,
    },
    /// A run of the lab that is there is not the one that would be made.
    #[error("{} holds a run made with different options or by another version: choose another --out, or give --force", .path.display())]
    OtherVersion {
        /// Its file.
        path: PathBuf,
    },
    /// The folder of a system is a link: it may have come from somebody else.
    #[error("{}: it is a symbolic link, and runs are kept in folders: remove it, or choose another --out or --system", .path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The machine has no name.
    #[error("/proc/sys/kernel/osrelease: {0}; name this machine with --system")]
    Release(io::Error),
    /// No part or step of a campaign has this name.
    #[error("--only {name}: no such run or step; there are {}", .known.join(", "))]
    UnknownPart {
        /// What was asked for.
        name: String,
        /// All parts.
        known: Vec<String>,
    },
    /// The configuration of a run cannot be put into words.
    #[error("{}: {source}", .path.display())]
    Config {
        /// The file it was meant for.
        path: PathBuf,
        /// Why.
        source: toml::ser::Error,
    },
}

impl SeriesError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Unwritten(e) => e.kind(),
            Self::Make { .. }
            | Self::Encode { .. }
            | Self::Place(_)
            | Self::ChildFile(_)
            | Self::ChildCall(_)
            | Self::Incomplete { .. }
            | Self::Release(_)
            | Self::Config { .. } => FailureKind::Cannot,
            Self::Read { .. }
            | Self::Description { .. }
            | Self::OtherRounds { .. }
            | Self::OtherRun { .. }
            | Self::NoRounds { .. }
            | Self::UnknownCampaign { .. }
            | Self::Campaign { .. }
            | Self::CampaignFile { .. }
            | Self::CampaignMissing { .. }
            | Self::OtherCampaign { .. }
            | Self::OtherThan { .. }
            | Self::NoCampaign { .. }
            | Self::OtherOptions { .. }
            | Self::OtherVersion { .. }
            | Self::Link { .. }
            | Self::UnknownPart { .. }
            | Self::NoSource => FailureKind::Usage,
        }
    }

    /// A folder or file of something else, as which nothing was made: another place may be free.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        matches!(
            self,
            Self::OtherCampaign { .. }
                | Self::NoCampaign { .. }
                | Self::OtherOptions { .. }
                | Self::OtherVersion { .. }
        )
    }

    /// A file of the series that could not be written.
    pub(crate) fn unwritten(path: &Path, source: io::Error) -> Self {
        UnwrittenFile::of(path, source, Alternative::Name).into()
    }
}
