// SPDX-License-Identifier: MIT OR Apache-2.0
//! The descriptions that both versions hold: pages, events, functions, names of threads.
//!
//! Of the events only those are kept that are understood, each once.
//! Source: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5).

use super::DatError;
use super::part::Part;
use crate::event;
use crate::format::EventFormat;
use crate::symbols::Symbols;

/// Most threads whose names are kept: what the kernel remembers by default, many times over.
const COMMS_MAX: usize = 65_536;

/// What was found in them.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub(crate) formats: Vec<EventFormat>,
    pub(crate) symbols: Symbols,
    pub(crate) comms: Vec<(i32, String)>,
    pub(crate) notes: Vec<String>,
    known: Vec<(&'static str, &'static str)>,
}

/// `header_page` and `header_event`: the text of the first.
pub(crate) fn header(part: &mut Part<'_>) -> Result<String, DatError> {
    part.within("the description of the pages");
    part.expect("header_page")?;
    let length = part.u64()?;
    let page = part.long_text(length)?.into_owned();
    part.expect("header_event")?;
    let length = part.u64()?;
    part.long_text(length)?;
    Ok(page)
}

/// The tracers' own records: nothing of them is used.
pub(crate) fn ftrace(part: &mut Part<'_>) -> Result<(), DatError> {
    part.within("the formats of the tracers");
    for _ in 0..part.u32()? {
        let length = part.u64()?;
        part.long_text(length)?;
    }
    Ok(())
}

impl Texts {
    pub(crate) fn events(&mut self, part: &mut Part<'_>) -> Result<(), DatError> {
        part.within("the formats of the events");
        for _ in 0..part.u32()? {
            let system = part.text()?;
            for _ in 0..part.u32()? {
                let length = part.u64()?;
                let text = part.long_text(length)?;
                self.event(&system, &text);
            }
        }
        Ok(())
    }

    fn event(&mut self, system: &str, text: &str) {
        let name = text.lines().find_map(|l| l.strip_prefix("name:")).unwrap_or_default().trim();
        let Some(key) = event::understood(system, name) else { return };
        if self.known.contains(&key) {
            return;
        }
        self.known.push(key);
        match EventFormat::parse(text) {
            Ok(format) => self.formats.push(format),
            Err(e) => self.notes.push(format!("{}:{}: {e}; the event is not used", key.0, key.1)),
        }
    }

    pub(crate) fn functions(&mut self, part: &mut Part<'_>) -> Result<(), DatError> {
        part.within("the table of functions");
        let length = part.u32()?;
        self.symbols = Symbols::parse(&part.long_text(u64::from(length))?);
        Ok(())
    }

    /// Formats of trace_printk: not used.
    pub(crate) fn printk(part: &mut Part<'_>) -> Result<(), DatError> {
        part.within("the formats of trace_printk");
        let length = part.u32()?;
        part.long_text(u64::from(length)).map(drop)
    }

    pub(crate) fn comms(&mut self, part: &mut Part<'_>) -> Result<(), DatError> {
        part.within("the names of threads");
        let length = part.u64()?;
        let text = part.long_text(length)?;
        let line = |line: &str| {
            let (pid, comm) = line.trim_start().split_once(' ')?;
            Some((pid.parse().ok()?, comm.to_owned()))
        };
        self.comms = text.lines().filter_map(line).take(COMMS_MAX).collect();
        Ok(())
    }
}
