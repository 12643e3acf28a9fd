// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of boards from the log of a console, or from the serial port itself.
//!
//! Units: baud, bytes. A log is anybody's: what is in it is checked, and a run that is not whole is never written as if it were.

use std::fmt::Write as _;
use std::io::Read as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tailbound_core::frames::{Collector, Received, StreamState};
use tailbound_core::{envelope, printable, runfile, units};
use tailbound_sys::serial::{SerialPort, Wanted};
use tailbound_sys::signal::{self, Signals};
use tailbound_sys::{free_name, given, new_file};

use super::{BoardAnswer, BoardWords, output};
use crate::error::{BoardError, LabError};

const OUT: &str = "board.tailbound.jsonl";
/// The run within the envelope, as `tailbound-guest` calls it.
const RUN: &str = "run";
const COMPLAINT: &str = "stderr";
/// Most lines of what went wrong on a board that are shown.
const WORDS_MAX: usize = 20;
const BAUD: u32 = 115_200;
const WAIT: &str = "1h";
const LOOK_NS: i64 = 250_000_000;
const PROGRESS_EVERY: Duration = Duration::from_secs(5);
const PIECE_BYTES: usize = 64 << 10;
/// Exit statuses of what came, the worst last.
const WHOLE: u8 = 0;
const NO_RUN: u8 = 3;
const CUT_OFF: u8 = 5;

/// What a stream of a log holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandedRun {
    /// The run file, as far as it is there; none: there is no run in it.
    pub run: Option<Vec<u8>>,
    /// Whole, or its beginning.
    pub state: StreamState,
    /// What the board said last; none: that was lost.
    pub end: Option<String>,
    /// What went wrong on the board.
    pub words: Vec<String>,
}

/// Takes a stream apart.
#[must_use]
pub fn handed(received: &Received) -> HandedRun {
    let envelope = envelope::read(&received.content);
    let at = envelope.files.iter().position(|(name, _)| name == RUN);
    // What is behind another file is whole.
    let last = envelope.files.len().saturating_sub(1);
    let whole = envelope.end.is_some() || at.is_some_and(|at| at < last);
    let mut state = if whole { StreamState::Whole } else { StreamState::CutOff };
    let bytes = at.and_then(|at| envelope.files.get(at)).map(|(_, bytes)| *bytes);
    // Whole lines alone.
    let lines = |bytes: &[u8]| {
        let end = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        bytes.get(..end).unwrap_or_default().to_vec()
    };
    let run = bytes.map(lines).filter(|bytes| runfile::read_run(bytes.as_slice()).is_ok());
    if run.is_none() && envelope.end.is_none() {
        state = StreamState::Lost;
    }
    // Without a run the complaint of the tool is what there is to know.
    let complaint = envelope.file(COMPLAINT).filter(|_| run.is_none()).unwrap_or_default();
    let said = [envelope.file("words").unwrap_or_default(), b"\n", complaint].concat();
    let words = String::from_utf8_lossy(&said).lines().take(WORDS_MAX).map(str::to_owned).collect();
    HandedRun { run, state, end: envelope.end, words }
}

/// Reads the log, writes the runs in it.
///
/// # Errors
/// It cannot be read, or holds no line of a board; a run cannot be written.
pub(super) fn receive(words: &BoardWords, note: &dyn Fn(&str)) -> Result<BoardAnswer, LabError> {
    let from = words.path("from").unwrap_or_else(|| PathBuf::from("-"));
    let collector = match is_port(&from) {
        true => of_port(&from, words, note)?,
        false => of_file(&from)?,
    };
    let damaged = collector.damaged();
    let streams = collector.finish();
    if streams.is_empty() {
        return Err(BoardError::NoLines { from: from.display().to_string(), damaged }.into());
    }
    let (out, existing) = output(words);
    let given = out.is_some();
    let first = out.unwrap_or_else(|| OUT.into());
    let mut names = free_name::numbered(&first);
    let (mut text, mut status) = (String::new(), WHOLE);
    for received in &streams {
        let handed = handed(received);
        let mut place = None;
        if let Some(run) = &handed.run {
            let free = names.find(|path| given || free_name::is_free(path));
            let path = free.unwrap_or_else(|| OUT.into());
            new_file::write(&path, existing, run).map_err(|e| LabError::unwritten(&path, e))?;
            place = Some(path);
        }
        text.push_str(&told(received, &handed, place.as_deref()));
        status = status.max(match (handed.state, &handed.run) {
            (StreamState::Whole, Some(_)) => WHOLE,
            (StreamState::Whole, None) => NO_RUN,
            _ => CUT_OFF,
        });
    }
    if damaged > 0 {
        let _ = writeln!(text, "Damaged    {damaged} lines of the log");
    }
    Ok(BoardAnswer { text, status })
}

/// What is said of one stream.
fn told(received: &Received, handed: &HandedRun, place: Option<&Path>) -> String {
    let Received { stream, lines, arrived, restored, lost, .. } = received;
    let mut text = match (place, handed.state) {
        (Some(path), StreamState::Whole) => format!("Run file   {}\n", path.display()),
        (Some(path), _) => {
            format!(
                "Run file   {}: cut off, a shorter run up to the first lost line\n",
                path.display()
            )
        }
        (None, StreamState::Whole) => "No run     the board brought none\n".to_owned(),
        (None, _) => "No run     its beginning is lost\n".to_owned(),
    };
    let _ = write!(text, "Lines      {arrived} of {lines} of stream {stream:08x}");
    if *restored > 0 {
        let _ = write!(text, ", {restored} made again from the others");
    }
    if !lost.is_empty() {
        let range = |r: &std::ops::RangeInclusive<u32>| match r.start() == r.end() {
            true => r.start().to_string(),
            false => format!("{}–{}", r.start(), r.end()),
        };
        let ranges: Vec<String> = lost.iter().map(range).collect();
        let _ = write!(text, "; lost: {}", ranges.join(", "));
    }
    text.push('\n');
    let end = handed.end.as_deref().unwrap_or("unknown: its last words are lost");
    let _ = writeln!(text, "Board      {}", printable::line(end));
    for word in handed.words.iter().filter(|word| !word.trim().is_empty()) {
        let _ = writeln!(text, "           {}", printable::line(word));
    }
    text
}

fn is_port(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.file_type().is_char_device())
}

fn of_file(path: &Path) -> Result<Collector, LabError> {
    let failed = |e| LabError::file(path, e);
    let mut reader = match path == Path::new("-") {
        true => given::Reader::stdin(),
        false => given::Reader::open(path),
    }
    .map_err(failed)?;
    let mut collector = Collector::default();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match reader.read(&mut piece).map_err(failed)? {
            0 => return Ok(collector),
            n => collector.push(piece.get(..n).unwrap_or_default()),
        }
    }
}

/// Until a board has sent everything, a signal comes, or the time is over.
fn of_port(path: &Path, words: &BoardWords, note: &dyn Fn(&str)) -> Result<Collector, LabError> {
    let baud = words
        .text("baud")
        .map_or(Ok(BAUD), |text| text.parse().map_err(|_| BoardError::Baud(text)))?;
    let wait = words.text("wait").unwrap_or_else(|| WAIT.to_owned());
    let wait_ns = units::parse_ns(&wait).map_err(|source| BoardError::Limit { source })?;
    let wait = Duration::from_nanos(u64::try_from(wait_ns).unwrap_or_default());
    let failed = |source| BoardError::Port { path: path.to_owned(), source };
    let _signals = Signals::block_and_open().map_err(failed)?;
    let mut port = SerialPort::open(path, baud).map_err(failed)?;
    note(&format!("{}: waits for a board; Ctrl-C ends", path.display()));
    let mut collector = Collector::default();
    let mut piece = vec![0; PIECE_BYTES];
    let (begun, mut said) = (Instant::now(), Instant::now());
    while !collector.is_ended() && begun.elapsed() < wait && signal::pending().is_none() {
        port.wait(Wanted::Bytes, LOOK_NS).map_err(failed)?;
        collector.push(port.read(&mut piece).map_err(failed)?);
        if let Some((arrived, lines)) =
            collector.progress().filter(|_| said.elapsed() > PROGRESS_EVERY)
        {
            said = Instant::now();
            note(&format!("{arrived} of {lines} lines"));
        }
    }
    Ok(collector)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_core::frames;

    fn log(status: &str) -> Vec<String> {
        let mut envelope = Vec::new();
        let run = include_bytes!("../../../../tailbound/tests/hostile/data/run.tailbound.jsonl");
        envelope::write_file(&mut envelope, RUN, run).unwrap();
        envelope::write_file(&mut envelope, "stderr", b"").unwrap();
        envelope::write_file(&mut envelope, "words", b"no loopback").unwrap();
        envelope::write_end(&mut envelope, status).unwrap();
        frames::lines(&envelope)
    }

    fn answered(lines: &[String]) -> (BoardAnswer, Vec<Vec<u8>>) {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).into_os_string();
        std::fs::write(path("log"), lines.join("\r\n")).unwrap();
        let words = [("from", vec![path("log")]), ("out", vec![path("a.tailbound.jsonl")])];
        let answer = receive(&BoardWords(words.into()), &|_| ()).unwrap();
        let files = ["a.tailbound.jsonl", "a-2.tailbound.jsonl"].map(|n| std::fs::read(path(n)));
        (answer, files.into_iter().flatten().collect())
    }

    #[test]
    fn runs_of_a_log_are_written_and_what_is_lost_is_named() {
        let all = log("exit status 0");
        let (answer, files) = answered(&all);
        assert_eq!((answer.status, files.len()), (WHOLE, 1));
        assert!(answer.text.contains("no loopback"), "{}", answer.text);
        let (_, two) = answered(&[all.clone(), log("exit status 1")].concat());
        assert_eq!(two, [files[0].clone(), files[0].clone()]);
        // Beyond what parity can mend: the second half.
        let half: Vec<String> = all[..all.len() / 2].to_vec();
        let (answer, shorter) = answered(&half);
        assert_eq!((answer.status, shorter.len()), (CUT_OFF, 1));
        assert!(files[0].starts_with(&shorter[0]) && shorter[0].len() < files[0].len());
        assert!(
            answer.text.contains("lost: ") && answer.text.contains("cut off"),
            "{}",
            answer.text
        );
        let (answer, none) = answered(&all[1..all.len() / 2]);
        assert_eq!((answer.status, none.len()), (CUT_OFF, 0));
        assert!(answer.text.contains("beginning is lost"), "{}", answer.text);
    }

    #[test]
    fn a_board_without_a_run_says_why() {
        let mut envelope = Vec::new();
        envelope::write_file(&mut envelope, COMPLAINT, b"CPU 7 does not exist").unwrap();
        envelope::write_end(&mut envelope, "failed: no \x1b[31mmemory").unwrap();
        let (answer, files) = answered(&frames::lines(&envelope));
        assert_eq!((answer.status, files.len()), (NO_RUN, 0));
        assert!(answer.text.contains("CPU 7"), "{}", answer.text);
        assert!(answer.text.contains("memory") && !answer.text.contains('\x1b'), "{}", answer.text);
    }
}
