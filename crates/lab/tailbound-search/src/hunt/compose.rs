// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which call comes next in a sequence: most of them work on something that is there, and rather on what the last calls
//! worked on. Calls that have nothing to do with each other meet nothing that each alone does not.

use tailbound_core::calls::{Call, Class, FORMS, Form, Op, SLOTS, SlotState, form_of};

use crate::hunt::call::{of_form, slot};
use crate::hunt::random::Random;

/// Percent of calls that go on with what was worked on last.
const GOES_ON: u64 = 50;
/// Percent of the calls that wait, or walk through all memory, which are taken when they were drawn: a pass with several of
/// them takes longer than a candidate, and what stands behind them is never called.
const SLOW: u64 = 20;
/// So many things were worked on last.
const LAST: usize = 3;

/// Where a sequence stands behind some calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stand {
    held: SlotState,
    /// What the last calls worked on and what still is there, the latest first.
    last: Vec<(Class, u8)>,
    /// The file that each memory shows, by its slot, also where that was closed.
    shows: [Option<u8>; SLOTS as usize],
}

impl Stand {
    /// Behind these; what cannot be made there is passed over.
    pub(crate) fn behind<'a>(calls: impl Iterator<Item = &'a Call>) -> Self {
        let mut stand = Self::default();
        calls.for_each(|call| {
            stand.after(call);
        });
        stand
    }

    /// `call` was made; can it be?
    pub(crate) fn after(&mut self, call: &Call) -> bool {
        if self.held.after(call).is_err() {
            return false;
        }
        let mut worked: Vec<(Class, u8)> = call.places().collect();
        for &(class, slot) in &worked.clone() {
            let Some(shows) = self.shows.get_mut(usize::from(slot)) else { continue };
            match (class, call.op) {
                (Class::Memory, Op::MapFile) => {
                    *shows = worked.get(1).map(|(_, file)| *file);
                }
                (Class::Memory, Op::Map) => *shows = None,
                // Who works on memory works on its file.
                (Class::Memory, _) => worked.extend(shows.map(|file| (Class::File, file))),
                _ => {}
            }
        }
        self.last.retain(|one| !worked.contains(one));
        self.last.splice(0..0, worked);
        let held = &self.held;
        self.last.retain(|(class, slot)| held.holds(*class, *slot));
        self.last.truncate(LAST);
        true
    }

    /// What the slots hold.
    pub(crate) const fn held(&self) -> &SlotState {
        &self.held
    }

    /// Some call: mostly one that works on what is there.
    pub(crate) fn next(&self, random: &mut Random) -> Call {
        let on = random.pick(&self.last).copied().filter(|_| random.happens(GOES_ON));
        let uses = |f: &&Form| on.is_none_or(|(class, _)| f.uses.contains(&class));
        let forms: Vec<&Form> = FORMS.iter().filter(uses).collect();
        let mut form = random.pick(&forms).copied().unwrap_or_else(|| form_of(Op::Yield));
        if matches!(form.op, Op::Sleep | Op::Barrier | Op::Smaps) && !random.happens(SLOW) {
            form = random.pick(&forms).copied().unwrap_or(form);
        }
        let mut call = of_form(form, random);
        self.fill(&mut call, on, random);
        call
    }

    /// Slots that hold something, where there are such; of what it works `on` that one.
    fn fill(&self, call: &mut Call, mut on: Option<(Class, u8)>, random: &mut Random) {
        let form = form_of(call.op);
        let makes = usize::from(form.makes.is_some());
        for (class, place) in form.uses.iter().zip(call.slots.iter_mut().skip(makes)) {
            let full = self.held.slots(*class);
            *place = match on.take_if(|on| on.0 == *class) {
                Some((_, slot)) => slot,
                None => random.pick(&full).copied().unwrap_or_else(|| slot(random)),
            };
        }
        // Rather an empty slot: what lies in a full one is let go.
        if let (Some(class), Some(place)) = (form.makes, call.slots.first_mut()) {
            let empty: Vec<u8> =
                (0..SLOTS).filter(|slot| !self.held.holds(class, *slot)).take(1).collect();
            *place = match random.pick(&empty) {
                Some(slot) if random.happens(60) => *slot,
                _ => slot(random),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use tailbound_core::calls::Calls;

    use super::*;

    #[test]
    fn most_calls_can_be_made_where_they_stand_and_work_on_what_is_there() {
        let Ok(calls) = "create.f1+map-file.m2.f1.8K".parse::<Calls>() else { panic!() };
        let stand = Stand::behind(calls.list().iter());
        let mut random = Random::new(1);
        let all: Vec<Call> = (0..1000).map(|_| stand.next(&mut random)).collect();
        let possible = all.iter().filter(|call| stand.clone().after(call)).count();
        assert!(possible > 700, "{possible}");
        let on =
            |class, slot| all.iter().filter(|c| c.places().any(|p| p == (class, slot))).count();
        let (memory, file) = (on(Class::Memory, 2), on(Class::File, 1));
        assert!(memory > 250 && file > 250, "{memory} {file}");
        // A file that is closed is worked on no more, its memory is.
        let mut closed = stand;
        assert!(closed.after(&Call { op: Op::Close, slots: vec![1], amount: None }));
        assert_eq!(closed.last, [(Class::Memory, 2)]);
    }
}
