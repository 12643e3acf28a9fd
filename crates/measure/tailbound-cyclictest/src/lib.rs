// SPDX-License-Identifier: MIT OR Apache-2.0
//! cyclictest's options and output, measured by tailbound: for scripts that were written for cyclictest.
//!
//! Context: SETUP and COLD; the measured threads are `tailbound-probe`'s. Units: those of cyclictest (µs, or ns with `-N`)
//! where nothing else stands.
//! Not here: files that cyclictest wrote (`tailbound-import`).
//! Source: cyclictest(8), output of rt-tests 2.4.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod advice;
mod call;
mod error;
mod help;
mod histogram;
mod json;
mod measure;
mod option;
mod options;
mod placement;
mod policy;
mod run_file;
mod screen;
mod status;
mod tally;
mod unit;
mod verbose;
mod words;

pub use advice::advice;
pub use call::arguments;
pub use help::options;
pub use measure::{Console, main};
pub use option::{ShellOption, ValueNeed, shell_options};
pub use run_file::OUT_VARIABLE;

#[cfg(test)]
mod tests;
