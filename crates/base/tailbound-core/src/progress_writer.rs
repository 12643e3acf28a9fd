// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where lines of progress go: a library prints nothing itself.

/// Writes lines of progress, in a program to standard error.
#[derive(Clone, Copy, Debug)]
pub struct ProgressWriter {
    /// A line that stays.
    pub note: fn(&str),
    /// A line over the last one; an empty one takes it away. `None`: this is no terminal.
    pub redraw: Option<fn(&str)>,
}
