// SPDX-License-Identifier: MIT OR Apache-2.0
//! Version 6: one description after the other, then options, then where each CPU's pages lie.
//!
//! Units: bytes.
//! Source: trace-cmd.dat.v6(5); the option of a buffer and the clock behind the table of CPUs are not
//! in it: they are read as trace-cmd 3.1 writes them.

use std::io::{Read, Seek};

use tailbound_core::printable::excerpt;

use super::part::{Part, text_of};
use super::source::Source;
use super::stream::Stream;
use super::texts::{self, Texts};
use super::{Buffer, CPUS_MAX, DatContents, DatError, SHOWN_MAX, version7};

const BUFFER: u16 = 3;
/// The longest name of a clock, with its brackets.
pub(super) const CLOCK_MAX: u64 = 32;

pub(super) fn read<R: Read + Seek>(
    part: &mut Part<'_>,
    source: &mut Source<R>,
    found: &mut DatContents,
) -> Result<(), DatError> {
    found.version = 6;
    found.page = texts::header(part)?;
    texts::ftrace(part)?;
    found.texts.events(part)?;
    found.texts.functions(part)?;
    Texts::printk(part)?;
    found.texts.comms(part)?;
    part.within("the number of CPUs");
    let mut cpus = part.u32()?;
    let mut buffers = Vec::new();
    let mut word = part.bytes(10)?;
    if word == b"options  \0" {
        part.within("the options");
        loop {
            let option = part.u16()?;
            if option == 0 {
                break;
            }
            let length = part.u32()?;
            let data = part.bytes(usize::try_from(length).unwrap_or(usize::MAX))?;
            if option == BUFFER {
                let mut option = Part::new(data, part.place(), "the option of a buffer");
                buffers.push((option.u64()?, option.text()?));
            } else {
                version7::option(option, data, found);
            }
        }
        word = part.bytes(10)?;
    }
    part.within("the table of CPUs");
    match word {
        b"flyrecord\0" => {}
        b"latency  \0" => return Err(DatError::Latency),
        _ => return Err(part.wrong("neither options, events nor a tracer's text follow")),
    }
    // More CPUs than were read at first, with CPUs offline between them.
    cpus = cpus.max(found.cpus.filter(|n| *n <= CPUS_MAX).unwrap_or(0).min(cpus));
    let (streams, clock) = table(part, cpus)?;
    found.buffers.push(Buffer { name: String::new(), clock, page_bytes: 0, streams });
    found.cpus = found.cpus.or(Some(cpus));
    for (at, name) in buffers {
        // Word, table and clock: all that lies there before the pages.
        let room = (10 + 8 + CLOCK_MAX).saturating_add(u64::from(cpus).saturating_mul(16));
        let bytes = source.read(at, room)?;
        let mut part = Part::new(&bytes, at, "the table of CPUs of a buffer");
        let read = part.expect("flyrecord").and_then(|()| table(&mut part, cpus));
        match read {
            Ok((streams, clock)) => {
                found.buffers.push(Buffer { name, clock, page_bytes: 0, streams });
            }
            Err(e) => {
                let name = excerpt(&name, SHOWN_MAX);
                found.notes.push(format!("the buffer `{name}` is left out: {e}"));
            }
        }
    }
    Ok(())
}

/// Where the pages of each CPU lie, and the clock where it is said.
fn table(part: &mut Part<'_>, cpus: u32) -> Result<(Vec<Stream>, Option<String>), DatError> {
    if cpus > CPUS_MAX {
        return Err(part.wrong(format!("{cpus} CPUs, and no kernel has more than {CPUS_MAX}")));
    }
    let mut streams = Vec::new();
    for cpu in 0..cpus {
        let (at, bytes) = (part.u64()?, part.u64()?);
        streams.push(Stream::plain(cpu, at, bytes));
    }
    let clock = |part: &mut Part<'_>| {
        let length = part.u64().ok().filter(|n| (3..=CLOCK_MAX).contains(n))?;
        let text = text_of(part.bytes(usize::try_from(length).ok()?).ok()?);
        text.starts_with('[').then_some(text)
    };
    Ok((streams, clock(part)))
}
