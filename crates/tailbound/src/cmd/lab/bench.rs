// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab as its flags open it; its failures, and those of its callers in it.

use tailbound_core::FailureKind;
use tailbound_lab::progress_line::ProgressLine;
use tailbound_lab::{Bench, HostOptions, LabError};
use tailbound_search::SearchError;

use crate::cli_guest::HostArgs;
use crate::say::{self, Failure, from_library};

/// The lab, which says on standard error how far it is.
pub(in crate::cmd) fn open(host: &HostArgs) -> Result<Bench<'static>, Failure> {
    let options = HostOptions {
        jobs: host.jobs,
        qemu: host.qemu.clone(),
        guest: host.guest.clone(),
        snapshots: !host.no_snapshot,
        host_limit_s: host.host_limit,
        refresh: host.refresh,
    };
    Ok(Bench::open(options, Box::new(ProgressLine(say::progress(host.quiet))))?)
}

from_library!(LabError);

impl From<Failure> for LabError {
    fn from(failure: Failure) -> Self {
        match failure.kind {
            FailureKind::CutOff => Self::Interrupted,
            FailureKind::Bug => Self::Bug,
            kind => Self::Caller { kind, text: failure.text },
        }
    }
}

from_library!(SearchError);

impl From<Failure> for SearchError {
    fn from(failure: Failure) -> Self {
        match failure.kind {
            FailureKind::Bug => Self::Lab(LabError::Bug),
            kind => Self::Caller { kind, text: failure.text },
        }
    }
}
