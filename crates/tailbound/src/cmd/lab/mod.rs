// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab`: kernels in virtual time.

pub(super) mod bench;
mod cache;
mod kernel;
mod matrix;
mod paths;
mod qemu;
mod repeat;
pub(super) mod request;
mod run;
mod why;

use std::process::ExitCode;

use crate::cli_lab::Lab;
use crate::cmd::{bisect, hunt};
use crate::say::Failure;

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
