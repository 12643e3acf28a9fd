// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin's log, record by record.
//!
//! Units: ns of the guest's virtual time.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use crate::record::{
    LOG_COMPARED, LOG_COUNT, LOG_HEAD_BYTES, LOG_STATUS, MAGIC, RECORD_BYTES, kind, status,
};

/// Bytes read at a time.
const PART: usize = 1 << 20;
/// Bytes of the newest records, among which a timer is looked for.
const NEWEST: usize = 4 << 20;

/// Did the guest of this log, also of one that is still written, go on for longer than the plan allows?
///
/// # Errors
/// The file cannot be read.
pub fn overtime(log: &File) -> io::Result<bool> {
    let mut word = [0; 8];
    log.read_exact_at(&mut word, LOG_STATUS as u64 * 8)?;
    Ok(u64::from_ne_bytes(word) == status::OVERTIME)
}

/// Where a guest is, by the newest records of its log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Newest {
    /// When the last timer that woke a thread was due, by the guest's clock; of a log of sections and wake-ups.
    pub due_ns: Option<u64>,
    /// The window of the plan that began last, from 0; of a log of blocks.
    pub window: Option<u64>,
}

/// Where the guest of this log is, which may still be written.
///
/// # Errors
/// The file cannot be read.
pub fn newest(log: &File) -> io::Result<Newest> {
    let mut word = [0; 8];
    log.read_exact_at(&mut word, LOG_COUNT as u64 * 8)?;
    let count = u64::from_ne_bytes(word);
    let newest = count.min((NEWEST / RECORD_BYTES) as u64);
    let mut part = vec![0; usize::try_from(newest).unwrap_or(0) * RECORD_BYTES];
    let from = LOG_HEAD_BYTES as u64 + (count - newest).saturating_mul(RECORD_BYTES as u64);
    log.read_exact_at(&mut part, from)?;
    let last = |of: u8| {
        let mut records = part.chunks_exact(RECORD_BYTES).filter_map(record);
        records.rfind(|r| r.kind == of).map(|r| r.value)
    };
    Ok(Newest { due_ns: last(kind::DUE), window: last(kind::WINDOW) })
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When.
    pub t_ns: u64,
    /// Which CPU.
    pub cpu: u8,
    /// Bits of [`crate::record::state`], from then on.
    pub state: u8,
    /// [`crate::record::kind`]
    pub kind: u8,
    /// An address, a thread, a time: by the kind.
    pub value: u64,
}

/// Why a log says nothing.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// It cannot be read.
    #[error("the plugin's log: {0}")]
    Read(#[from] io::Error),
    /// It is not one.
    #[error("the plugin's log is not one: QEMU did not load the plugin")]
    Foreign,
    /// The plugin refused.
    #[error("{0}")]
    Refused(&'static str),
}

/// See the module.
#[derive(Debug)]
pub struct Log<R> {
    from: R,
    left: u64,
    count: u64,
}

impl<R: Read> Log<R> {
    /// From the beginning of the file.
    ///
    /// # Errors
    /// [`LogError`]: also where the plugin says that what it wrote cannot be relied on.
    pub fn open(mut from: R) -> Result<Self, LogError> {
        let mut head = vec![0; LOG_HEAD_BYTES];
        from.read_exact(&mut head)?;
        let word = |at: usize| {
            let bytes = head.get(at * 8..).and_then(|b| b.first_chunk::<8>());
            bytes.map_or(0, |b| u64::from_ne_bytes(*b))
        };
        if word(0) != MAGIC {
            return Err(LogError::Foreign);
        }
        let count = word(LOG_COUNT);
        match word(LOG_STATUS) {
            // A check that compared nothing is none.
            status::WHOLE if word(LOG_COMPARED) == 0 => Err(LogError::Refused(
                "the plugin's time was never compared with QEMU's: nothing that it wrote can be relied on",
            )),
            status::WHOLE => Ok(Self { from, left: count, count }),
            status::FULL => Err(LogError::Refused(
                "more happened than the plugin's log holds: measure for a shorter time (-D)",
            )),
            status::UNKNOWN_CODE => Err(LogError::Refused(
                "this QEMU keeps its time where the plugin does not find it: its machine code is another than that of Debian's 7.2 and 10.0",
            )),
            status::LACKING => Err(LogError::Refused(
                "this QEMU was built without the names of its functions, which the plugin needs: use Debian's",
            )),
            status::OTHER_TIME => Err(LogError::Refused(
                "the plugin's time was not QEMU's: nothing that it wrote can be relied on",
            )),
            status::NO_PLAN => Err(LogError::Refused("the plugin could not read its plan")),
            status::UNKNOWN_REGISTERS => Err(LogError::Refused(
                "this kernel wakes threads, or goes on with another, in the middle of a block of instructions, where the plugin does not know the registers",
            )),
            status::UNKNOWN_GUEST => Err(LogError::Refused(
                "where this kernel keeps its preemption count, or QEMU the processor's state, was not found",
            )),
            status::OTHER_ENTRY => Err(LogError::Refused(
                "this kernel is entered from user mode by vectors whose addresses are not known, as with page tables of its own (kpti=1)",
            )),
            status::NOT_COUNTED => Err(LogError::Refused(
                "the plugin watches a whole system of one CPU, of x86-64 up to 16",
            )),
            status::OTHER_CPU => Err(LogError::Refused(
                "a CPU has its own data where another CPU's was expected: the kernel numbers its CPUs otherwise than QEMU",
            )),
            status::OVERTIME => Err(LogError::Refused("the guest went on for longer than it may")),
            _ => Err(LogError::Refused("the plugin did not begin")),
        }
    }

    /// Records in all.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Hands over each record in the order of time.
    ///
    /// # Errors
    /// The file is shorter than it says.
    pub fn each(mut self, mut each: impl FnMut(Record)) -> Result<(), LogError> {
        let mut part = vec![0u8; PART];
        while self.left > 0 {
            let records = usize::try_from(self.left).unwrap_or(usize::MAX).min(PART / RECORD_BYTES);
            let bytes = part.get_mut(..records * RECORD_BYTES).unwrap_or_default();
            self.from.read_exact(bytes)?;
            self.left -= records as u64;
            bytes.chunks_exact(RECORD_BYTES).filter_map(record).for_each(&mut each);
        }
        Ok(())
    }
}

/// The record that these bytes are.
fn record(bytes: &[u8]) -> Option<Record> {
    let (head, value) = bytes.split_first_chunk::<8>()?;
    let head = u64::from_ne_bytes(*head);
    let [kind, state, ..] = head.to_le_bytes();
    let (t_ns, value) = (head >> 16, u64::from_ne_bytes(*value.first_chunk::<8>()?));
    Some(Record { t_ns, cpu: state >> 4, state: state & 0xf, kind, value })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A log of records: time, kind, state, value.
    pub(crate) fn made(records: &[(u64, u8, u8, u64)]) -> Vec<u8> {
        with(records, status::WHOLE, 1)
    }

    fn with(records: &[(u64, u8, u8, u64)], status: u64, compared: u64) -> Vec<u8> {
        let mut words = vec![0; LOG_HEAD_BYTES / 8];
        (words[0], words[LOG_COUNT]) = (MAGIC, records.len() as u64);
        (words[LOG_STATUS], words[LOG_COMPARED]) = (status, compared);
        let head = crate::record::head;
        words.extend(records.iter().flat_map(|(t, k, s, v)| [head(*t, *s, *k), *v]));
        words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    #[test]
    fn a_log_whose_clock_was_compared_with_nothing_is_refused() {
        let refused =
            |status| Log::open(&with(&[], status, 0)[..]).map(|_| ()).unwrap_err().to_string();
        assert!(refused(status::WHOLE).contains("never compared"));
        // What is wrong besides is said first.
        assert!(refused(status::UNKNOWN_CODE).contains("machine code"));
        let mut all = Vec::new();
        Log::open(&made(&[(7, 1, 3, 9)])[..]).unwrap().each(|r| all.push(r)).unwrap();
        assert_eq!(all, [Record { t_ns: 7, cpu: 0, state: 3, kind: 1, value: 9 }]);
    }

    #[test]
    fn where_a_guest_is_is_found_while_its_log_grows() {
        let path = std::env::temp_dir().join(format!("tailbound-log-{}", std::process::id()));
        let found = |records: &[(u64, u8, u8, u64)]| {
            // A log has its full length from the beginning, and what is not written is zero.
            let bytes = [made(records), vec![0; 4096]].concat();
            std::fs::write(&path, bytes).unwrap();
            let Newest { due_ns, window } = newest(&File::open(&path).unwrap()).unwrap();
            (due_ns, window)
        };
        let (wake, other) = ((5, kind::WAKE, 0, 90), (9, kind::SWITCH, 0, 8));
        let (timer, window) = (|due| (5, kind::DUE, 0, due), |nth| (5, kind::WINDOW, 0, nth));
        assert_eq!(found(&[]), (None, None));
        assert_eq!(found(&[other]), (None, None));
        assert_eq!(found(&[wake, timer(1_000), other]), (Some(1_000), None));
        let more = [wake, timer(1_000), other, wake, timer(2_000), other];
        assert_eq!(found(&more), (Some(2_000), None));
        assert_eq!(found(&[window(0), other, window(1), other]), (None, Some(1)));
        let _left = std::fs::remove_file(&path);
    }
}
