// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's options: what they depend on, and why one was not granted.
//!
//! Not here: deciding; that is the kernel's own tool (`make olddefconfig`).

mod explain;
mod expression;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use self::explain::granted;
pub(crate) use self::tree::Tree;
