// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that requests may take together, and each token of it.
//!
//! Units: bytes. Whoever holds what somebody sent, or an answer that is not read yet, has reserved it here; where there is no more, the
//! client is asked to come again. One token cannot take all of it, so that there is always some for others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// There is no more just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

/// See the module.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    total_bytes: u64,
    share_bytes: u64,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    bytes: u64,
    by: HashMap<String, u64>,
}

impl MemoryBudget {
    /// So much for all, and so much of it for one.
    pub(super) fn new(total_bytes: u64, share_bytes: u64) -> Arc<Self> {
        Arc::new(Self { total_bytes, share_bytes, used: Mutex::default() })
    }

    /// Nothing yet, in the name of `owner`.
    pub(super) fn reservation(self: &Arc<Self>, owner: &str) -> Reservation {
        Reservation { budget: Arc::clone(self), owner: owner.to_owned(), bytes: 0 }
    }

    fn change(&self, owner: &str, from: u64, to: u64) -> Result<(), Exhausted> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let own = used.by.get(owner).copied().unwrap_or(0);
        let (all, own) = ((used.bytes + to).saturating_sub(from), (own + to).saturating_sub(from));
        if to > from && (all > self.total_bytes || own > self.share_bytes) {
            return Err(Exhausted);
        }
        used.bytes = all;
        if own == 0 {
            used.by.remove(owner);
        } else {
            used.by.insert(owner.to_owned(), own);
        }
        Ok(())
    }
}

/// What somebody holds of a budget, until it is dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    budget: Arc<MemoryBudget>,
    owner: String,
    bytes: u64,
}

impl Reservation {
    /// Holds so much from now on.
    pub(super) fn hold(&mut self, bytes: u64) -> Result<(), Exhausted> {
        self.budget.change(&self.owner, self.bytes, bytes)?;
        self.bytes = bytes;
        Ok(())
    }

    /// Another one of the same owner, which holds nothing yet.
    pub(super) fn emptied(&self) -> Self {
        self.budget.reservation(&self.owner)
    }

    /// How much it holds.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // Less is always granted.
        let _ = self.budget.change(&self.owner, self.bytes, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cannot_take_what_is_for_all() {
        let budget = MemoryBudget::new(100, 60);
        let (mut a, mut again, mut b) =
            (budget.reservation("a"), budget.reservation("a"), budget.reservation("b"));
        assert_eq!(a.hold(50), Ok(()));
        assert_eq!(again.hold(20), Err(Exhausted));
        assert_eq!(again.hold(10), Ok(()));
        assert_eq!(b.hold(50), Err(Exhausted));
        assert_eq!(b.hold(40), Ok(()));
        drop(a);
        assert_eq!((b.hold(60), again.hold(40)), (Ok(()), Ok(())));
        assert_eq!((b.bytes(), again.bytes()), (60, 40));
        drop((again, b));
        assert!(budget.used.lock().is_ok_and(|used| used.bytes == 0 && used.by.is_empty()));
    }
}
