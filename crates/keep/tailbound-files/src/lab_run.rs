// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run of the lab with all its lines, and the bytes of its file.

use std::io::Read as _;
use std::path::Path;

use tailbound_core::Run;
use tailbound_core::limits::RESULT_BYTES_MAX;
use tailbound_core::runfile;

use crate::error::FilesError;
use crate::read;

/// The run in `path`, and the bytes of its file as they were before a watched run added to them.
///
/// # Errors
/// It cannot be read, or was not made in the lab.
pub fn lab_run(path: &Path) -> Result<(Run, Vec<u8>), FilesError> {
    let mut bytes = Vec::new();
    let mut source = read::open(path)?.0.take(RESULT_BYTES_MAX + 1);
    source.read_to_end(&mut bytes).map_err(|e| FilesError::of(path, &e))?;
    if bytes.len() as u64 > RESULT_BYTES_MAX {
        let most = RESULT_BYTES_MAX >> 20;
        return Err(FilesError::of(path, &format!("no run of the lab has more than {most} MiB")));
    }
    if !runfile::is_run_file(&bytes) {
        return Err(FilesError::NotOfLab(path.to_owned()));
    }
    let mut run = runfile::read_run(bytes.as_slice()).map_err(|e| FilesError::of(path, &e))?;
    if run.header.lab.is_none() {
        return Err(FilesError::NotOfLab(path.to_owned()));
    }
    if run.paths.take().is_some() {
        bytes = runfile::write_run(&run, Vec::new()).map_err(|e| FilesError::of(path, &e))?;
    }
    Ok((run, bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_run_of_the_lab_is_read_with_every_line_and_its_plain_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let plain =
            include_bytes!("../../../tailbound/tests/hostile/data/run.tailbound.jsonl").as_slice();
        let lab =
            include_bytes!("../../../tailbound/tests/hostile/data/lab.tailbound.jsonl").as_slice();
        let mut run = runfile::read_run(plain).unwrap();
        run.header.lab = runfile::read_run(lab).unwrap().header.lab;
        let text = runfile::write_run(&run, Vec::new()).unwrap();
        let path = folder.path().join("r.jsonl.gz");
        let kept = |text: &[u8]| {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packer.write_all(text).unwrap();
            std::fs::write(&path, packer.finish().unwrap()).unwrap();
        };
        kept(&text);
        let (run, bytes) = lab_run(&path).unwrap();
        assert!(!run.raw.is_empty() && bytes == text);
        for other in [plain, b"of no tool"] {
            kept(other);
            let told = lab_run(&path).expect_err("not of the lab").to_string();
            assert!(told.ends_with("was not made in the lab"), "{told}");
        }
    }
}
