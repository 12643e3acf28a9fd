// SPDX-License-Identifier: MIT OR Apache-2.0
//! A person's share of the machine, which a fleet or an agent must not have at the same time.
//!
//! Not here: the lock (`tailbound_host::machine_lock`).

use tailbound_host::machine_lock::{Shared, share_when};

use crate::say::{self, Failure};

pub(crate) use tailbound_host::machine_lock::WhileHeld;

/// Takes a share of the machine for as long as it lives.
pub(crate) fn share(while_held: WhileHeld) -> Result<Shared, Failure> {
    share_when(while_held, say::note).map_err(Failure::cannot)
}
