// SPDX-License-Identifier: MIT OR Apache-2.0
//! Campaigns: which runs of a publication are to be made, how long they are, and where they lie.
//!
//! Units: ns.
//! Not here: the file itself (`tailbound_core::campaign`), judging (`tailbound-stats`), kernels of the lab
//! (`tailbound-lab`; the command line makes those runs, in the folders that are described here).
//!
//! ```text
//! shipped.rs  campaigns in the program, or a file      folder.rs  runs and their state, from files alone
//! options.rs  how long, where, which of its runs       make.rs    runs on this machine, one child each
//! follow.rs   what a run says while it is made          words.rs   how far it is
//! folders.rs  several folders as evidence          line.rs    its line of progress
//! pieces.rs   runs timed from outside that were cut off and go on
//! ```

pub mod folder;
mod folders;
mod follow;
mod line;
mod make;
mod options;
mod pieces;
mod shipped;
mod words;

pub use folder::Folder;
pub use folders::{absolute, campaign_of, evidence};
pub use follow::{Follow, SoFar};
pub use line::CampaignLine;
pub use make::{Ahead, CampaignCaller, Now, Progress, make};
pub use options::{LONG_NS, Long, Options, wanted};
pub use shipped::{Chosen, SHIPPED, find, parse, shipped_names};

use crate::error::SeriesError;

/// How a campaign's runs ended.
#[derive(Debug, Default)]
pub struct CampaignEnd {
    /// By a signal, before all were made.
    pub interrupted: bool,
    /// The folder holds runs made with different options: nothing was made.
    pub taken: Option<SeriesError>,
}

impl CampaignEnd {
    /// By a signal.
    #[must_use]
    pub fn by_signal() -> Self {
        Self { interrupted: true, taken: None }
    }

    /// Before the first run, because the folder is taken.
    #[must_use]
    pub fn taken(why: SeriesError) -> Self {
        Self { interrupted: false, taken: Some(why) }
    }
}
