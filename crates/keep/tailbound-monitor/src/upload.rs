// SPDX-License-Identifier: MIT OR Apache-2.0
//! Windows become run files, and these go to an outbox.
//!
//! Units: ns. After each window the file so far is kept: a cut of the power costs one window. A file that could not be
//! kept (a full disk) goes on, and is given again with the next window.
//! Not here: what is in a run file (`runfile`).

use tailbound_core::EndReason;

use crate::clocks::Clocks;
use crate::outbox::{Outbox, OutboxState};
use crate::runfile::{About, Draft};
use crate::window::Window;

/// What is wanted of it.
pub struct Upload {
    /// Length of a run file; it ends with a window.
    pub every_ns: i64,
    /// The command line, for the file.
    pub command: Vec<String>,
    /// Where the files go.
    pub outbox: Box<dyn Outbox>,
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upload").field("every_ns", &self.every_ns).finish_non_exhaustive()
    }
}

/// See the module.
pub(crate) struct Uploading {
    about: About,
    every_ns: i64,
    outbox: Box<dyn Outbox>,
    draft: Draft,
    /// Files that had to go, as a file has told it.
    dropped_told: u64,
}

impl Uploading {
    pub(crate) fn begin(about: About, wanted: Upload, now: Clocks) -> Self {
        let draft = Draft::new(&about, now);
        let dropped_told = wanted.outbox.state().dropped;
        Self { about, every_ns: wanted.every_ns, outbox: wanted.outbox, draft, dropped_told }
    }

    /// How the files stand.
    pub(crate) fn state(&self) -> OutboxState {
        self.outbox.state()
    }

    /// Adds a window that ended at `now`; of a last one `end` says why.
    ///
    /// # Errors
    /// The file could not be kept.
    pub(crate) fn add(
        &mut self,
        window: &Window,
        now: &Clocks,
        end: Option<EndReason>,
    ) -> std::io::Result<()> {
        self.draft.add(window, now);
        let length_ns = now.monotonic_ns.saturating_sub(self.draft.began().monotonic_ns);
        // A window may end somewhat later than it should, never before.
        let is_over = length_ns >= self.every_ns;
        let Some(reason) = end.or_else(|| is_over.then_some(EndReason::Complete)) else {
            return self.outbox.keep(&self.draft.so_far()?);
        };
        let dropped = self.outbox.state().dropped;
        let new = dropped.saturating_sub(self.dropped_told);
        self.outbox.put(&self.draft.whole(reason, now, new)?)?;
        self.dropped_told = dropped;
        self.draft = Draft::new(&self.about, *now);
        Ok(())
    }
}
