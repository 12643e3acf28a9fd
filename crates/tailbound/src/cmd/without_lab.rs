// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the program for boards answers where the laboratory is asked for.

use crate::say::Failure;

/// `asked` needs the laboratory.
pub(crate) fn told(asked: &str) -> Failure {
    Failure::cannot(format!(
        "{asked}: this program is for boards and has no laboratory; `make build` builds one with it, for a machine with QEMU"
    ))
}
