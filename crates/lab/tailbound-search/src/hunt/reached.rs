// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which code of the kernel was reached, and by whom first: a condition behind which something lies shows itself as code
//! that nobody executed before, long before anything is late.
//!
//! All of it follows from the lines of the corpus: a line has the code that was new then.

use crate::hunt::candidate::{Figures, Origin};
use crate::hunt::code::Code;
use crate::hunt::random::Random;

/// What so many reach again is nothing rare; that is counted no further.
const COMMON: u64 = 16;
/// A weight of one whose code nobody reached again, and which has no children.
const WEIGHT: u64 = 1 << 24;

/// Candidates that one is picked from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Among {
    All,
    /// Sequences of system calls and nothing else.
    Sequences,
}

/// One that was the first to reach something.
#[derive(Clone, Debug)]
struct First {
    nr: u64,
    code: Code,
    /// How many others than its children reached all of that again.
    others: u64,
    /// Its children, and those of them that reached all of that again.
    children: u64,
    inherited: u64,
    /// Children since the last that was itself the first to reach something.
    dry: u64,
    among: Among,
}

impl First {
    /// Those come first whose code is rare, and whose children were few, or reached something lately. What children do not
    /// reach again was a coincidence: an interrupt in a place where there seldom is one.
    const fn weight(&self) -> u64 {
        let inherited = WEIGHT / (1 + self.children) * (1 + self.inherited);
        inherited / ((1 + self.dry) * (2 + self.others))
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reached {
    code: Code,
    first: Vec<First>,
    /// Is it known of any candidate?
    known: bool,
}

impl Reached {
    /// All code that was executed.
    pub(crate) const fn code(&self) -> &Code {
        &self.code
    }

    /// Is it known of any candidate what it executed?
    pub(crate) const fn known(&self) -> bool {
        self.known
    }

    /// How many were the first to reach something, but for the base line.
    pub(crate) fn firsts(&self) -> usize {
        self.first.len()
    }

    /// Leaves of what a run executed what is new, and tells whose code it reached again.
    pub(crate) fn reduce(&self, figures: &mut Figures) {
        let Some(all) = figures.code.take() else { return };
        let again = |f: &&First| f.others + f.inherited < COMMON && f.code.within(&all);
        figures.again = self.first.iter().filter(again).map(|f| f.nr).collect();
        figures.code = Some(all.without(&self.code));
    }

    /// Why figures of a corpus cannot be what [`Self::reduce`] left, if so.
    pub(crate) fn contradicts(&self, figures: &Figures) -> Option<&'static str> {
        let is_old = |code: &Code| code.without(&self.code) != *code;
        let is_first = |nr: &u64| self.first.iter().any(|f| f.nr == *nr);
        if figures.code.as_ref().is_some_and(is_old) {
            return Some("it has code as new that an earlier one executed");
        }
        (!figures.again.iter().all(is_first))
            .then_some("it names an earlier one that was the first to execute nothing")
    }

    /// Takes what is new in candidate `nr`.
    pub(crate) fn add(&mut self, nr: u64, origin: &Origin, figures: &Figures, among: Among) {
        let Some(code) = &figures.code else { return };
        self.known = true;
        let parents = match origin {
            Origin::Changed(one) => [Some(*one), None],
            Origin::Crossed(one, other) => [Some(*one), Some(*other)],
            Origin::Base | Origin::Corner | Origin::Drawn => [None, None],
        };
        for first in &mut self.first {
            let again = u64::from(figures.again.contains(&first.nr));
            if parents.contains(&Some(first.nr)) {
                first.children += 1;
                first.inherited += again;
                first.dry = if code.is_empty() { first.dry + 1 } else { 0 };
            } else {
                first.others += again;
            }
        }
        // Of the base line everything is new.
        if !code.is_empty() && *origin != Origin::Base {
            let code = code.clone();
            self.first.push(First {
                nr,
                code,
                others: 0,
                children: 0,
                inherited: 0,
                dry: 0,
                among,
            });
        }
        self.code.add(code);
    }

    /// One that was the first to reach something, by its weight.
    pub(crate) fn pick(&self, among: Among, random: &mut Random) -> Option<u64> {
        let all = || self.first.iter().filter(|f| among == Among::All || f.among == among);
        let sum: u64 = all().map(First::weight).sum();
        let mut at = random.within(0, sum.checked_sub(1)?);
        let found = all().find(|f| {
            let here = at < f.weight();
            at = at.saturating_sub(f.weight());
            here
        });
        found.map(|f| f.nr)
    }
}
