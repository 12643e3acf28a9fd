// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong with a store, and what to do about it.

use tailbound_core::FailureKind;

/// Why it did not work.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database refused.
    #[error("{place}: {what}: {reason}")]
    Database {
        /// Which.
        place: String,
        /// What was to be done.
        what: &'static str,
        /// Its own words.
        reason: String,
    },
    /// Nothing more fits on the disk that it is on.
    #[error(
        "{place}: {what}: there is no room left on its disk; what is in the store stays: make room, or `tailbound store prune`"
    )]
    Full {
        /// Which.
        place: String,
        /// What was to be done.
        what: &'static str,
    },
    /// There is no store.
    #[error("{place}: there is no store; `tailbound store add` makes one")]
    Missing {
        /// Where.
        place: String,
    },
    /// It is something else.
    #[error("{place}: this is no store of Tailbound: {reason}")]
    Foreign {
        /// Where.
        place: String,
        /// What is there.
        reason: String,
    },
    /// A later version made it.
    #[error(
        "{place}: made by a later version (schema {found}, this one knows up to {known}): use that version"
    )]
    Later {
        /// Where.
        place: String,
        /// Its schema.
        found: i64,
        /// The newest known here.
        known: i64,
    },
    /// A version that was never released made it, whose schema went another way.
    #[error(
        "{place}: its schema {number} is \"{found}\", and that of this version \"{known}\": it was made by a version under development; get its run files with that one (`tailbound store get`), and add them to a new store"
    )]
    OtherSchema {
        /// Where.
        place: String,
        /// The first step that differs.
        number: i64,
        /// What it is for there.
        found: String,
        /// What it is for here.
        known: &'static str,
    },
    /// An earlier version made it.
    #[error(
        "{place}: made by an earlier version (schema {found}): `tailbound store ls --store {place}` brings it up to date"
    )]
    Earlier {
        /// Where.
        place: String,
        /// Its schema.
        found: i64,
    },
    /// There are runs where none may be.
    #[error("{place}: it has {n} runs already: restore into a store that has none")]
    NotEmpty {
        /// Where.
        place: String,
        /// How many.
        n: u64,
    },
    /// A person's statement would do something else than read.
    #[error(
        "{place}: the query is refused: only statements that read are allowed: SELECT, WITH, VALUES"
    )]
    NoReading {
        /// Where.
        place: String,
    },
    /// What came is no run file, or a damaged one.
    #[error("{0}")]
    Run(#[from] tailbound_core::runfile::ReadError),
    /// A file is too large for a row.
    #[error(
        "the run file has {bytes} bytes when packed; a store takes at most {most}: leave out --raw, or keep the file itself"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// More histograms than are held at once.
    #[error("there are more than {most} buckets of histograms in these days: ask for fewer days")]
    TooMany {
        /// The limit.
        most: usize,
    },
    /// No run has this identity.
    #[error("no run of this store has an identity that begins with `{0}`")]
    NoSuchRun(String),
    /// Several runs do.
    #[error("{n} runs of this store have an identity that begins with `{id}`: give more of it")]
    Several {
        /// What was asked for.
        id: String,
        /// How many.
        n: usize,
    },
    /// A run that the store holds is not what it was.
    #[error("the run {id} is damaged in the store: {reason}")]
    Damaged {
        /// Which.
        id: String,
        /// What is wrong.
        reason: String,
    },
    /// Whoever asked has gone.
    #[error("nobody waits for the answer any more")]
    Cancelled,
    /// A file beside the store cannot be made.
    #[error("{}: {source}", .path.display())]
    File {
        /// Which.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Reading or writing failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl StoreError {
    /// What reading failed with, wherever it was noticed.
    #[must_use]
    pub fn io(&self) -> Option<&std::io::Error> {
        match self {
            Self::Io(e) | Self::Run(tailbound_core::runfile::ReadError::Io { source: e, .. }) => {
                Some(e)
            }
            _ => None,
        }
    }

    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Database { .. }
            | Self::Full { .. }
            | Self::File { .. }
            | Self::Io(_)
            | Self::Damaged { .. } => FailureKind::Cannot,
            _ => FailureKind::Usage,
        }
    }
}
