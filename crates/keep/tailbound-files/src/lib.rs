// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of runs: read whoever wrote them, written without destroying others, signed.
//!
//! ```text
//! read.rs    a run of a file of ours or of another tool    folder.rs  the run files of a folder
//! write.rs   result files                                  named.rs   what people call a file
//! signature.rs  keys and signatures                      free_names.rs  names that nobody gave
//! lab_run.rs  a run of the lab with all its lines        progress_line.rs  how far the reading is
//! trace.rs   traces of other tools, told from runs
//! ```
//! Standard input and output, progress and what a person is told are the caller's.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod error;
pub mod folder;
pub mod free_names;
mod lab_run;
pub mod named;
mod progress_line;
pub mod read;
pub mod signature;
pub mod trace;
pub mod write;

pub use error::FilesError;
pub use lab_run::lab_run;
pub use progress_line::ReadingLine;
