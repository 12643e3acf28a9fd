// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab`: kernels in virtual time.

mod cache;
mod kernel;
mod matrix;
mod paths;
mod progress;
mod qemu;
mod repeat;
pub(super) mod request;
mod run;
mod why;

use std::process::ExitCode;

use tailbound_core::FailureKind;
use tailbound_lab::{Bench, HostOptions, LabError};
use tailbound_search::SearchError;

use crate::cli_guest::HostArgs;
use crate::cli_lab::Lab;
use crate::cmd::{bisect, hunt};
use crate::say::Failure;

use progress::StandardError;

/// `tailbound lab`
pub(crate) fn lab(lab: &Lab) -> Result<ExitCode, Failure> {
    match lab {
        Lab::Run(args) => run::run(args),
        Lab::Repeat(args) => repeat::repeat(args),
        Lab::Paths(args) => paths::paths(args),
        Lab::Why(args) => why::why(args),
        Lab::Hunt(args) => hunt::hunt(args),
        Lab::Bisect(what) => bisect::bisect(what),
        Lab::Matrix(args) => matrix::matrix(args),
        Lab::Cache(args) => cache::cache(args),
        Lab::Kernel(what) => kernel::kernel(what),
        Lab::Qemu(what) => qemu::qemu(what),
    }
}

/// The lab, which says on standard error how far it is.
pub(in crate::cmd) fn bench(host: &HostArgs) -> Result<Bench<'static>, Failure> {
    let options = HostOptions {
        jobs: host.jobs,
        qemu: host.qemu.clone(),
        guest: host.guest.clone(),
        snapshots: !host.no_snapshot,
        host_limit_s: host.host_limit,
        refresh: host.refresh,
    };
    Ok(Bench::open(options, Box::new(StandardError { quiet: host.quiet }))?)
}

impl From<LabError> for Failure {
    fn from(e: LabError) -> Self {
        Self::new(e.kind(), e)
    }
}

impl From<Failure> for LabError {
    fn from(failure: Failure) -> Self {
        match failure.kind {
            FailureKind::Usage => Self::Usage(failure.text),
            FailureKind::Cannot => Self::Cannot(failure.text),
            FailureKind::CutOff => Self::Interrupted,
            FailureKind::Bug => Self::Bug,
        }
    }
}

impl From<SearchError> for Failure {
    fn from(e: SearchError) -> Self {
        Self::new(e.kind(), e)
    }
}

impl From<Failure> for SearchError {
    fn from(failure: Failure) -> Self {
        match failure.kind {
            FailureKind::Usage => Self::Usage(failure.text),
            FailureKind::Cannot => Self::Cannot(failure.text),
            FailureKind::CutOff => Self::Interrupted(failure.text),
            FailureKind::Bug => Self::Lab(LabError::Bug),
        }
    }
}
