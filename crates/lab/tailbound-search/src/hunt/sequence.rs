// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sequences of system calls: drawn, changed a little, and made smaller. All of them are whole: a call whose slot is
//! empty gets one that is not, or a call before it that fills it.
//!
//! Units: bytes, ns. Not here: which call is likely to come next (`compose`), one call alone (`call`).

use tailbound_core::calls::{Call, Calls, Class, FORMS, Form, Op, SlotState, form_of};

use crate::hunt::call::{amount, amount_max, of_form, round, slot};
use crate::hunt::compose::Stand;
use crate::hunt::random::Random;

/// Calls that are put in at once, at most.
const MORE: u64 = 8;

/// Any sequence of at most `most` calls.
pub(crate) fn draw(most: usize, random: &mut Random) -> Calls {
    // Long ones meet more; what a find does not need is taken away later.
    let n = random.within(1, most as u64);
    let mut calls = Vec::new();
    let mut stand = Stand::default();
    for _ in 0..n {
        let call = stand.next(random);
        calls.extend(complete(call, &mut stand, random));
    }
    ended(calls, most)
}

/// One a little different.
pub(crate) fn change(from: &Calls, most: usize, random: &mut Random) -> Calls {
    let mut calls = from.list().to_vec();
    loop {
        let at = random.below(calls.len());
        match random.below(8) {
            0..3 => {
                let at = random.below(calls.len() + 1);
                let mut stand = Stand::behind(calls.iter().take(at));
                let n = random.scaled(1, MORE);
                let more = (0..n).flat_map(|_| complete(stand.next(random), &mut stand, random));
                let more: Vec<Call> = more.collect();
                calls.splice(at..at, more);
            }
            3 if calls.len() > 1 => {
                calls.remove(at);
            }
            4 => {
                let other = random.below(calls.len());
                calls.swap(at, other);
            }
            5 => {
                if let Some(call) = calls.get(at).cloned() {
                    calls.insert(at, call);
                }
            }
            _ => {
                if let Some(call) = calls.get_mut(at) {
                    alter(call, random);
                }
            }
        }
        if random.happens(60) {
            // What lets go lies at the end: room is made anywhere.
            while calls.len() > most {
                calls.remove(random.below(calls.len()));
            }
            return whole(calls, most, random);
        }
    }
}

/// A beginning of `one` and an end of `other`, which goes on with what the slots hold then.
pub(crate) fn cross(one: &Calls, other: &Calls, most: usize, random: &mut Random) -> Calls {
    let keep = random.within(1, one.list().len() as u64);
    let skip = random.below(other.list().len());
    let keep = usize::try_from(keep).unwrap_or(usize::MAX);
    let begin = one.list().iter().take(keep);
    whole(begin.chain(other.list().iter().skip(skip)).cloned().collect(), most, random)
}

/// Each sequence that is a step simpler: without a call and those that need it, or with less of one.
pub(crate) fn smaller(it: &Calls) -> Vec<Calls> {
    let mut all = Vec::new();
    for at in 0..it.list().len() {
        let mut calls = it.list().to_vec();
        calls.remove(at);
        all.extend(Calls::new(possible(calls)).ok());
    }
    for (at, call) in it.list().iter().enumerate() {
        let (Some(amount), Some(n)) = (form_of(call.op).amount, call.amount) else { continue };
        let (least, _) = amount.limits();
        for less in [least, round(amount, n / 2)] {
            let mut calls = it.list().to_vec();
            if let Some(call) = calls.get_mut(at).filter(|_| less >= least && less < n) {
                call.amount = Some(less);
                all.extend(Calls::new(calls).ok());
            }
        }
    }
    all
}

/// Those of `calls` that can be made where they stand once the others are gone.
fn possible(calls: Vec<Call>) -> Vec<Call> {
    let mut held = SlotState::default();
    calls.into_iter().filter(|call| held.after(call).is_ok()).collect()
}

/// Another slot or another number.
fn alter(call: &mut Call, random: &mut Random) {
    let form = form_of(call.op);
    let other_slot = random.happens(50);
    match (form.amount, call.slots.is_empty()) {
        (Some(limits), empty) if empty || !other_slot => {
            let old = call.number();
            let (least, most) = limits.limits();
            let n = match random.below(3) {
                0 => old.saturating_mul(2),
                1 => old / 2,
                _ => amount(call.op, limits, random),
            };
            let most = amount_max(call.op, most);
            call.amount = Some(round(limits, n.clamp(least, most)).max(least));
        }
        (_, false) => {
            let at = random.below(call.slots.len());
            if let Some(it) = call.slots.get_mut(at) {
                *it = slot(random);
            }
        }
        _ => *call = Stand::default().next(random),
    }
}

/// `calls` with what they need.
fn whole(calls: Vec<Call>, most: usize, random: &mut Random) -> Calls {
    let mut stand = Stand::default();
    let all = calls.into_iter().flat_map(|call| complete(call, &mut stand, random));
    ended(all.collect(), most)
}

fn ended(mut calls: Vec<Call>, most: usize) -> Calls {
    calls.truncate(most);
    Calls::new(calls).unwrap_or_else(|_| one())
}

/// `call` with what it needs: slots that hold something, filled before where none does. None of both where a file's
/// length forbids it.
fn complete(mut call: Call, stand: &mut Stand, random: &mut Random) -> Vec<Call> {
    let form = form_of(call.op);
    let first = usize::from(form.makes.is_some());
    let mut all = Vec::new();
    for (class, slot) in form.uses.iter().zip(call.slots.iter_mut().skip(first)) {
        if stand.held().holds(*class, *slot) {
            continue;
        }
        let full = stand.held().slots(*class);
        if let Some(other) = random.pick(&full).filter(|_| random.happens(70)) {
            *slot = *other;
        } else if let Some(maker) = maker(*class, *slot, random)
            && stand.after(&maker)
        {
            all.push(maker);
        }
    }
    if stand.after(&call) {
        all.push(call);
    }
    all
}

/// A call that fills this slot and needs nothing.
fn maker(class: Class, slot: u8, random: &mut Random) -> Option<Call> {
    let makers: Vec<&Form> =
        FORMS.iter().filter(|f| f.makes == Some(class) && f.uses.is_empty()).collect();
    let mut call = of_form(random.pick(&makers)?, random);
    call.slots = vec![slot];
    Some(call)
}

/// The sequence of those from which nothing was left.
fn one() -> Calls {
    let call = Call { op: Op::Yield, slots: Vec::new(), amount: None };
    Calls::new(vec![call]).unwrap_or_else(|_| Calls::sample())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_and_changed_is_whole_and_no_longer_than_asked() {
        let mut random = Random::new(1);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..300 {
            let mut calls = draw(16, &mut random);
            for _ in 0..20 {
                seen.extend(calls.list().iter().map(|c| form_of(c.op).name));
                assert!(calls.list().len() <= 16);
                assert_eq!(calls.to_string().parse::<Calls>(), Ok(calls.clone()));
                for call in calls.list() {
                    if let Some(amount) = form_of(call.op).amount {
                        let (least, _) = amount.limits();
                        assert!((least..=amount_max(call.op, u64::MAX)).contains(&call.number()));
                    }
                }
                calls = change(&calls, 16, &mut random);
            }
        }
        assert_eq!(seen.len(), FORMS.len(), "{seen:?}");
    }

    #[test]
    fn smaller_ones_are_whole_and_lack_what_needed_what_is_gone() {
        let text = "create.f0+pwrite.f0.64K+map.m0.8K+touch.m0+fork";
        let Ok(calls) = text.parse::<Calls>() else { panic!("{text}") };
        let all: Vec<String> = smaller(&calls).iter().map(ToString::to_string).collect();
        let wanted = [
            "map.m0.8K+touch.m0+fork",
            "create.f0+map.m0.8K+touch.m0+fork",
            "create.f0+pwrite.f0.64K+fork",
            "create.f0+pwrite.f0.64K+map.m0.8K+fork",
            "create.f0+pwrite.f0.64K+map.m0.8K+touch.m0",
            "create.f0+pwrite.f0.1+map.m0.8K+touch.m0+fork",
            "create.f0+pwrite.f0.32K+map.m0.8K+touch.m0+fork",
            "create.f0+pwrite.f0.64K+map.m0.4K+touch.m0+fork",
            "create.f0+pwrite.f0.64K+map.m0.4K+touch.m0+fork",
        ];
        assert_eq!(all, wanted);
    }
}
