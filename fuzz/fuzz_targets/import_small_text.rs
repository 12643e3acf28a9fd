// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes through the parsers of outputs of a few lines; what is read must survive the run file.
//!
//! The first byte chooses the parser. Finds panics, endless loops and unbounded memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tailbound_import::{Format, Options, import_with};

const FORMATS: [Format; 10] = [
    Format::Hwlatdetect,
    Format::CyclicdeadlineText,
    Format::CyclicdeadlineJson,
    Format::RtTestsText,
    Format::LatmusText,
    Format::Sysjitter,
    Format::HdrHistogram,
    Format::RtlaTop,
    Format::RtlaAnalysis,
    Format::LatencyTrace,
];

fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let format = FORMATS[usize::from(*first) % FORMATS.len()];
    let options = Options { unit_ns: Some(1000), ..Options::default() };
    if let Ok(run) = import_with(Some(format), "fuzz", bytes, &options) {
        let file = tailbound_core::runfile::write_run(&run, Vec::new()).expect("memory takes it");
        let back = tailbound_core::runfile::read_run(&file[..]).expect("what was written is read");
        assert!(back.threads.len() == run.threads.len() && back.findings == run.findings);
    }
});
