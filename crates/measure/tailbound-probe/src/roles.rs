// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a second process of a probe may be started as, and its life there.
//!
//! Context: SETUP, in the second process.

use tailbound_sys::process;
use tailbound_sys::spawn::TARGET_FD_MAX;

use crate::error::ProbeError;
use crate::peer::{self, FIRST_FD, Role};

/// Every role.
static ROLES: &[Role] = &[
    peer::GUARDIAN,
    crate::handover::ROLE,
    crate::scheduling::step::ROLE,
    crate::scheduling::process::ROLE,
];

/// The body of the hidden verb.
///
/// # Errors
/// No such role, or what kept it from its work.
pub fn run_peer(role: &str, descriptors: u32, words: &[String]) -> Result<(), ProbeError> {
    let Some(role) = ROLES.iter().find(|r| r.name == role) else {
        return Err(ProbeError::UnknownPeer { role: role.to_owned() });
    };
    let end = FIRST_FD.saturating_add(i32::try_from(descriptors).unwrap_or(0));
    let mut own = Vec::new();
    for raw in FIRST_FD..end.min(TARGET_FD_MAX + 1) {
        own.push(process::inherited(raw)?);
    }
    // The duplicates are close-on-exec, and the line of a guardian must be held once only.
    Ok((role.run)(words, own)?)
}
