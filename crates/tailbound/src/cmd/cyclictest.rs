// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cyclictest`, also when the program is called by that name.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::say::{self, Failure};

pub(crate) fn cyclictest(words: Vec<OsString>) -> Result<ExitCode, Failure> {
    let (out, note) = (&mut std::io::stdout(), &mut say::note);
    Ok(tailbound_cyclictest::main(&words, tailbound_cyclictest::Console { out, note }))
}
