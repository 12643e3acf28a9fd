// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a CPU executed block by block, and as a tree of calls.
//!
//! Units: ns.

use std::io::Read;

use tailbound_trace::symbols::Symbols;

use crate::log::{Log, LogError, Record};
use crate::names::named;
use crate::plan::Plan;
use crate::record::{self, kind};
use crate::tree::{Step, Tree};
use crate::window::GuestWindow;

/// A block of instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) t_ns: u64,
    pub(crate) address: u64,
    pub(crate) cpu: u8,
    pub(crate) stack: u32,
}

impl Block {
    /// The kernel's code lies within 2 GiB of `text`.
    fn of(r: &Record, text: u64) -> Self {
        let (stack, low) = ((r.value >> 32) as u32, r.value as u32);
        let kernel = r.state & record::block::KERNEL != 0;
        let apart = low.wrapping_sub(text as u32).cast_signed();
        let address =
            if kernel { text.wrapping_add_signed(i64::from(apart)) } else { u64::from(low) };
        Self { t_ns: r.t_ns, address, cpu: r.cpu, stack }
    }
}

/// All of a log; none where a window begins: what the last one before executed is not known.
pub(crate) fn blocks(log: impl Read, plan: &Plan) -> Result<Vec<Option<Block>>, LogError> {
    let mut blocks = Vec::new();
    Log::open(log)?.each(|r| match r.kind {
        kind::BLOCK => blocks.push(Some(Block::of(&r, plan.text()))),
        kind::WINDOW => blocks.push(None),
        _ => {}
    })?;
    Ok(blocks)
}

/// What a CPU executed within a time, whose last instant is not of it. A block is over where the next one begins, on whatever CPU.
pub(crate) fn tree(
    blocks: &[Option<Block>],
    cpu: u8,
    within: GuestWindow,
    symbols: &Symbols,
    plan: &Plan,
) -> Tree {
    let mut tree = Tree::new(plan.guest().calls());
    for pair in blocks.windows(2) {
        let [Some(one), Some(next)] = pair else { continue };
        let (begin, end) = (one.t_ns.max(within.from_ns), next.t_ns.min(within.to_ns));
        if begin < end && one.cpu == cpu {
            tree.add(Step {
                name: named(symbols, one.address),
                begins: symbols.begins(one.address),
                enters: plan.enters(one.address),
                stack: one.stack,
                ns: (end - begin).cast_signed(),
            });
        }
    }
    tree
}
