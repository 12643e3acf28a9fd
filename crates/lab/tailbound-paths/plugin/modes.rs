// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a CPU lets in, and whose code it returns to.
//!
//! Context: HOT.

/// Does the CPU let interrupts in?
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Interrupts {
    On,
    Off,
}

impl Interrupts {
    #[inline]
    pub const fn off_if(off: bool) -> Self {
        if off { Self::Off } else { Self::On }
    }
}

/// Whose code an instruction returns to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ReturnTo {
    Kernel,
    User,
}

impl ReturnTo {
    #[inline]
    pub const fn user_if(user: bool) -> Self {
        if user { Self::User } else { Self::Kernel }
    }
}
