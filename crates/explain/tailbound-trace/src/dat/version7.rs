// SPDX-License-Identifier: MIT OR Apache-2.0
//! Version 7: sections, each found through an option; packed one by one.
//!
//! Units: bytes. Sections of options form a chain: one that leads back is refused.
//! Source: trace-cmd.dat.v7(5).

use std::collections::BTreeSet;
use std::io::{Read, Seek};

use super::clock::Tsc;
use super::part::{Part, text_of};
use super::source::Source;
use super::stream::Stream;
use super::texts::{self, Texts};
use super::unpack::Packing;
use super::{Buffer, CPUS_MAX, DatContents, DatError, TEXTS_BYTES_MAX};
use crate::counts::Counts;

const DONE: u16 = 0;
const CPUSTAT: u16 = 2;
const BUFFER: u16 = 3;
pub(super) const TRACECLOCK: u16 = 4;
pub(super) const UNAME: u16 = 5;
pub(super) const CPUCOUNT: u16 = 8;
pub(super) const VERSION: u16 = 9;
const TIME_SHIFT: u16 = 12;
const TSC2NSEC: u16 = 14;
const HEADER_INFO: u16 = 16;
const FTRACE_EVENTS: u16 = 17;
const EVENT_FORMATS: u16 = 18;
const KALLSYMS: u16 = 19;
const PRINTK: u16 = 20;
const CMDLINES: u16 = 21;
const BUFFER_TEXT: u16 = 22;
/// Section of options, and the flag of a packed section.
const OPTIONS: u16 = 0;
const PACKED: u16 = 1;
/// Bytes of a section's head.
const HEAD: u64 = 16;
/// Most sections of options: two a buffer.
const SECTIONS_MAX: usize = 4096;

/// The head of a section.
struct Head {
    id: u16,
    packed: bool,
    bytes: u64,
}

pub(super) fn read<R: Read + Seek>(
    part: &mut Part<'_>,
    source: &mut Source<R>,
    found: &mut DatContents,
) -> Result<(), DatError> {
    found.version = 7;
    let packing = Packing::of(part.text()?)?;
    part.text()?;
    let mut at = part.u64()?;
    let mut file = File { source, packing, unpacked: 0 };
    let mut seen = BTreeSet::new();
    let mut latency = false;
    while at != 0 {
        if !seen.insert(at) || seen.len() > SECTIONS_MAX {
            let reason = "the options lead back to themselves".to_owned();
            return Err(DatError::Wrong { at, within: "the options", reason });
        }
        let bytes = file.section(at, OPTIONS, "the options")?;
        let mut options = Part::new(&bytes, at, "the options");
        at = 0;
        while !options.is_empty() {
            let (id, length) = (options.u16()?, options.u32()?);
            let data = options.bytes(usize::try_from(length).unwrap_or(usize::MAX))?;
            let mut value = Part::new(data, options.place(), "an option");
            match id {
                DONE => {
                    at = value.u64()?;
                    break;
                }
                BUFFER => buffer(&mut file, &mut value, found)?,
                BUFFER_TEXT => latency = true,
                HEADER_INFO | FTRACE_EVENTS | EVENT_FORMATS | KALLSYMS | PRINTK | CMDLINES => {
                    described(&mut file, id, value.u64()?, found)?;
                }
                _ => option(id, data, found),
            }
        }
    }
    match found.buffers.is_empty() && latency {
        true => Err(DatError::Latency),
        false if seen.is_empty() => Err(DatError::NoBuffer),
        false => Ok(()),
    }
}

/// The file with its packing.
struct File<'a, R> {
    source: &'a mut Source<R>,
    packing: Packing,
    /// Bytes unpacked so far, of all sections.
    unpacked: u64,
}

impl<R: Read + Seek> File<'_, R> {
    fn head(&mut self, at: u64, within: &'static str) -> Result<Head, DatError> {
        let bytes = self.source.read(at, HEAD)?;
        let mut part = Part::new(&bytes, at, within);
        let (id, flags, _name) = (part.u16()?, part.u16()?, part.u32()?);
        Ok(Head { id, packed: flags & PACKED != 0, bytes: part.u64()? })
    }

    /// What a section holds, unpacked.
    fn section(&mut self, at: u64, id: u16, within: &'static str) -> Result<Vec<u8>, DatError> {
        let head = self.head(at, within)?;
        let wrong = |reason: String| DatError::Wrong { at, within, reason };
        if head.id != id {
            return Err(wrong(format!("section {} where {id} was expected", head.id)));
        }
        let left = TEXTS_BYTES_MAX.saturating_sub(self.unpacked);
        if head.bytes > left {
            return Err(wrong(format!("a section of {} bytes, {left} are the most", head.bytes)));
        }
        let from = at.saturating_add(HEAD);
        let bytes = self.source.read(from, head.bytes)?;
        if (bytes.len() as u64) < head.bytes {
            return Err(DatError::Ends { at: self.source.length(), within });
        }
        let bytes = if head.packed {
            let mut part = Part::new(&bytes, from, within);
            let (packed, plain) = (part.u32()?, part.u32()?);
            let packed = part.bytes(usize::try_from(packed).unwrap_or(usize::MAX))?;
            if u64::from(plain) > left {
                return Err(wrong(format!("a section of {plain} bytes, {left} are the most")));
            }
            let limit = usize::try_from(plain).unwrap_or(usize::MAX);
            self.packing.unpack(packed, limit).map_err(|e| wrong(e.to_string()))?
        } else {
            bytes
        };
        self.unpacked = self.unpacked.saturating_add(bytes.len() as u64);
        Ok(bytes)
    }
}

fn described<R: Read + Seek>(
    file: &mut File<'_, R>,
    id: u16,
    at: u64,
    found: &mut DatContents,
) -> Result<(), DatError> {
    let within = "a description";
    let bytes = file.section(at, id, within)?;
    let mut part = Part::new(&bytes, at, within);
    match id {
        HEADER_INFO => found.page = texts::header(&mut part)?,
        FTRACE_EVENTS => texts::ftrace(&mut part)?,
        EVENT_FORMATS => found.texts.events(&mut part)?,
        KALLSYMS => found.texts.functions(&mut part)?,
        PRINTK => Texts::printk(&mut part)?,
        _ => found.texts.comms(&mut part)?,
    }
    Ok(())
}

fn buffer<R: Read + Seek>(
    file: &mut File<'_, R>,
    part: &mut Part<'_>,
    found: &mut DatContents,
) -> Result<(), DatError> {
    part.within("the option of a buffer");
    let (section, name, clock) = (part.u64()?, part.text()?, part.text()?);
    let (page, cpus) = (part.u32()?, part.u32()?);
    if cpus > CPUS_MAX {
        return Err(part.wrong(format!("{cpus} CPUs, and no kernel has more than {CPUS_MAX}")));
    }
    let packed = file.head(section, "a section of events")?.packed;
    let mut streams = Vec::new();
    for _ in 0..cpus {
        let (cpu, at, bytes) = (part.u32()?, part.u64()?, part.u64()?);
        if cpu >= CPUS_MAX {
            return Err(part.wrong(format!("CPU {cpu}, and no kernel has more than {CPUS_MAX}")));
        }
        streams.push(match packed && file.packing != Packing::None {
            true => Stream::packed(cpu, at, bytes, file.packing),
            false => Stream::plain(cpu, at, bytes),
        });
    }
    let clock = Some(clock).filter(|c| !c.is_empty());
    let page_bytes = usize::try_from(page).unwrap_or(usize::MAX);
    found.buffers.push(Buffer { name, clock, page_bytes, streams });
    Ok(())
}

/// An option that both versions have. What cannot be read of it is not known.
pub(super) fn option(id: u16, data: &[u8], found: &mut DatContents) {
    let mut part = Part::new(data, 0, "an option");
    match id {
        CPUSTAT => {
            let lost = Counts::parse(&text_of(data)).lost();
            found.lost = found.lost.saturating_add(lost);
        }
        TRACECLOCK => found.clock = Some(text_of(data)),
        UNAME => found.uname = Some(text_of(data)),
        VERSION => found.recorder = Some(text_of(data)),
        CPUCOUNT => found.cpus = part.u32().ok(),
        TSC2NSEC => {
            if let (Ok(mult), Ok(shift)) = (part.u32(), part.u32()) {
                found.tsc = Some(Tsc { mult, shift }).filter(|_| mult > 0 && shift < 64);
            }
        }
        TIME_SHIFT => found.notes.push(
            "it was recorded in a guest beside its host: its times are the guest's own, and were not shifted to the host's"
                .to_owned(),
        ),
        _ => {}
    }
}
