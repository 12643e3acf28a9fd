// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stretch of the guest's time that something is looked for in.
//!
//! Units: ns of the guest's clock.

/// From one instant to another, both of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GuestWindow {
    /// Its first instant.
    pub from_ns: u64,
    /// Its last instant.
    pub to_ns: u64,
}

impl GuestWindow {
    /// How long it is.
    #[must_use]
    pub fn length_ns(self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    /// Does the instant lie in it?
    #[must_use]
    pub fn holds(self, t_ns: u64) -> bool {
        (self.from_ns..=self.to_ns).contains(&t_ns)
    }
}
