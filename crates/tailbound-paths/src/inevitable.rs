// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instant from which a late sample was inevitable: a search backwards in time.
//!
//! Context: COLD. Units: ns of the guest's virtual time.
//! At an instant a few variations are tried. Where all of them leave the sample late, it was inevitable then. The search
//! goes back from the due time in steps that double until some variation made it early, then halves what lies
//! between. That it was inevitable from there on is known of the instants that were tried, and taken as true of those between.
//! Not here: what a variation is and how it is made (`varied`, `tailbound-lab`).

/// What a variation led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The sample has this latency.
    Latency(i64),
    /// The activation did not come within twice its time: it was skipped, or is later than that.
    Missed,
}

impl Outcome {
    /// Is it as late as `late_ns`?
    #[must_use]
    pub fn is_late(self, late_ns: i64) -> bool {
        match self {
            Self::Latency(ns) => ns >= late_ns,
            Self::Missed => true,
        }
    }
}

/// An instant that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// When it was varied: where a block of instructions ends.
    pub at_ns: u64,
    /// The block's address.
    pub address: u64,
    /// What came of each variation, in their order; fewer than all where one of them was early.
    pub outcomes: Vec<Outcome>,
}

impl Tried {
    /// How many of the tried ones remained late.
    #[must_use]
    pub fn late(&self, late_ns: i64) -> usize {
        self.outcomes.iter().filter(|o| o.is_late(late_ns)).count()
    }

    /// Did none of them make it early?
    #[must_use]
    pub fn is_inevitable(&self, late_ns: i64) -> bool {
        self.late(late_ns) == self.outcomes.len()
    }
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// No instant before this is tried.
    pub from_ns: u64,
    /// The timer was due.
    pub due_ns: u64,
    /// First distance from there.
    pub first_ns: u64,
    /// The two instants need not be closer.
    pub close_ns: u64,
    /// A sample is late from here on.
    pub late_ns: i64,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Every instant that was tried, in the order of trying.
    pub tried: Vec<Tried>,
    /// The earliest from which it was inevitable, among `tried`.
    pub inevitable: Option<usize>,
    /// The latest before that at which some variation made it early.
    pub open: Option<usize>,
}

/// Searches; `probe` tries an instant (a time at or before that of the block that it yields), and none once it is to end.
///
/// # Errors
/// What `probe` says.
pub fn search<E>(
    bounds: Bounds,
    probe: &mut dyn FnMut(u64) -> Result<Option<Tried>, E>,
) -> Result<Found, E> {
    let mut found = Found::default();
    let mut distance = bounds.first_ns.max(1);
    // No instant from here on is to be tried: it is known to be inevitable.
    let mut known_ns = bounds.due_ns;
    loop {
        let at = bounds.due_ns.saturating_sub(distance).max(bounds.from_ns);
        let Some(is_inevitable) = found.try_at(at, bounds, probe)? else { return Ok(found) };
        if !is_inevitable {
            break;
        }
        known_ns = known_ns.min(at);
        if at <= bounds.from_ns {
            return Ok(found);
        }
        distance = distance.saturating_mul(2);
    }
    loop {
        let open_ns = found.open.and_then(|at| found.tried.get(at)).map_or(0, |t| t.at_ns);
        if known_ns.saturating_sub(open_ns) <= bounds.close_ns.max(1) {
            return Ok(found);
        }
        let at = open_ns.midpoint(known_ns);
        let Some(is_inevitable) = found.try_at(at, bounds, probe)? else { return Ok(found) };
        if is_inevitable {
            known_ns = at;
        }
    }
}

impl Found {
    /// Tries one; was it inevitable then?
    fn try_at<E>(
        &mut self,
        at_ns: u64,
        bounds: Bounds,
        probe: &mut dyn FnMut(u64) -> Result<Option<Tried>, E>,
    ) -> Result<Option<bool>, E> {
        let Some(tried) = probe(at_ns)? else { return Ok(None) };
        let is_inevitable = tried.is_inevitable(bounds.late_ns);
        let place = if is_inevitable { &mut self.inevitable } else { &mut self.open };
        *place = Some(self.tried.len());
        self.tried.push(tried);
        Ok(Some(is_inevitable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds =
        Bounds { from_ns: 1000, due_ns: 1_000_000, first_ns: 1000, close_ns: 16, late_ns: 90 };

    /// Blocks of 7 ns; inevitable from `from` on.
    fn found(from: u64) -> (Found, usize) {
        let mut n = 0;
        let mut probe = |at: u64| {
            n += 1;
            let at_ns = at.next_multiple_of(7);
            let late = if at_ns >= from { 100 } else { 5 };
            let outcomes = vec![Outcome::Latency(100), Outcome::Latency(late)];
            Ok::<_, ()>(Some(Tried { at_ns, address: at_ns / 7, outcomes }))
        };
        let found = search(BOUNDS, &mut probe).unwrap();
        (found, n)
    }

    #[test]
    fn the_instant_is_found_wherever_it_is() {
        for from in [1000, 1001, 5000, 250_003, 900_000, 999_000, 999_980] {
            let (found, n) = found(from);
            let at = |index: Option<usize>| index.map(|at| found.tried[at].at_ns);
            let inevitable = at(found.inevitable);
            if from <= 1001 {
                assert_eq!((inevitable, found.open), (Some(1001), None));
                continue;
            }
            let open = at(found.open).unwrap();
            assert!(open < from && from - open <= 16 + 7, "{from}: {open}");
            if let Some(inevitable) = inevitable {
                assert!(inevitable >= from && inevitable - open <= 32, "{from}: {inevitable}");
            }
            assert!(n < 40, "{n}");
        }
    }

    #[test]
    fn a_search_that_is_to_end_has_what_it_found_so_far() {
        let mut left = 3;
        let mut probe = |at_ns: u64| {
            left -= 1;
            let outcomes = vec![Outcome::Missed];
            Ok::<_, ()>((left >= 0).then_some(Tried { at_ns, address: 0, outcomes }))
        };
        let found = search(BOUNDS, &mut probe).unwrap();
        assert_eq!((found.tried.len(), found.inevitable, found.open), (3, Some(2), None));
    }
}
