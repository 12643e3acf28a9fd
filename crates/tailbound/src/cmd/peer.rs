// SPDX-License-Identifier: MIT OR Apache-2.0
//! `peer`: the hidden verb of a probe's second process.

use std::process::ExitCode;

use tailbound_core::FailureKind;

use crate::say::Failure;

/// `tailbound peer`
pub(crate) fn peer(role: &str, descriptors: u32, words: &[String]) -> Result<ExitCode, Failure> {
    match tailbound_probe::run_peer(role, descriptors, words) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(e) if e.kind() == FailureKind::Usage => Err(Failure::usage(e)),
        Err(e) => Err(Failure::cannot(format!("peer {role}: {e}"))),
    }
}
