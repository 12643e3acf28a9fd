// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outbox as the monitor uses it.

use std::io;

use tailbound_core::units::grouped;
use tailbound_monitor::OutboxState;

use crate::outbox::Outbox;

/// An outbox, and who tells a person that run files had to go.
#[derive(Debug)]
pub struct MonitorOutbox {
    /// Where run files wait.
    pub outbox: Outbox,
    /// Takes a sentence for a person.
    pub note: fn(&str),
}

impl tailbound_monitor::Outbox for MonitorOutbox {
    fn keep(&mut self, so_far: &[u8]) -> io::Result<()> {
        self.outbox.keep(so_far)
    }

    fn put(&mut self, whole: &[u8]) -> io::Result<()> {
        let before = self.outbox.standing().dropped;
        self.outbox.put(whole)?;
        let dropped = self.outbox.standing().dropped.saturating_sub(before);
        if dropped > 0 {
            let n = grouped(dropped);
            (self.note)(&format!(
                "tailbound: monitor: the spool is full: {n} of the oldest run files removed"
            ));
        }
        Ok(())
    }

    fn state(&self) -> OutboxState {
        self.outbox.standing()
    }
}
