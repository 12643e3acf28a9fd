// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a channel lies: its words in the memory of all channels, and who may see them.
//!
//! Context: HOT (`word`, `while_zero`). Source: futex(2).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tailbound_rt::Wake;
use tailbound_rt::handover::Block;

use crate::futex::{self, Scope, Waited};
use crate::shared::Shared;

/// The memory behind a channel, by clones of one pointer.
pub(super) type Memory = Arc<Shared<Block>>;

/// What every end knows of its channel.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) memory: Memory,
    pub(super) hop: usize,
    pub(super) scope: Scope,
}

impl Site {
    /// Word `n` of this channel.
    pub(super) fn word(&self, n: usize) -> &AtomicU32 {
        let area = self.memory.words.get(self.hop).unwrap_or(&self.memory.words[0]);
        area.0.get(n).unwrap_or(&area.0[0])
    }
}

/// Waits while `word` is 0; says how the wait ended when it did not become anything else.
pub(super) fn while_zero(site: &Site, word: &AtomicU32) -> Option<Wake> {
    while word.load(Ordering::Acquire) == 0 {
        match futex::wait(word, 0, None, site.scope) {
            Waited::Interrupted => return Some(Wake::Interrupted),
            Waited::Failed(errno) => return Some(Wake::Failed(errno)),
            _ => {}
        }
    }
    None
}
