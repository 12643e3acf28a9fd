// SPDX-License-Identifier: MIT OR Apache-2.0
//! A person's share of the machine, which a fleet or an agent must not have at the same time.
//!
//! Not here: the lock (`tailbound_host::machine_lock`).

use std::time::Duration;

use tailbound_host::machine_lock::{self, NotFree, Shared};

use crate::say::{self, Failure};

const LOOK: Duration = Duration::from_millis(500);

/// What is done while a fleet or an agent measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhileHeld {
    /// It is an error.
    Refuse,
    /// It is waited until that is over.
    Wait,
}

impl WhileHeld {
    /// As `--wait-for-machine` says it.
    pub(crate) fn of(wait: bool) -> Self {
        if wait { Self::Wait } else { Self::Refuse }
    }
}

/// Takes a share of the machine for as long as it lives.
pub(crate) fn share(while_held: WhileHeld) -> Result<Shared, Failure> {
    let mut told = false;
    loop {
        match machine_lock::share() {
            Ok(share) => return Ok(share),
            Err(NotFree::Held(who)) if while_held == WhileHeld::Wait => {
                if !told {
                    say::note(&format!("{who}: waits until that is over"));
                    told = true;
                }
                std::thread::park_timeout(LOOK);
            }
            Err(e) => {
                return Err(Failure::cannot(format!(
                    "{e}: two measurements at the same time disturb each other; wait until that is over (`run` and `campaign run` do with --wait-for-machine)"
                )));
            }
        }
    }
}
