// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plain numbers in binary, of 32 or 64 bits: what a program leaves that writes its samples
//! as they stand in memory.
//!
//! Layout: little-endian, without header, one after another; ns unless the unit
//! is given. Nothing in such a file says what it is, so it is never guessed; text, numbers that are all the same, and numbers of
//! which half are above a second are refused.

use crate::column::Timed;
use crate::draft::Draft;
use crate::error::Fault;
use crate::read::Options;
use crate::stream::{Records, Stream};

pub(crate) fn u32s(stream: &mut Stream<'_>, options: &Options) -> Result<Draft, Fault> {
    parse(stream, options, "raw 32-bit numbers", |record: &[u8; 4]| {
        u64::from(u32::from_le_bytes(*record))
    })
}

pub(crate) fn u64s(stream: &mut Stream<'_>, options: &Options) -> Result<Draft, Fault> {
    parse(stream, options, "raw 64-bit numbers", |record: &[u8; 8]| u64::from_le_bytes(*record))
}

fn parse<const SIZE: usize>(
    stream: &mut Stream<'_>,
    options: &Options,
    variant: &str,
    number: impl Fn(&[u8; SIZE]) -> u64 + Sync,
) -> Result<Draft, Fault> {
    let mut draft = Draft::new("unknown", variant);
    let given = options.unit_ns.filter(|u| *u > 0);
    let unit = given.unwrap_or(1);
    let mut records = Records::<SIZE>::new();
    let mut column = Timed::new(options, Some(SIZE as u64));
    stream.pieces(
        |feed, out| {
            records.piece(feed, out, |record, place| {
                number(record)
                    .checked_mul(unit)
                    .and_then(|ns| i64::try_from(ns).ok())
                    .ok_or_else(|| Fault::byte(place, "the number is not a time within 292 years"))
            })
        },
        |piece| column.add(piece),
    )?;
    if column.n() == 0 {
        return Err(Fault::file("there is no number in the file"));
    }
    torn(&mut draft, records.torn, "number");
    draft.lose(
        "Neither sign nor unit of the numbers is in the file: what came early cannot be in it.",
    );
    if given.is_none() {
        draft.lose("The unit was not given: the numbers are taken for ns.");
    }
    draft.cut_values(unit);
    column.finish(&mut draft, unit, options)?;
    Ok(draft)
}

/// Says that the file ends within a record.
pub(crate) fn torn(draft: &mut Draft, bytes: usize, what: &str) {
    if bytes > 0 {
        draft.lose(format!("The last {bytes} bytes are no whole {what} and were passed over."));
        draft.cut_off = true;
    }
}
