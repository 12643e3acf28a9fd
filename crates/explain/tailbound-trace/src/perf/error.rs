// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a file of perf could not be read.

use tailbound_core::printable::excerpt;

use crate::dat::DatError;

/// Longest text of a file that is shown.
const SHOWN_MAX: usize = 60;
/// How it is read all the same.
const AS_TEXT: &str = "run `perf script -i FILE > FILE.txt` and give FILE.txt";

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PerfError {
    /// It begins otherwise.
    #[error("it is not a file of perf: it does not begin as one")]
    Foreign,
    /// From a machine of the other byte order.
    #[error(
        "it was recorded on a big-endian machine, and only little-endian files are read: {AS_TEXT}"
    )]
    BigEndian,
    /// Written to a pipe.
    #[error("perf wrote it to a pipe (`-o -`), which is laid out in another way: {AS_TEXT}")]
    Pipe,
    /// Its records are packed.
    #[error("it is compressed (`perf record -z`): {AS_TEXT}")]
    Compressed,
    /// perf was ended before it wrote the table of what the file holds.
    #[error(
        "it says that it holds no records: perf was killed before it finished the file. End it by Ctrl-C or let the command end"
    )]
    Unfinished,
    /// It has no tracepoints.
    #[error(
        "it has no tracepoints, from which alone wake-ups can be followed. Record with `{RECORD}`"
    )]
    NoTracepoints,
    /// Its records lack what they are put in order by.
    #[error("its records of tracepoints have no {missing}. Record with `{RECORD}`")]
    Layout {
        /// What they lack.
        missing: &'static str,
    },
    /// Events without which nothing can be said are not in it.
    #[error("it has no {}, without which no wake-up can be followed. Record with `{RECORD}`", .missing.join(" and no "))]
    Lacking {
        /// Which, `SYSTEM:NAME`.
        missing: Vec<String>,
    },
    /// It ends too early.
    #[error("it ends at byte {at}, within {within}: copy it again, it was cut")]
    Ends {
        /// Where.
        at: u64,
        /// In what.
        within: &'static str,
    },
    /// It contradicts itself.
    #[error("byte {at}, in {within}: {}; the file is damaged, record or copy it again", excerpt(.reason, SHOWN_MAX))]
    Wrong {
        /// Where.
        at: u64,
        /// In what.
        within: &'static str,
        /// Why.
        reason: String,
    },
    /// Reading failed.
    #[error("reading byte {at}: {reason}")]
    Read {
        /// Where.
        at: u64,
        /// Why.
        reason: String,
    },
}

/// How to record what is understood.
pub const RECORD: &str = "perf record -a -k mono -e sched:sched_switch -e sched:sched_waking -e sched:sched_wakeup -e sched:sched_migrate_task -e timer:hrtimer_start -e timer:hrtimer_expire_entry -e timer:hrtimer_expire_exit -e 'irq:*' -e 'irq_vectors:*' sleep 10";

impl From<DatError> for PerfError {
    fn from(e: DatError) -> Self {
        match e {
            DatError::Ends { at, within } => Self::Ends { at, within },
            DatError::Wrong { at, within, reason } => Self::Wrong { at, within, reason },
            DatError::Read { at, reason } => Self::Read { at, reason },
            other => Self::Wrong { at: 0, within: "the descriptions", reason: other.to_string() },
        }
    }
}
