// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two arms of a search: variants themselves, and their controls.

/// What is measured of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// The variant.
    Itself,
    /// The variant with a change that means nothing: what its figure differs by is noise.
    Control,
}

impl Arm {
    /// Is it the control?
    #[must_use]
    pub fn is_control(self) -> bool {
        self == Self::Control
    }
}
