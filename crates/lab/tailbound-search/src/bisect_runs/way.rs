// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every kind of search is given.

use tailbound_lab::Bench;
use tailbound_lab::matrix::RunReader;

use super::BisectOptions;

/// What every search is given.
pub(super) struct Way<'a> {
    pub(super) bench: &'a Bench<'a>,
    pub(super) kind: &'static str,
    pub(super) options: &'a BisectOptions,
    pub(super) read: &'a RunReader<'a>,
}
