// SPDX-License-Identifier: MIT OR Apache-2.0
//! The begin of a file of trace-cmd, version 6, for pages that were read from the kernel's buffers.
//!
//! Units: bytes. All but the pages is made here; where the pages of each CPU lie is entered once they are written,
//! so that none of them has to be held. So are the functions that the events name, into room that was kept for them: the table of all has some
//! ten MB.
//! Not here: reading the pages (`tailbound-monitor`).
//! Source: trace-cmd.dat.v6(5).

use std::ops::Range;

use super::version6::CLOCK_MAX;
use super::version7::{CPUCOUNT, TRACECLOCK, UNAME, VERSION};
use super::{DatError, MAGIC};
use crate::symbols::Symbols;

/// Where pages may begin: trace-cmd maps them.
const ALIGNMENT: usize = 4096;
/// A long number of the machine.
const LONG_BYTES: u8 = if cfg!(target_pointer_width = "64") { 8 } else { 4 };

/// What a file tells beside the events, in the kernel's words.
#[derive(Clone, Debug, Default)]
pub struct Described {
    /// `events/header_page`
    pub page: String,
    /// `events/header_event`
    pub record: String,
    /// Of each event its system and `format`; those of one system behind each other.
    pub formats: Vec<(&'static str, String)>,
    /// The trace's clock, as `mono`.
    pub clock: String,
    /// `Linux`, machine, release, architecture.
    pub uname: String,
    /// Who wrote it.
    pub recorder: String,
    /// Bytes that are kept for the names of functions.
    pub function_bytes: usize,
    /// Names of threads: a line `NUMBER NAME` each.
    pub threads: String,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Head {
    bytes: Vec<u8>,
    table: usize,
    cpus: u32,
    functions: Range<usize>,
}

fn number(to: &mut Vec<u8>, bytes: usize, width: usize) -> Result<(), DatError> {
    let long = (bytes as u64).to_le_bytes();
    let (low, high) = long.split_at_checked(width).unwrap_or((&long, &[]));
    if high.iter().any(|b| *b != 0) {
        let reason = format!("{bytes} bytes are too long a description");
        return Err(DatError::Wrong { at: to.len() as u64, within: "the header", reason });
    }
    to.extend_from_slice(low);
    Ok(())
}

fn text(to: &mut Vec<u8>, text: &str) {
    to.extend_from_slice(text.as_bytes());
    to.push(0);
}

fn long_text(to: &mut Vec<u8>, text: &str, width: usize) -> Result<(), DatError> {
    number(to, text.len(), width)?;
    to.extend_from_slice(text.as_bytes());
    Ok(())
}

fn option(to: &mut Vec<u8>, id: u16, data: &[u8]) -> Result<(), DatError> {
    to.extend_from_slice(&id.to_le_bytes());
    number(to, data.len(), 4)?;
    to.extend_from_slice(data);
    Ok(())
}

impl Head {
    /// For pages of `page` bytes of the CPUs 0 to `cpus` - 1.
    ///
    /// # Errors
    /// A description is longer than the format has room for.
    pub fn new(described: &Described, cpus: u32, page: u32) -> Result<Self, DatError> {
        let mut b = MAGIC.to_vec();
        text(&mut b, "6");
        b.extend_from_slice(&[0, LONG_BYTES]);
        b.extend_from_slice(&page.to_le_bytes());
        text(&mut b, "header_page");
        long_text(&mut b, &described.page, 8)?;
        text(&mut b, "header_event");
        long_text(&mut b, &described.record, 8)?;
        // No formats of tracers.
        number(&mut b, 0, 4)?;
        let systems = described.formats.chunk_by(|a, b| a.0 == b.0);
        number(&mut b, systems.clone().count(), 4)?;
        for system in systems {
            text(&mut b, system.first().map_or("", |f| f.0));
            number(&mut b, system.len(), 4)?;
            for (_, format) in system {
                long_text(&mut b, format, 8)?;
            }
        }
        // Functions, each in a line: empty ones until they are known.
        number(&mut b, described.function_bytes, 4)?;
        let functions = b.len()..b.len().saturating_add(described.function_bytes);
        b.resize(functions.end, b'\n');
        // No formats of trace_printk.
        number(&mut b, 0, 4)?;
        long_text(&mut b, &described.threads, 8)?;
        b.extend_from_slice(&cpus.to_le_bytes());
        text(&mut b, "options  ");
        let clock = format!("[{}]", described.clock);
        option(&mut b, TRACECLOCK, format!("{clock}\0").as_bytes())?;
        option(&mut b, UNAME, format!("{}\0", described.uname).as_bytes())?;
        option(&mut b, VERSION, format!("{}\0", described.recorder).as_bytes())?;
        option(&mut b, CPUCOUNT, &cpus.to_le_bytes())?;
        b.extend_from_slice(&0u16.to_le_bytes());
        text(&mut b, "flyrecord");
        let table = b.len();
        b.resize(table.saturating_add(usize::try_from(cpus).unwrap_or(0).saturating_mul(16)), 0);
        debug_assert!(clock.len() as u64 <= CLOCK_MAX);
        long_text(&mut b, &clock, 8)?;
        b.resize(b.len().next_multiple_of(ALIGNMENT), 0);
        Ok(Self { bytes: b, table, cpus, functions })
    }

    /// The file until the first page.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The functions that events name: lines of /proc/kallsyms, as many whole ones as there is room for.
    pub fn name_functions(&mut self, functions: &Symbols) {
        let text = functions.to_text(self.functions.len());
        let place = self.bytes.get_mut(self.functions.clone()).unwrap_or_default();
        let bytes = text.bytes().chain(std::iter::repeat(b'\n'));
        place.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    }

    /// The pages of `cpu` lie at `at`; a CPU beyond the last has none.
    pub fn place(&mut self, cpu: u32, at: u64, bytes: u64) {
        let entry = usize::try_from(cpu).ok().filter(|_| cpu < self.cpus);
        let entry = entry.and_then(|c| self.table.checked_add(c.checked_mul(16)?));
        let both = [at.to_le_bytes(), bytes.to_le_bytes()].concat();
        if let Some(place) = entry.and_then(|e| self.bytes.get_mut(e..e.checked_add(16)?)) {
            place.copy_from_slice(&both);
        }
    }
}
