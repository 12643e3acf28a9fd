// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instant from which a late sample was inevitable: a search backwards in time.
//!
//! Units: ns of the guest's virtual time.
//! At an instant a few variations may be tried. Where all of them leave the sample late, it was inevitable then. The search
//! goes back from the due time in steps that double until the first variation (of each kind) made it early, then divides what lies
//! between, by the first alone; at the instant that it comes to all are tried, and where one of them made it early it
//! goes on between there and the due time with all. Where the CPU was halted when the timer was due, all instants since it halted are one:
//! it is tried first, and the steps are taken from there. That it was inevitable from there on is taken as true of what lies
//! between instants that were tried. Two instants are tried at a time, whatever the host has.
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
pub struct InstantTrial {
    /// When it was varied: where a block of instructions ends.
    pub at_ns: u64,
    /// The block's address.
    pub address: u64,
    /// What came of each variation, in their order; fewer than all where one of them was early.
    pub outcomes: Vec<Outcome>,
}

impl InstantTrial {
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
    /// The CPU was halted then, and this is the first instant that is not before it: no instruction executed between the two.
    pub halted_ns: Option<u64>,
    /// First distance from the earlier of the two.
    pub first_ns: u64,
    /// The two instants need not be closer.
    pub close_ns: u64,
    /// A sample is late from here on.
    pub late_ns: i64,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackwardSearch {
    /// Every instant that was tried, in the order of trying.
    pub tried: Vec<InstantTrial>,
    /// The earliest from which it was inevitable, among `tried`.
    pub inevitable: Option<usize>,
    /// The latest before that at which some variation made it early.
    pub open: Option<usize>,
}

/// How many variations of an instant are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The first of each kind.
    First,
    /// All.
    All,
}

/// Tries instants (each a time at or before that of the block that is told of it); nothing once it is to end.
pub type Probe<'a, E> = dyn FnMut(&[u64], Depth) -> Result<Option<Vec<InstantTrial>>, E> + 'a;

/// Searches.
///
/// # Errors
/// What `probe` says.
pub fn search<E>(bounds: Bounds, probe: &mut Probe<'_, E>) -> Result<BackwardSearch, E> {
    let mut search =
        Search { bounds, found: BackwardSearch::default(), known_ns: bounds.due_ns, probe };
    if search.back()? && search.divide(Depth::First)? && search.found.inevitable.is_some() {
        // The decision is that of all variations.
        let at = search.known_ns;
        if search.try_at(&[at], Depth::All)? && search.found.inevitable_at().is_none() {
            search.known_ns = bounds.due_ns;
            search.divide(Depth::All)?;
        }
    }
    Ok(search.found)
}

impl BackwardSearch {
    fn at(&self, index: Option<usize>) -> Option<u64> {
        index.and_then(|at| self.tried.get(at)).map(|t| t.at_ns)
    }

    /// When it was inevitable.
    #[must_use]
    pub fn inevitable_at(&self) -> Option<u64> {
        self.at(self.inevitable)
    }

    /// When some variation made it early.
    #[must_use]
    pub fn open_at(&self) -> Option<u64> {
        self.at(self.open)
    }
}

struct Search<'a, 'b, E> {
    bounds: Bounds,
    found: BackwardSearch,
    /// No instant from here on is to be tried: it is known to be inevitable.
    known_ns: u64,
    probe: &'a mut Probe<'b, E>,
}

impl<E> Search<'_, '_, E> {
    /// Back from the due time; false: it is to end.
    fn back(&mut self) -> Result<bool, E> {
        let mut distance = self.bounds.first_ns.max(1);
        let halted = self.bounds.halted_ns.filter(|at| *at < self.bounds.due_ns);
        let halted = halted.map(|at| at.max(self.bounds.from_ns));
        if let Some(at) = halted
            && !self.try_at(&[at], Depth::First)?
        {
            return Ok(false);
        }
        let end_ns = halted.unwrap_or(self.bounds.due_ns);
        while self.found.open.is_none() && self.known_ns > self.bounds.from_ns {
            let at = |d: u64| end_ns.saturating_sub(d).max(self.bounds.from_ns);
            let (far, near) = (at(distance.saturating_mul(2)), at(distance));
            let both = [far, near];
            let instants = if far < near { &both[..] } else { &both[1..] };
            if !self.try_at(instants, Depth::First)? {
                return Ok(false);
            }
            distance = distance.saturating_mul(4);
        }
        Ok(true)
    }

    /// Divides what lies between the two instants; false: it is to end.
    fn divide(&mut self, depth: Depth) -> Result<bool, E> {
        loop {
            let Some(open_ns) = self.found.open_at() else { return Ok(true) };
            let gap = self.known_ns.saturating_sub(open_ns);
            if gap <= self.bounds.close_ns.max(1) {
                return Ok(true);
            }
            let (one, two) = (open_ns + (gap / 3).max(1), open_ns + (2 * gap / 3).max(1));
            let both = [one, two];
            let instants = if one < two { &both[..] } else { &both[1..] };
            if !self.try_at(instants, depth)? {
                return Ok(false);
            }
        }
    }

    /// Tries instants, in the order of time; false: it is to end.
    fn try_at(&mut self, instants: &[u64], depth: Depth) -> Result<bool, E> {
        let Some(all) = (self.probe)(instants, depth)? else { return Ok(false) };
        // From the latest back: what was before one that is not inevitable decides nothing.
        for (at, tried) in instants.iter().zip(all).rev() {
            let is_inevitable = tried.is_inevitable(self.bounds.late_ns);
            let nth = Some(self.found.tried.len());
            let is_later = self.found.open_at().is_none_or(|open| open <= tried.at_ns);
            if !is_inevitable && is_later {
                self.found.open = nth;
                let after = self.found.inevitable_at().is_some_and(|at| at > tried.at_ns);
                self.found.inevitable = self.found.inevitable.filter(|_| after);
            } else if is_inevitable && is_later && *at <= self.known_ns {
                self.known_ns = *at;
                self.found.inevitable = nth;
            }
            self.found.tried.push(tried);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        from_ns: 1000,
        due_ns: 1_000_000,
        halted_ns: None,
        first_ns: 1000,
        close_ns: 16,
        late_ns: 90,
    };

    /// Blocks of 7 ns: inevitable from `from` on; from `first` on as far as the first variation tells.
    fn found(first: u64, from: u64) -> (BackwardSearch, usize) {
        let mut n = 0;
        let mut probe = |instants: &[u64], depth: Depth| {
            let one = |at: &u64| {
                let at_ns = at.next_multiple_of(7);
                let late = |from| Outcome::Latency(if at_ns >= from { 100 } else { 5 });
                let outcomes = match depth {
                    Depth::First => vec![late(first)],
                    Depth::All => vec![late(first), late(from)],
                };
                n += outcomes.len();
                InstantTrial { at_ns, address: at_ns / 7, outcomes }
            };
            Ok::<_, ()>(Some(instants.iter().map(one).collect()))
        };
        let found = search(BOUNDS, &mut probe).unwrap();
        (found, n)
    }

    #[test]
    fn the_instant_is_found_wherever_it_is() {
        for from in [1000u64, 1001, 5000, 250_003, 900_000, 999_000, 999_980] {
            for first in [from, from.saturating_sub(3000).max(1000)] {
                let (found, n) = found(first, from);
                if from <= 1001 {
                    assert_eq!((found.inevitable_at(), found.open), (Some(1001), None));
                    continue;
                }
                let open = found.open_at().unwrap();
                assert!(open < from && from - open <= 16 + 7, "{from}: {open}");
                if let Some(at) = found.inevitable_at() {
                    assert!(at >= from && at - open <= 32, "{from}: {at}");
                    let last = found.inevitable.map(|at| &found.tried[at]).unwrap();
                    assert_eq!(last.outcomes.len(), 2, "not all were tried");
                }
                assert!(n < 130, "{n}");
            }
        }
    }

    /// The CPU halts at 300,000; inevitable from `from` on.
    #[test]
    fn instants_since_the_cpu_halted_are_one() {
        const HALTED_NS: u64 = 300_000;
        for from in [1500u64, 250_003, 299_993, HALTED_NS, 1_000_100] {
            let mut n_halted = 0;
            let mut probe = |instants: &[u64], depth: Depth| {
                let one = |at: &u64| {
                    let at_ns = if *at >= HALTED_NS { 1_000_001 } else { at.next_multiple_of(7) };
                    n_halted += usize::from(at_ns > HALTED_NS);
                    let outcome = Outcome::Latency(if at_ns >= from { 100 } else { 5 });
                    let n = if depth == Depth::First { 1 } else { 2 };
                    InstantTrial { at_ns, address: at_ns, outcomes: vec![outcome; n] }
                };
                Ok::<_, ()>(Some(instants.iter().map(one).collect()))
            };
            let bounds = Bounds { halted_ns: Some(HALTED_NS), ..BOUNDS };
            let found = search(bounds, &mut probe).unwrap();
            assert!(n_halted <= 2, "{from}: {n_halted}");
            match found.inevitable_at() {
                Some(at) => assert!(at >= from && found.open_at().unwrap() < from, "{from}: {at}"),
                None => assert_eq!((from, found.open_at()), (1_000_100, Some(1_000_001))),
            }
        }
    }

    #[test]
    fn a_search_that_is_to_end_has_what_it_found_so_far() {
        let mut left = 2;
        let mut probe = |instants: &[u64], _| {
            left -= 1;
            let one = |at_ns: &u64| InstantTrial {
                at_ns: *at_ns,
                address: 0,
                outcomes: vec![Outcome::Missed],
            };
            Ok::<_, ()>((left >= 0).then(|| instants.iter().map(one).collect()))
        };
        let found = search(BOUNDS, &mut probe).unwrap();
        assert_eq!((found.tried.len(), found.open), (4, None));
        assert_eq!(found.inevitable_at(), Some(992_000));
    }
}
