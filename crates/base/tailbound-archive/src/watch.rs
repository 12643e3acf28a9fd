// SPDX-License-Identifier: MIT OR Apache-2.0
//! What ends the unpacking of an archive before its end: time, and signals.

use std::time::Instant;

use tailbound_sys::signal;

use crate::error::ArchiveError;
use crate::limits::Limits;

/// Looks at the clock and for signals on the way.
pub(crate) struct Watch {
    began: Instant,
    limits: Limits,
}

impl Watch {
    pub(crate) fn begin(limits: &Limits) -> Self {
        Self { began: Instant::now(), limits: *limits }
    }

    pub(crate) fn check(&self) -> Result<(), ArchiveError> {
        if signal::pending().is_some() {
            return Err(ArchiveError::Interrupted);
        }
        if self.began.elapsed() > self.limits.time {
            return Err(ArchiveError::Time { seconds: self.limits.time.as_secs() });
        }
        Ok(())
    }
}
