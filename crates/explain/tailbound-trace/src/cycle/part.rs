// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of cycles, small: what a part went to is kept once and meant by its number.
//!
//! Units: ns on the trace's clock.

use std::collections::HashMap;

use tailbound_core::blame::{BlamePart, Cause, Phase, Sureness};

/// Most different things that time goes to; of more the name is left out.
const WHATS_MAX: usize = 1 << 14;
/// Most parts of one stretch: of more the shortest become their neighbours'.
pub(super) const PARTS_MAX: usize = 256;

/// What a part went to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PartCharge {
    pub(super) phase: Phase,
    pub(super) cause: Cause,
    pub(super) who: String,
    pub(super) sureness: Sureness,
}

/// A stretch of time of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) ns: u64,
    pub(super) what: u32,
}

/// Everything that parts went to so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Whats {
    all: Vec<PartCharge>,
    numbers: HashMap<PartCharge, u32>,
}

impl Whats {
    /// The number of `what`.
    pub(super) fn number(&mut self, mut what: PartCharge) -> u32 {
        if let Some(n) = self.numbers.get(&what) {
            return *n;
        }
        if self.all.len() >= WHATS_MAX {
            "others".clone_into(&mut what.who);
            if let Some(n) = self.numbers.get(&what) {
                return *n;
            }
        }
        let n = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.all.push(what.clone());
        self.numbers.insert(what, n);
        n
    }

    /// What a number means.
    pub(super) fn of(&self, number: u32) -> Option<&PartCharge> {
        self.all.get(usize::try_from(number).ok()?)
    }

    pub(super) fn get(&self, part: Part) -> Option<&PartCharge> {
        self.all.get(usize::try_from(part.what).ok()?)
    }

    /// Parts that adjoin, from the begin of their cycle on.
    pub(super) fn spread(&self, parts: &[Part]) -> Vec<BlamePart> {
        let mut from_ns = 0i64;
        let mut out = Vec::with_capacity(parts.len());
        for part in parts {
            let ns = i64::try_from(part.ns).unwrap_or(i64::MAX);
            if let Some(w) = self.get(*part) {
                out.push(BlamePart {
                    phase: w.phase,
                    from_ns,
                    ns,
                    cause: w.cause,
                    who: w.who.clone(),
                    sureness: w.sureness,
                    ..BlamePart::default()
                });
            }
            from_ns = from_ns.saturating_add(ns);
        }
        out
    }
}

/// Parts of a stretch, in the order of time, whose number is bounded.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts(pub(super) Vec<Part>);

impl Parts {
    /// Appends; a part like the last one lengthens it, unless that lies before `wall`.
    pub(super) fn push(&mut self, part: Part, wall: usize) {
        if part.ns == 0 {
            return;
        }
        let behind = self.0.len().saturating_sub(wall);
        if let Some(last) = self.0.last_mut().filter(|last| last.what == part.what && behind > 0) {
            last.ns = last.ns.saturating_add(part.ns);
            return;
        }
        if behind >= PARTS_MAX {
            self.give_away(wall);
        }
        self.0.push(part);
    }

    /// The shortest part behind `wall` becomes its neighbour's.
    fn give_away(&mut self, wall: usize) {
        let shortest =
            self.0.iter().enumerate().skip(wall.saturating_add(1)).min_by_key(|(_, p)| p.ns);
        let Some((at, gone)) = shortest.map(|(i, p)| (i, *p)) else { return };
        self.0.remove(at);
        if let Some(before) = at.checked_sub(1).and_then(|i| self.0.get_mut(i)) {
            before.ns = before.ns.saturating_add(gone.ns);
        }
    }

    /// The last `ns` of it.
    pub(super) fn last(&self, ns: u64) -> Self {
        let mut left = ns;
        let mut out = Vec::new();
        for part in self.0.iter().rev() {
            if left == 0 {
                break;
            }
            let part = Part { ns: part.ns.min(left), ..*part };
            left = left.saturating_sub(part.ns);
            out.push(part);
        }
        out.reverse();
        Self(out)
    }

    pub(super) fn ns(&self) -> u64 {
        self.0.iter().map(|p| p.ns).fold(0, u64::saturating_add)
    }
}
