// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kinds of files that strangers, other programs and killed ones leave, and who reads them.
//!
//! A reader hands what it read to all that makes answers of it. Nothing here is done to the machine.

#[cfg(feature = "server")]
mod farm;
mod kept;
mod machine;
mod trace;
mod written;

use std::path::Path;

use crate::mutate::Random;

/// Reads one file: was it read (or refused), or what is wrong with what came of it?
pub(crate) type Reader = Box<dyn FnMut(&[u8], &mut Random) -> Result<bool, String>>;

/// One kind of file.
pub(crate) struct Kind {
    /// The name of its test.
    pub(crate) name: &'static str,
    /// Its part of all files.
    pub(crate) share: u64,
    /// Words and lines.
    pub(crate) texts: bool,
    pub(crate) samples: fn() -> Vec<Vec<u8>>,
    pub(crate) reader: fn() -> Reader,
}

/// All of them.
pub(crate) const KINDS: &[Kind] = &[
    trace::FILE,
    trace::PAGES,
    trace::PERF,
    trace::TEXTS,
    machine::ARCHIVES,
    machine::CONTENTS,
    written::PLANS,
    written::CAMPAIGNS,
    written::MODELS,
    written::PROFILES,
    written::TOOLS,
    written::RUNS,
    kept::BOARDS,
    kept::TUNE_PLANS,
    kept::TUNE_JOURNALS,
    kept::BISECT_JOURNALS,
    kept::CORPORA,
    kept::BOUNDS,
    #[cfg(feature = "server")]
    farm::TARGETS,
    #[cfg(feature = "server")]
    farm::SYSTEMS,
    #[cfg(feature = "server")]
    farm::POLICIES,
];

/// Files below the sources of the workspace.
fn sample(path: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
