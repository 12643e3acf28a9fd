// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes through the parser of `rtla-osnoise`; what is read must survive the run file.
//!
//! Finds panics, endless loops and unbounded memory; corpus in `corpus/import_rtla_osnoise`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tailbound_import::{Format, Options, import_with};

fuzz_target!(|bytes: &[u8]| {
    let options = Options { unit_ns: Some(1000), ..Options::default() };
    if let Ok(run) = import_with(Some(Format::RtlaOsnoise), "fuzz", bytes, &options) {
        let file = tailbound_core::runfile::write_run(&run, Vec::new()).expect("memory takes it");
        let back = tailbound_core::runfile::read_run(&file[..]).expect("what was written is read");
        assert!(back.threads.len() == run.threads.len() && back.findings == run.findings);
    }
});
