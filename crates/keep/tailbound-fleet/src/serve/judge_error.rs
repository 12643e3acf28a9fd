// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why an upload is not read to its end, and the limits by which.

use std::io::{self, ErrorKind};

/// What is kept of one file.
pub(super) const WEIGHT_BYTES_MAX: u64 = 64 << 20;
/// Judging one takes no longer.
pub(super) const CPU_NS_MAX: i64 = 20_000_000_000;

/// Why a file is not read to its end.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum JudgeError {
    /// More plain bytes than are taken.
    #[error("the run file is too large when unpacked: at most {0} MiB are taken")]
    Plain(u64),
    /// More records than are taken.
    #[error("the run file has too many records: what is kept of one in memory is at most {} MiB", WEIGHT_BYTES_MAX >> 20)]
    Weight,
    /// More than a page can show.
    #[error(
        "the run has too many records to be shown: download its file, and read it with `tailbound report`"
    )]
    Listed,
    /// It takes too long.
    #[error("the run file takes more than {} s of CPU time to judge", CPU_NS_MAX / 1_000_000_000)]
    Time,
    /// There is no room now.
    #[error("too many uploads wait already")]
    Busy,
    /// Nobody waits for it.
    #[error("nobody waits for it any more")]
    Cancelled,
}

impl From<JudgeError> for io::Error {
    fn from(why: JudgeError) -> Self {
        Self::new(ErrorKind::QuotaExceeded, why)
    }
}

impl JudgeError {
    /// What an error of reading was caused by.
    pub(super) fn of(e: &io::Error) -> Option<&Self> {
        e.get_ref()?.downcast_ref()
    }
}
