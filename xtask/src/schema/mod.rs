// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks run files against the published schema of their lines.
//!
//! The tests hold the schema and the reader of `tailbound-core` against each
//! other: what one accepts, the other must accept.

mod check;
#[cfg(test)]
mod tests;
mod validate;

pub(crate) use check::{check_run, command};
