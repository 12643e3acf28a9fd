// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was about to be changed, and what was: one file a transaction, append only, each line
//! on the disk before the next thing is done.
//!
//! A transaction whose steps all end with a reboot lies in `/run`, which ends with
//! it too; one that changes files that stay lies in `/var/lib`. A line cut off by a kill was
//! followed by nothing, so it counts as not written.
//! Source: fsync(2), rename(2); write-ahead logging.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use tailbound_core::order;

use serde::{Deserialize, Serialize};
use tailbound_sys::{SysError, new_file, process};

use crate::machine::Moment;
use crate::step::{Plan, State};
use crate::target::Target;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entry {
    /// The first line.
    Begin {
        /// When, in UTC.
        time: String,
        /// What is to be done.
        plan: Box<Plan>,
        /// The moment, from which what began later is known; `None` where it could not be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        moment: Option<Moment>,
    },
    /// Step `step` is about to be made.
    Intent {
        /// Its place in the plan.
        step: usize,
        /// As it is now.
        old: State,
        /// What tells its folder from another of the same name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        anchor: Option<u64>,
    },
    /// It was made.
    Done {
        /// Its place in the plan.
        step: usize,
        /// As it read afterwards.
        now: State,
    },
    /// It was not made.
    Skipped {
        /// Its place in the plan.
        step: usize,
        /// Why.
        why: String,
    },
    /// All steps are made.
    Applied,
    /// A person said that it is to stay.
    Confirmed,
    /// Undoing began.
    Undoing,
    /// A step was undone, or why not.
    Undone {
        /// Its place in the plan.
        step: usize,
        /// What came of it.
        outcome: Undone,
    },
    /// What began meanwhile and inherited a change is about to be given the state before that.
    Heir {
        /// Which thread or interrupt.
        target: Target,
        /// As it is now.
        old: State,
    },
    /// Nothing is left to be done; what another writer changed was left.
    Ended {
        /// When, in UTC.
        time: String,
        /// Steps that were not put back.
        left: usize,
    },
}

/// What undoing a step came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undone {
    /// As it was before.
    Restored,
    /// It was as before already.
    Already,
    /// It is gone, and with it the change: the thread has ended, the machine was booted again.
    Gone(String),
    /// Another writer has changed it since; it was left.
    Foreign {
        /// As it is now.
        now: State,
        /// As we had left it.
        ours: State,
    },
    /// It could not be put back.
    Failed(String),
}

impl Undone {
    /// Is the setting not as it was before?
    #[must_use]
    pub fn is_left(&self) -> bool {
        matches!(self, Self::Foreign { .. } | Self::Failed(_))
    }
}

/// Where transactions are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// For what a reboot ends.
    pub volatile: PathBuf,
    /// For what stays, and for the history.
    pub lasting: PathBuf,
}

impl Places {
    /// Of the machine.
    #[must_use]
    pub fn of_machine() -> Self {
        Self { volatile: "/run/tailbound/tune".into(), lasting: "/var/lib/tailbound/tune".into() }
    }

    /// Below another folder, for trees of files.
    #[must_use]
    pub fn below(base: &Path) -> Self {
        let below = |path: PathBuf| base.join(path.strip_prefix("/").unwrap_or(&path));
        let real = Self::of_machine();
        Self { volatile: below(real.volatile), lasting: below(real.lasting) }
    }
}

/// Why the journal cannot be kept or read: nothing is changed then.
#[derive(Debug, thiserror::Error)]
#[error("the journal {}: {cause}", path.display())]
pub struct JournalError {
    path: PathBuf,
    cause: io::Error,
}

impl JournalError {
    /// Does another program have the lock? It ends with that one.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.cause.kind() == io::ErrorKind::WouldBlock
    }

    /// Is there no place for a journal?
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.cause.kind() == io::ErrorKind::NotFound
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> JournalError + '_ {
    |cause| JournalError { path: path.to_owned(), cause }
}

/// Only one program tunes at a time. Dropped, it is unlocked, unless a guard was started with it: then the guard has it.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// That of the process which started this one, left at descriptor `raw`.
    ///
    /// # Errors
    /// There is none.
    pub fn inherited(raw: i32) -> Result<Self, SysError> {
        process::inherited(raw).map(|fd| Self(File::from(fd)))
    }

    /// Unlocks it, whoever else has it.
    pub fn release(self) {
        // Where that fails it ends with the last who has it.
        drop(self.0.unlock());
    }
}

impl AsFd for Lock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Takes the lock, or says who has it.
///
/// # Errors
/// Another program tunes; the folder cannot be made.
pub fn lock(places: &Places) -> Result<Lock, JournalError> {
    make_folder(&places.volatile)?;
    let path = places.volatile.join("lock");
    let file = new_file::open_lock(&path).map_err(at(&path))?;
    file.try_lock().map_err(|_| {
        at(&path)(io::Error::new(
            io::ErrorKind::WouldBlock,
            "another tailbound is changing settings: wait until it has ended",
        ))
    })?;
    Ok(Lock(file))
}

/// A folder that root alone may look into: old values may tell about the machine.
fn make_folder(path: &Path) -> Result<(), JournalError> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at(path))
}

/// One transaction, as its file tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its number: higher is later.
    pub number: u32,
    /// Its file.
    pub path: PathBuf,
    /// Its lines.
    pub entries: Vec<Entry>,
}

impl Transaction {
    /// What was to be done.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        self.entries.iter().find_map(|e| match e {
            Entry::Begin { plan, .. } => Some(plan.as_ref()),
            _ => None,
        })
    }

    /// The moment at which it began.
    #[must_use]
    pub fn moment(&self) -> Option<&Moment> {
        self.entries.iter().find_map(|e| match e {
            Entry::Begin { moment, .. } => moment.as_ref(),
            _ => None,
        })
    }

    /// When it began.
    #[must_use]
    pub fn time(&self) -> &str {
        self.entries
            .iter()
            .find_map(|e| match e {
                Entry::Begin { time, .. } => Some(time.as_str()),
                _ => None,
            })
            .unwrap_or_default()
    }

    /// Is there nothing left to be undone? One that was killed before its first line was whole has
    /// done nothing.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.entries.is_empty() || self.entries.iter().any(|e| matches!(e, Entry::Ended { .. }))
    }

    /// Were all steps made?
    #[must_use]
    pub fn is_applied(&self) -> bool {
        self.entries.contains(&Entry::Applied)
    }

    /// Did a person say that it is to stay?
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.entries.contains(&Entry::Confirmed)
    }

    /// Did undoing begin?
    #[must_use]
    pub fn is_undoing(&self) -> bool {
        self.entries.contains(&Entry::Undoing)
    }

    /// Each step that may have been made and was not put back, in order: its place, the state before, the
    /// state after where it is known, its folder.
    #[must_use]
    pub fn made(&self) -> Vec<Made> {
        let is_undone = |made: &Made| {
            let of = |e: &Entry| matches!(e, Entry::Undone { step, outcome } if *step == made.step && !outcome.is_left());
            self.entries.iter().any(of)
        };
        self.made_ever().into_iter().filter(|m| !is_undone(m)).collect()
    }

    /// The same, with those that were put back since.
    pub(crate) fn made_ever(&self) -> Vec<Made> {
        let mut made: Vec<Made> = Vec::new();
        for entry in &self.entries {
            match entry {
                Entry::Intent { step, old, anchor } => {
                    made.push(Made { step: *step, old: old.clone(), now: None, anchor: *anchor })
                }
                Entry::Done { step, now } => {
                    if let Some(last) = made.iter_mut().rev().find(|m| m.step == *step) {
                        last.now = Some(now.clone());
                    }
                }
                Entry::Skipped { step, .. } => made.retain(|m| m.step != *step),
                _ => {}
            }
        }
        made
    }
}

/// A step that may have been made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its place in the plan.
    pub step: usize,
    /// As it was before.
    pub old: State,
    /// As it read afterwards; `None` where a kill came in between.
    pub now: Option<State>,
    /// What tells its folder from another of the same name.
    pub anchor: Option<u64>,
}

/// Every transaction there is, in order.
///
/// # Errors
/// A folder or file cannot be read.
pub fn all(places: &Places) -> Result<Vec<Transaction>, JournalError> {
    let mut found = Vec::new();
    for folder in [&places.volatile, &places.lasting] {
        let names = match fs::read_dir(folder) {
            Ok(names) => names,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(at(folder)(e)),
        };
        for name in names.filter_map(Result::ok) {
            let path = name.path();
            let number = path
                .file_name()
                .and_then(|n| n.to_str()?.strip_suffix(".jsonl")?.parse::<u32>().ok());
            if let Some(number) = number {
                let entries = read(&path)?;
                found.push(Transaction { number, path, entries });
            }
        }
    }
    // A kill between the copy into the history and the removal leaves both.
    order::by_key(&mut found, |t| t.number);
    found.dedup_by_key(|t| t.number);
    Ok(found)
}

/// The number of the transaction after `all`.
pub(crate) fn next_number(all: &[Transaction]) -> u32 {
    all.last().map_or(1, |t| t.number.saturating_add(1))
}

fn read(path: &Path) -> Result<Vec<Entry>, JournalError> {
    let text = tailbound_sys::given::read(path, 64 << 20).map_err(at(path))?;
    let text = String::from_utf8_lossy(&text);
    let mut entries = Vec::new();
    // What stands behind the last end of a line was cut off by a kill.
    for line in text.split_inclusive('\n').filter(|l| l.ends_with('\n')) {
        let entry = serde_json::from_str(line).map_err(|e| {
            at(path)(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("line {}: {e}", entries.len() + 1),
            ))
        })?;
        entries.push(entry);
    }
    Ok(entries)
}

/// A transaction that is being written.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Begins a transaction under the next number.
    ///
    /// # Errors
    /// The folder or file cannot be made: nothing may be changed then.
    pub fn begin(
        places: &Places,
        plan: &Plan,
        time: String,
        moment: Option<Moment>,
    ) -> Result<(Self, u32), JournalError> {
        let number = next_number(&all(places)?);
        let folder = if plan.is_persistent() { &places.lasting } else { &places.volatile };
        make_folder(folder)?;
        let path = folder.join(format!("{number:06}.jsonl"));
        let file = new_file::begin_log(&path).map_err(at(&path))?;
        let mut journal = Self { file, path };
        journal.append(&Entry::Begin { time, plan: Box::new(plan.clone()), moment })?;
        sync_folder(folder)?;
        Ok((journal, number))
    }

    /// Opens a transaction again, to undo it.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn resume(transaction: &Transaction) -> Result<Self, JournalError> {
        let path = transaction.path.clone();
        let file = File::options().read(true).append(true).open(&path).map_err(at(&path))?;
        let mut journal = Self { file, path };
        journal.end_cut_line()?;
        Ok(journal)
    }

    /// Makes half a line, which a kill left, unable to join the next one.
    fn end_cut_line(&mut self) -> Result<(), JournalError> {
        let bytes = fs::read(&self.path).map_err(at(&self.path))?;
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
        if whole < bytes.len() {
            self.file.set_len(whole as u64).map_err(at(&self.path))?;
        }
        Ok(())
    }

    /// Appends one line and waits until it is on the disk.
    ///
    /// # Errors
    /// Those of write(2) and fsync(2).
    pub fn append(&mut self, entry: &Entry) -> Result<(), JournalError> {
        let mut line = serde_json::to_vec(entry)
            .map_err(|e| at(&self.path)(io::Error::new(io::ErrorKind::InvalidData, e)))?;
        line.push(b'\n');
        self.file.write_all(&line).and_then(|()| self.file.sync_data()).map_err(at(&self.path))
    }
}

fn sync_folder(folder: &Path) -> Result<(), JournalError> {
    File::open(folder).and_then(|f| f.sync_all()).map_err(at(folder))
}

/// Puts an ended transaction with the history; where that cannot be written, it stays where it is.
///
/// # Errors
/// The copy could not be finished.
pub fn keep(places: &Places, transaction: &Transaction) -> Result<(), JournalError> {
    if transaction.path.starts_with(&places.lasting) || make_folder(&places.lasting).is_err() {
        return Ok(());
    }
    let Some(name) = transaction.path.file_name() else { return Ok(()) };
    let to = places.lasting.join(name);
    let text = fs::read(&transaction.path).map_err(at(&transaction.path))?;
    new_file::write(&to, new_file::Existing::Replace, &text).map_err(at(&to))?;
    fs::remove_file(&transaction.path).map_err(at(&transaction.path))
}
