// SPDX-License-Identifier: MIT OR Apache-2.0
//! One system call, drawn: its slots and its number.
//!
//! Units: bytes, ns.

use tailbound_core::calls::{Amount, Call, Form, Op, SLOTS};

use crate::hunt::random::Random;

/// Most bytes of memory that one slot gets: a guest has 768 MiB for all tasks of all loads.
const MEMORY_MAX_BYTES: u64 = 16 << 20;
/// Most bytes of a file.
const FILE_MAX_BYTES: u64 = 8 << 20;

/// A call of `form`, with any slots and any number.
pub(crate) fn of_form(form: &Form, random: &mut Random) -> Call {
    let slots = form.makes.iter().chain(form.uses).map(|_| slot(random)).collect();
    Call { op: form.op, slots, amount: form.amount.map(|a| amount(form.op, a, random)) }
}

/// Low slots are used more, so that calls meet on them.
pub(crate) fn slot(random: &mut Random) -> u8 {
    u8::try_from(random.scaled(0, u64::from(SLOTS - 1))).unwrap_or(0)
}

/// A number for `op`, rather a small one.
pub(crate) fn amount(op: Op, amount: Amount, random: &mut Random) -> u64 {
    let (least, most) = amount.limits();
    let most = amount_max(op, most);
    round(amount, random.scaled(least, most))
}

/// Numbers that a person would write.
pub(crate) fn round(amount: Amount, n: u64) -> u64 {
    let unit = match amount {
        Amount::Bytes(..) => 4096,
        Amount::Ns(..) => 1000,
    };
    if n > unit { n / unit * unit } else { n }
}

/// The most that is drawn for `op`, whose greatest is `most`.
pub(crate) fn amount_max(op: Op, most: u64) -> u64 {
    match op {
        Op::Map | Op::MapFile | Op::Resize => most.min(MEMORY_MAX_BYTES),
        Op::Pwrite | Op::Pread | Op::Truncate => most.min(FILE_MAX_BYTES),
        _ => most,
    }
}
