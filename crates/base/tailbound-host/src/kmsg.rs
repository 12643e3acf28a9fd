// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's log, read without waiting: what was there at the start, and what came since.
//!
//! Only records of the kernel itself count: what programs write to
//! /dev/kmsg carries another facility.
//! Source: Documentation/ABI/testing/dev-kmsg.

use std::fs::File;
use std::io::{ErrorKind, Read};

use tailbound_sys::file::open_without_waiting;
use tailbound_sys::hostinfo;

use crate::root::{Found, Missing, Root, TEXT_MAX};

const PATH: &str = "/dev/kmsg";
/// Most reads in one go: a log that grows faster than it is read must not hold a run up.
const READS_MAX: usize = 100_000;
/// One record of the device must fit: the kernel's own limit is 2048 bytes of text, escaped.
const RECORD_MAX: usize = 16 << 10;

/// One record of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// 0 (emergency) to 7 (debug).
    pub(crate) level: u8,
    /// The message.
    pub(crate) text: String,
}

/// The kernel's log from here on.
#[derive(Debug)]
pub(crate) struct KernelLog {
    file: Option<File>,
    part: Vec<u8>,
    /// Why it cannot be read, or no longer.
    pub(crate) missing: Option<Missing>,
    /// How often records were overwritten before they were read.
    pub(crate) lost: u64,
}

impl KernelLog {
    /// Opens the log and returns what it already holds.
    pub(crate) fn open(root: &Root) -> (Self, Vec<Record>) {
        let mut log = Self { file: None, part: Vec::new(), missing: None, lost: 0 };
        match open_without_waiting(&root.path(PATH)) {
            Ok(file) => log.file = Some(file),
            Err(e) if e.kind() == ErrorKind::NotFound => {
                log.missing = Some(Missing::NotApplicable(format!("there is no {PATH}")));
            }
            Err(e) => log.missing = Some(Missing::Unknown(format!("{PATH}: {e}"))),
        }
        let before = log.read_new();
        log.lost = 0;
        (log, before)
    }

    /// The records since the last call.
    pub(crate) fn read_new(&mut self) -> Vec<Record> {
        let Some(file) = &mut self.file else { return Vec::new() };
        let mut buffer = vec![0; RECORD_MAX];
        let mut records = Vec::new();
        for _ in 0..READS_MAX {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => {
                    self.part.extend(buffer.iter().take(n));
                    drain_lines(&mut self.part, &mut records);
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::BrokenPipe => {
                    self.lost = self.lost.saturating_add(1)
                }
                Err(e) => {
                    self.missing = Some(Missing::Unknown(format!("{PATH}: {e}")));
                    self.file = None;
                    break;
                }
            }
        }
        records
    }
}

/// What the kernel's log holds, oldest first, without what programs wrote into it.
///
/// # Errors
/// [`Missing`]: there is none, or an ordinary user may not read it (kernel.dmesg_restrict).
pub fn messages(root: &Root) -> Found<Vec<String>> {
    if !root.is_real() {
        let mut text = root.bytes(PATH, TEXT_MAX)?;
        let mut records = Vec::new();
        drain_lines(&mut text, &mut records);
        return Ok(records.into_iter().map(|r| r.text).collect());
    }
    let (log, before) = KernelLog::open(root);
    match log.missing {
        Some(why) => Err(why),
        None => Ok(before.into_iter().map(|r| r.text).collect()),
    }
}

/// Major and minor number of a kernel's release; zero where it has none.
#[must_use]
pub fn release(text: &str) -> (u32, u32) {
    hostinfo::release(text).unwrap_or_default()
}

fn drain_lines(part: &mut Vec<u8>, records: &mut Vec<Record>) {
    let Some(end) = part.iter().rposition(|b| *b == b'\n') else {
        return;
    };
    let whole: Vec<u8> = part.drain(..=end).collect();
    records.extend(String::from_utf8_lossy(&whole).lines().filter_map(record));
}

/// `6,339,5140900,-;text`; lines that begin with a blank are details of the record before.
fn record(line: &str) -> Option<Record> {
    let (head, text) = line.split_once(';')?;
    let prefix: u32 = head.split(',').next()?.parse().ok()?;
    let (facility, level) = (prefix >> 3, prefix & 7);
    (facility == 0)
        .then(|| Record { level: u8::try_from(level).unwrap_or(7), text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    #[test]
    fn tells_old_records_from_new_ones() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        fs::create_dir(dir.path().join("dev"))?;
        let path = dir.path().join("dev/kmsg");
        fs::write(&path, "6,1,0,-;Linux version\n SUBSYSTEM=x\n12,2,9,-;a program; wrote this\n")?;
        let (mut log, before) = KernelLog::open(&Root::at(dir.path()));
        assert_eq!(before, [Record { level: 6, text: "Linux version".into() }]);
        assert!(log.read_new().is_empty());
        let mut file = fs::OpenOptions::new().append(true).open(&path)?;
        file.write_all(b"4,3,10,-;a warn")?;
        assert!(log.read_new().is_empty(), "a record that is not whole waits");
        file.write_all(b"ing; indeed\n")?;
        assert_eq!(log.read_new(), [Record { level: 4, text: "a warning; indeed".into() }]);
        Ok(())
    }

    #[test]
    fn the_real_log_is_read_or_the_reason_is_known() {
        let (mut log, before) = KernelLog::open(&Root::real());
        if log.missing.is_none() {
            log.read_new();
            assert!(before.len() < READS_MAX);
        } else {
            assert!(before.is_empty());
        }
    }
}
