// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a run from a file of ours or of any tool that `import` knows, and writes result
//! files without destroying old ones.

use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tailbound_archive::{Packing, plain_name};
use tailbound_core::Run;
use tailbound_core::limits;
use tailbound_core::runfile;
use tailbound_import::{Format, Options};
use tailbound_sys::given;
use tailbound_sys::new_file::{self, Existing, NewFile};
use tailbound_sys::signal::Signals;

use crate::folder;
use crate::reading::Reading;
use crate::say::{self, Failure};

/// From one word about the progress to the next.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);

/// The type of the lines that hold raw samples.
const RAW: &str = "raw";

/// A run file, or another tool's file, which is imported.
///
/// Without its raw samples: no page shows them.
pub(crate) fn run(path: &Path) -> Result<Run, Failure> {
    run_without(path, &[RAW])
}

/// A run of the lab with all its lines, and the bytes of its file as they were before a watched run added to them.
#[cfg(any(test, feature = "lab"))]
pub(crate) fn lab_run(path: &Path) -> Result<(Run, Vec<u8>), Failure> {
    use limits::RESULT_BYTES_MAX;
    let mut bytes = Vec::new();
    let mut source = open(path)?.0.take(RESULT_BYTES_MAX + 1);
    source.read_to_end(&mut bytes).map_err(|e| failed(path, &e))?;
    if bytes.len() as u64 > RESULT_BYTES_MAX {
        let most = RESULT_BYTES_MAX >> 20;
        return Err(failed(path, &format!("no run of the lab has more than {most} MiB")));
    }
    let not_of_the_lab = || Failure::usage(format!("{} was not made in the lab", path.display()));
    if !runfile::is_run_file(&bytes) {
        return Err(not_of_the_lab());
    }
    let mut run = runfile::read_run(bytes.as_slice()).map_err(|e| failed(path, &e))?;
    if run.header.lab.is_none() {
        return Err(not_of_the_lab());
    }
    if run.paths.take().is_some() {
        bytes = runfile::write_run(&run, Vec::new()).map_err(|e| failed(path, &e))?;
    }
    Ok((run, bytes))
}

/// Several of them, in the order of `paths`, read on every CPU.
pub(crate) fn runs(paths: &[PathBuf]) -> Result<Vec<Run>, Failure> {
    runs_without(paths, &[RAW])
}

/// Several of them without the line types in `skip` (`window`, `raw`, …), which the caller
/// does not need; a verdict is kept or made as in [`run`]. Says how far it is where that takes
/// more than two seconds.
pub(crate) fn runs_without(paths: &[PathBuf], skip: &[&str]) -> Result<Vec<Run>, Failure> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(paths.len());
    let next = AtomicUsize::new(0);
    let said = Mutex::new(Instant::now());
    let work = || {
        let mut mine = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(at) else { return mine };
            let read = run_without(path, skip);
            let failed = read.is_err();
            mine.push((at, read));
            if failed {
                // Nobody begins another file; those begun are finished.
                next.store(paths.len(), Ordering::Relaxed);
            }
            if let Ok(mut last) = said.try_lock()
                && last.elapsed() > PROGRESS_EVERY
            {
                *last = Instant::now();
                say::note(&format!("read {} of {} files", at + 1, paths.len()));
            }
        }
    };
    let mut all = std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        // A panic of another thread is ours.
        others.into_iter().for_each(|t| match t.join() {
            Ok(theirs) => all.extend(theirs),
            Err(panic) => std::panic::resume_unwind(panic),
        });
        all
    });
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, run)| run).collect()
}

/// The same without the line types in `skip`.
pub(crate) fn run_without(path: &Path, skip: &[&str]) -> Result<Run, Failure> {
    let (mut source, length) = open(path)?;
    // Only our own files begin so; everything else is another tool's.
    let ours = runfile::is_run_file(source.fill_buf().map_err(|e| failed(path, &e))?);
    let mut run = if ours {
        runfile::read_run_without(source, skip).map_err(|e| failed(path, &e))?
    } else {
        imported(path, (source, length), None, &Options::default(), None)?
    };
    tailbound_stats::judge(&mut run);
    Ok(run)
}

/// Another tool's file, or one of ours, of a given or found format; one of `signals` ends the
/// reading of a long list of samples, and what was read so far is the run.
pub(crate) fn import(
    path: &Path,
    format: Option<Format>,
    options: &Options,
    signals: Option<&Signals>,
) -> Result<Run, Failure> {
    imported(path, open(path)?, format, options, signals)
}

/// As [`import`], every run of the file.
pub(crate) fn import_all(
    path: &Path,
    format: Option<Format>,
    options: &Options,
    signals: Option<&Signals>,
) -> Result<Vec<Run>, Failure> {
    let (mut source, length) = open(path)?;
    let name = name(path);
    let mut reading = Reading::new(&name, length, signals);
    let mut watch = |bytes| reading.at(bytes);
    tailbound_import::runs_of(format, &name, (&mut source, length), options, &mut watch)
        .map_err(Failure::usage)
}

type Source = BufReader<Box<dyn Read + Send>>;

/// The plain bytes of a file, unpacked where it is packed.
#[cfg(feature = "server")]
pub(crate) fn plain(path: &Path) -> Result<Source, Failure> {
    open(path).map(|(source, _)| source)
}

/// What is in the file, unpacked, and how many bytes that is where it is known.
fn open(path: &Path) -> Result<(Source, Option<u64>), Failure> {
    let source: Box<dyn Read + Send> = if path == Path::new("-") {
        Box::new(given::Reader::stdin().map_err(|e| failed(path, &e))?)
    } else {
        Box::new(given::Reader::open(path).map_err(|e| match folder::advice(path) {
            Some(advice) => failed(path, &format!("{e}{advice}")),
            None => failed(path, &e),
        })?)
    };
    let (packing, source) = Packing::open(source).map_err(|e| failed(path, &e))?;
    // Of a packed one the length is not that of what is in it.
    let length = length(path).filter(|_| packing == Packing::Plain);
    Ok((BufReader::with_capacity(1 << 16, source), length))
}

fn imported(
    path: &Path,
    (mut source, length): (Source, Option<u64>),
    format: Option<Format>,
    options: &Options,
    signals: Option<&Signals>,
) -> Result<Run, Failure> {
    let name = name(path);
    let mut reading = Reading::new(&name, length, signals);
    let mut watch = |bytes| reading.at(bytes);
    tailbound_import::import_of(format, &name, (&mut source, length), options, &mut watch)
        .map_err(Failure::usage)
}

/// All bytes of `path`, a file of words; `-` is standard input.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
    given::read(path, limits::TEXT_BYTES_MAX).map_err(|e| failed(path, &e))
}

/// Number of bytes of `path`, where it is a file that knows them.
pub(crate) fn length(path: &Path) -> Option<u64> {
    path.metadata().ok().filter(std::fs::Metadata::is_file).map(|m| m.len())
}

fn failed(path: &Path, e: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("{}: {e}", path.display()))
}

/// The name people know a file by.
pub(crate) fn name(path: &Path) -> String {
    path.file_name()
        .map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned())
}

/// `run.tailbound.jsonl` → `run` + `suffix`; of a pipe or a device, in whose folder nothing can be written, `imported` + `suffix` here.
pub(crate) fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let is_pipe = path.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir());
    // A file that is a descriptor has its own name elsewhere.
    let is_descriptor = new_file::is_own_descriptor(path) || path == Path::new("/dev/stdin");
    if is_pipe || is_descriptor || path.starts_with("/proc") {
        return PathBuf::from(format!("imported{suffix}"));
    }
    let name = name(path);
    let name = plain_name(&name);
    let stem = name
        .strip_suffix(".tailbound.jsonl")
        .or_else(|| name.rsplit_once('.').map(|(stem, _)| stem))
        .unwrap_or(name);
    path.with_file_name(format!("{stem}{suffix}"))
}

/// Writes a result file; an existing one only with `force`. `-` is standard output.
pub(crate) fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    if path == Path::new("-") {
        return crate::say::answer(text);
    }
    write_bytes(path, text.as_bytes(), force)
}

/// Writes a result file that need not be text.
pub(crate) fn write_bytes(path: &Path, bytes: &[u8], force: bool) -> Result<(), Failure> {
    new_file::write(path, Existing::replaced_if(force), bytes).map_err(|e| unwritten(path, &e))
}

/// A result file that grows while something goes on; it has its name at once, so that a kill leaves it there.
pub(crate) fn growing(path: &Path, force: bool) -> Result<Box<dyn io::Write>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdout()));
    }
    let mut new =
        NewFile::open(path, Existing::replaced_if(force)).map_err(|e| unwritten(path, &e))?;
    new.place().map_err(|e| unwritten(path, &e))?;
    let file = new.file().try_clone().map_err(|e| unwritten(path, &e))?;
    Ok(Box::new(io::BufWriter::new(file)))
}

/// May this result file be written? Looked at before work that takes long.
pub(crate) fn may_write(path: &Path, force: bool) -> Result<(), Failure> {
    if path == Path::new("-") {
        return Ok(());
    }
    new_file::may_write(path, Existing::replaced_if(force)).map_err(|e| unwritten(path, &e))
}

fn unwritten(path: &Path, e: &io::Error) -> Failure {
    let shown = path.display();
    match e.kind() {
        io::ErrorKind::AlreadyExists => Failure::usage(format!(
            "{shown} exists already: choose another name, or give --force to overwrite it"
        )),
        // A link, a folder, a device: the words are to be mended, not the machine.
        io::ErrorKind::InvalidInput => Failure::usage(format!("{shown} is not written: {e}")),
        _ => Failure::cannot(format!("{shown} cannot be written: {e}")),
    }
}

/// Files as they are named, and of folders the runs in them.
pub(crate) fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in named {
        if path.is_dir() {
            files.extend(in_folder(path)?);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

/// The runs in a folder, by name.
pub(crate) fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |e: std::io::Error| Failure::usage(format!("{}: {e}", folder.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if plain_name(&name(&path)).ends_with(".tailbound.jsonl") {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(Failure::usage(format!(
            "{}: no run files (*.tailbound.jsonl, also .gz or .zst) in this folder",
            folder.display()
        )));
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn beside_a_pipe_nothing_is_written() {
        let beside = |path: &str| sibling(Path::new(path), ".tailbound.jsonl");
        for pipe in ["/dev/stdin", "/dev/fd/63", "/proc/self/fd/0", "/dev/null"] {
            assert_eq!(beside(pipe), Path::new("imported.tailbound.jsonl"), "{pipe}");
        }
        assert_eq!(beside("a/b.txt"), Path::new("a/b.tailbound.jsonl"));
        assert_eq!(beside("/dev/shm/b.txt"), Path::new("/dev/shm/b.tailbound.jsonl"));
    }

    #[test]
    fn a_run_of_the_lab_is_read_with_every_line_and_its_plain_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let plain = include_bytes!("../tests/hostile/data/run.tailbound.jsonl").as_slice();
        let lab = include_bytes!("../tests/hostile/data/lab.tailbound.jsonl").as_slice();
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
        assert!(super::run(&path).unwrap().raw.is_empty());
        for other in [plain, b"of no tool"] {
            kept(other);
            let told = lab_run(&path).expect_err("not of the lab").text;
            assert!(told.ends_with("was not made in the lab"), "{told}");
        }
    }
}
