// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of a hunt: what it is of, every candidate with its result, and what was tried to make the worst smaller.
//!
//! `corpus.jsonl` and `shrunk.jsonl` are JSON Lines. The first line of the corpus says what everything
//! after it depends on; candidates follow in the order of the search, whichever guest was ready first, so that a
//! corpus that was cut off is the beginning of the whole one.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tailbound_core::limits;
use tailbound_sys::new_file::{self, Existing};

use crate::error::SearchError;
use crate::hunt::{Candidate, Entry, Outcome};

/// Its file.
pub(super) const CORPUS: &str = "corpus.jsonl";
/// Version of the corpus.
pub(super) const SCHEMA: &str = "tailbound-hunt-corpus/2";

/// Everything that the lines of a corpus depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorpusHeader {
    pub(super) schema: String,
    /// The kernel's name, and what is added to its command line.
    pub(super) kernel: String,
    pub(super) append: String,
    pub(super) arch: String,
    /// Activations of each candidate.
    pub(super) loops: u64,
    /// Of the search.
    pub(super) seed: u64,
    pub(super) random: bool,
    /// Were sections watched?
    pub(super) watched: bool,
    /// How candidates are measured, where that is on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) here: Option<HereHow>,
    /// The kernel's image, the guest's program and QEMU; empty in a question that has not looked yet.
    #[serde(default)]
    pub(super) kernel_sha256: String,
    #[serde(default)]
    pub(super) guest_sha256: String,
    #[serde(default)]
    pub(super) qemu: String,
}

/// How candidates are measured on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HereHow {
    /// Length of each run.
    pub(super) run_ns: i64,
    /// Runs of each candidate.
    pub(super) rounds: u32,
    /// CPUs that are measured; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cpus: Option<String>,
}

impl CorpusHeader {
    /// What is different, in the words of the file.
    fn differing(&self, other: &Self) -> Vec<String> {
        let as_map = |h: &Self| serde_json::to_value(h).unwrap_or_default();
        let (one, two) = (as_map(self), as_map(other));
        let fields = one.as_object().into_iter().flatten();
        fields
            .filter(|(key, value)| two.get(key.as_str()) != Some(value))
            .map(|(key, value)| {
                format!("{key} {} there, {value} now", two.get(key.as_str()).unwrap_or_default())
            })
            .collect()
    }
}

/// A line of `shrunk.jsonl`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Tried {
    pub(super) candidate: Candidate,
    pub(super) outcome: Outcome,
}

/// The folder.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    corpus: File,
    shrunk: File,
    /// What was there.
    pub(super) entries: Vec<Entry>,
    pub(super) tried: Vec<Tried>,
}

fn failed(path: &Path, e: impl std::fmt::Display) -> SearchError {
    SearchError::File { path: path.to_owned(), why: e.to_string() }
}

/// What the hunt in this folder is of, if there is one.
pub(super) fn header(folder: &Path) -> Result<Option<CorpusHeader>, SearchError> {
    let path = folder.join(CORPUS);
    if !path.exists() {
        return Ok(None);
    }
    let text = text(&path)?;
    let first = text.lines().next().unwrap_or_default();
    let header: CorpusHeader = serde_json::from_str(first)
        .map_err(|source| SearchError::NoHunt { path: path.clone(), source })?;
    if header.schema != SCHEMA {
        return Err(SearchError::OtherVersion { path, schema: header.schema, ours: SCHEMA });
    }
    Ok(Some(header))
}

fn text(path: &Path) -> Result<String, SearchError> {
    tailbound_sys::given::text(path, limits::RESULT_BYTES_MAX).map_err(|e| failed(path, e))
}

/// The whole lines of a file; what a cut left behind them is taken away.
fn lines<T: for<'a> Deserialize<'a>>(path: &Path, skip: usize) -> Result<Vec<T>, SearchError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = text(path)?;
    let whole = text.rfind('\n').map_or(0, |at| at + 1);
    if whole < text.len() {
        let file = OpenOptions::new().write(true).open(path).map_err(|e| failed(path, e))?;
        file.set_len(whole as u64).map_err(|e| failed(path, e))?;
    }
    let all = text.get(..whole).unwrap_or_default().lines().enumerate().skip(skip);
    all.map(|(nth, line)| {
        serde_json::from_str(line).map_err(|source| SearchError::CorpusLine {
            path: path.to_owned(),
            line: nth + 1,
            source,
        })
    })
    .collect()
}

impl Folder {
    /// Opens or makes it for this hunt.
    pub(super) fn open(path: &Path, header: &CorpusHeader) -> Result<Self, SearchError> {
        let corpus = path.join(CORPUS);
        let shrunk = path.join("shrunk.jsonl");
        let there = self::header(path)?;
        if let Some(there) = &there
            && there != header
        {
            let differing = header.differing(there);
            return Err(SearchError::OtherHunt { path: path.to_owned(), differing });
        }
        fs::create_dir_all(path).map_err(|e| failed(path, e))?;
        let entries = lines(&corpus, 1)?;
        let tried = lines(&shrunk, 0)?;
        let append = |path: &Path| {
            if !path.exists() {
                new_file::write(path, Existing::Keep, &[]).map_err(|e| failed(path, e))?;
            }
            let file = OpenOptions::new().append(true).open(path);
            file.map_err(|e| failed(path, e))
        };
        let mut it = Self {
            path: path.to_owned(),
            corpus: append(&corpus)?,
            shrunk: append(&shrunk)?,
            entries,
            tried,
        };
        if there.is_none() {
            add(&mut it.corpus, header).map_err(|e| failed(&corpus, e))?;
        }
        Ok(it)
    }

    /// A candidate more.
    pub(super) fn keep(&mut self, entry: &Entry) -> Result<(), SearchError> {
        add(&mut self.corpus, entry).map_err(|e| failed(&self.path, e))
    }

    /// A step more.
    pub(super) fn keep_tried(&mut self, tried: &Tried) -> Result<(), SearchError> {
        add(&mut self.shrunk, tried).map_err(|e| failed(&self.path, e))?;
        self.tried.push(tried.clone());
        Ok(())
    }
}

/// One write a line: what is killed in between leaves whole lines, or one that is cut off.
fn add(file: &mut File, line: &impl Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    file.write_all(text.as_bytes())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::hunt_runs) fn some() -> CorpusHeader {
        CorpusHeader {
            schema: SCHEMA.to_owned(),
            kernel: "debian:6.12".to_owned(),
            append: String::new(),
            arch: "x86_64".to_owned(),
            loops: 400,
            seed: 1,
            random: false,
            watched: true,
            here: None,
            kernel_sha256: "k".to_owned(),
            guest_sha256: "g".to_owned(),
            qemu: "7.2".to_owned(),
        }
    }

    #[test]
    fn a_line_that_was_cut_off_is_taken_away_and_another_hunt_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hunt");
        let candidate = Candidate { loads: Vec::new(), interval_ns: 250_000, seed: 1 };
        let entry = Entry {
            nr: 0,
            origin: crate::hunt::Origin::Base,
            candidate,
            outcome: Outcome::Failed("no".to_owned()),
        };
        let mut open = Folder::open(&path, &some()).expect("a folder");
        open.keep(&entry).expect("kept");
        drop(open);
        let corpus = path.join("corpus.jsonl");
        let whole = fs::read_to_string(&corpus).expect("a corpus");
        fs::write(&corpus, format!("{whole}{{\"nr\":1,")).expect("written");
        let open = Folder::open(&path, &some()).expect("the same folder");
        assert_eq!(open.entries, [entry]);
        assert_eq!(fs::read_to_string(&corpus).expect("a corpus"), whole);
        let other = CorpusHeader { seed: 2, ..some() };
        let why = Folder::open(&path, &other).expect_err("another hunt").to_string();
        assert!(why.contains("seed 1 there, 2 now"), "{why}");
        let older = whole.replace(SCHEMA, "tailbound-hunt-corpus/1");
        fs::write(&corpus, older).expect("written");
        let why = Folder::open(&path, &some()).expect_err("an older hunt").to_string();
        assert!(why.contains("another version (tailbound-hunt-corpus/1;"), "{why}");
        fs::write(&corpus, format!("{whole}{{}}\n")).expect("written");
        let why = Folder::open(&path, &some()).expect_err("no line of a corpus").to_string();
        assert!(why.contains("line 3"), "{why}");
    }
}
