// SPDX-License-Identifier: MIT OR Apache-2.0
//! Candidates drawn from everything, changed a little, and made of two.
//!
//! Units: ns. The interval is changed by single ns as well as by a new draw: one µs more has
//! moved the same mixture from 604 to 880 µs, because another path lies in the timer's way.

use tailbound_core::Spec;
use tailbound_core::calls::Calls;

use crate::hunt::candidate::Candidate;
use crate::hunt::random::Random;
use crate::hunt::sequence;
use crate::hunt::space::{Kind, Parameter, Space, Values};

/// Percent of an option's chances to be given at all in a load that is drawn.
const GIVEN: u64 = 40;
/// The same in a corner.
const AT_CORNERS: u64 = 85;
/// Corners of a load.
const CORNERS: usize = 2;
/// Percent of a number's chances to be the upper end.
const MOST: u64 = 20;
/// The same in a corner.
const MOST_AT_CORNERS: u64 = 75;

/// Single built-in loads as they come, and none at all.
pub(crate) fn base(space: &Space) -> Vec<Candidate> {
    let single = |kind: &Kind| Candidate {
        loads: vec![plain(kind)],
        interval_ns: space.base_interval_ns,
        seed: 1,
    };
    let none = Candidate { loads: Vec::new(), interval_ns: space.base_interval_ns, seed: 1 };
    std::iter::once(none).chain(space.kinds.iter().map(single)).collect()
}

/// A load with nothing but what it always has.
pub(crate) fn plain(kind: &Kind) -> Spec {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Spec { name: kind.name.to_owned(), options: kind.fixed.iter().map(own).collect() }
}

/// Single loads, each of whose options is at an end of what it can be, mostly the upper one: two options that
/// make a load late only together are seldom drawn together.
pub(crate) fn corners(space: &Space, random: &mut Random) -> Vec<Candidate> {
    let mut all = Vec::new();
    for kind in space.kinds.iter().filter(|k| !k.parameters.is_empty()) {
        for _ in 0..CORNERS {
            let mut load = plain(kind);
            for parameter in kind.parameters {
                if random.happens(AT_CORNERS) {
                    load.options.push((parameter.name.to_owned(), end(parameter.values, random)));
                }
            }
            all.push(Candidate { loads: vec![load], interval_ns: space.base_interval_ns, seed: 1 });
        }
    }
    all
}

/// The load that makes a sequence of calls, and the option that has it.
fn of_sequences(space: &Space) -> Option<(&Kind, &Parameter)> {
    let has = |kind: &&Kind| kind.parameters.iter().any(|p| matches!(p.values, Values::Calls(_)));
    let kind = space.kinds.iter().find(has)?;
    Some((kind, kind.parameters.iter().find(|p| matches!(p.values, Values::Calls(_)))?))
}

/// Is it a sequence of calls and nothing else?
pub(crate) fn is_sequence(it: &Candidate, space: &Space) -> bool {
    of_sequences(space).is_some_and(|(kind, _)| it.names() == [kind.name])
}

/// A sequence of calls alone: `from` changed, or its beginning with an end of `with`, or any.
pub(crate) fn sequence(
    from: Option<&Candidate>,
    with: Option<&Candidate>,
    space: &Space,
    random: &mut Random,
) -> Option<Candidate> {
    let (kind, parameter) = of_sequences(space)?;
    let Values::Calls(most) = parameter.values else { return None };
    let calls = |it: Option<&Candidate>| {
        let load = it?.loads.first()?;
        load.option(parameter.name)?.parse::<Calls>().ok()
    };
    let made = match (calls(from), calls(with)) {
        (Some(one), Some(other)) => sequence::cross(&one, &other, most, random),
        (Some(one), None) => sequence::change(&one, most, random),
        (None, _) => sequence::draw(most, random),
    };
    let text = made.to_string();
    let mut load = plain(kind);
    load.options.push((parameter.name.to_owned(), text));
    Some(Candidate { loads: vec![load], interval_ns: space.base_interval_ns, seed: 1 })
}

/// Anything.
pub(crate) fn draw(space: &Space, random: &mut Random) -> Candidate {
    let most = random.within(1, space.loads_max as u64);
    let mut it = Candidate { loads: Vec::new(), interval_ns: 0, seed: 0 };
    for _ in 0..most {
        add(&mut it, space, random);
    }
    it.interval_ns = interval(space, random);
    it.seed = seed(space, random);
    it
}

/// Something a little different.
pub(crate) fn change(from: &Candidate, space: &Space, random: &mut Random) -> Candidate {
    let mut it = from.clone();
    loop {
        match random.below(12) {
            0 | 1 => it.interval_ns = moved(it.interval_ns, 500, space, random),
            2 | 8 | 9 => it.interval_ns = moved(it.interval_ns, 20_000, space, random),
            3 => it.interval_ns = interval(space, random),
            4 => it.seed = seed(space, random),
            5 if it.loads.len() < space.loads_max => add(&mut it, space, random),
            6 if it.loads.len() > 1 => {
                let at = random.below(it.loads.len());
                it.loads.remove(at);
            }
            7 if !it.loads.is_empty() => {
                let at = random.below(it.loads.len());
                it.loads.remove(at);
                add(&mut it, space, random);
            }
            _ => option(&mut it, space, random),
        }
        // One change shows what it does; several find what one alone does not show.
        if random.happens(60) {
            return it;
        }
    }
}

/// Loads of both, the rest of either.
pub(crate) fn cross(
    one: &Candidate,
    other: &Candidate,
    space: &Space,
    random: &mut Random,
) -> Candidate {
    let mut loads: Vec<Spec> = Vec::new();
    for load in one.loads.iter().chain(&other.loads) {
        let there = loads.iter().any(|l| l.name == load.name);
        if !there && loads.len() < space.loads_max && random.happens(65) {
            loads.push(load.clone());
        }
    }
    if loads.is_empty() {
        loads.clone_from(&one.loads);
    }
    let interval_ns = if random.happens(50) { one } else { other }.interval_ns;
    let seed = if random.happens(50) { one } else { other }.seed;
    Candidate { loads, interval_ns, seed }
}

fn interval(space: &Space, random: &mut Random) -> u64 {
    random.within(space.interval_ns.0, space.interval_ns.1)
}

fn seed(space: &Space, random: &mut Random) -> u32 {
    u32::try_from(random.within(1, space.seed_max.into())).unwrap_or(1)
}

/// `by` at most, up or down.
fn moved(interval_ns: u64, by: u64, space: &Space, random: &mut Random) -> u64 {
    let step = random.scaled(1, by);
    let to = if random.happens(50) {
        interval_ns.saturating_add(step)
    } else {
        interval_ns.saturating_sub(step)
    };
    to.clamp(space.interval_ns.0, space.interval_ns.1)
}

/// Adds a load that is not there yet.
fn add(it: &mut Candidate, space: &Space, random: &mut Random) {
    let there = |kind: &&Kind| it.loads.iter().any(|l| l.name == kind.name);
    let left: Vec<&Kind> = space.kinds.iter().filter(|kind| !there(kind)).collect();
    let Some(kind) = random.pick(&left) else { return };
    let mut load = plain(kind);
    for parameter in kind.parameters {
        if random.happens(GIVEN) {
            load.options.push((parameter.name.to_owned(), value(parameter.values, random)));
        }
    }
    it.loads.push(load);
}

/// Gives, changes or takes away one option of one load.
fn option(it: &mut Candidate, space: &Space, random: &mut Random) {
    let at = random.below(it.loads.len());
    let Some(load) = it.loads.get_mut(at) else { return };
    let Some(kind) = space.kinds.iter().find(|k| k.name == load.name) else { return };
    let Some(parameter) = random.pick(kind.parameters) else { return };
    let place = load.options.iter_mut().find(|(name, _)| name == parameter.name);
    match place {
        None => load.options.push((parameter.name.to_owned(), value(parameter.values, random))),
        Some(_) if random.happens(15) => {
            load.options.retain(|(name, _)| name != parameter.name);
        }
        Some((_, old)) => *old = near(old, parameter, random),
    }
}

fn value(values: Values, random: &mut Random) -> String {
    match values {
        Values::Words(words) => random.pick(words).map_or_else(String::new, |w| (*w).to_owned()),
        Values::Count(least, most) | Values::Kib(least, most) | Values::Us(least, most) => {
            let n = if random.happens(MOST) { most } else { random.scaled(least, most) };
            written(values, n)
        }
        Values::Calls(most) => sequence::draw(most, random).to_string(),
    }
}

/// One of the two ends of a number; of anything else, any value.
fn end(values: Values, random: &mut Random) -> String {
    match values {
        Values::Count(least, most) | Values::Kib(least, most) | Values::Us(least, most) => {
            written(values, if random.happens(MOST_AT_CORNERS) { most } else { least })
        }
        Values::Words(_) | Values::Calls(_) => value(values, random),
    }
}

/// Another value, often one that is not far away.
fn near(old: &str, parameter: &Parameter, random: &mut Random) -> String {
    let values = parameter.values;
    if let (Values::Calls(most), Ok(calls)) = (values, old.parse::<Calls>()) {
        return sequence::change(&calls, most, random).to_string();
    }
    let (Some(n), Values::Count(least, most) | Values::Kib(least, most) | Values::Us(least, most)) =
        (number(values, old), values)
    else {
        return value(values, random);
    };
    let n = match random.below(6) {
        0 => n.saturating_add(1),
        1 => n.saturating_sub(1),
        2 => n.saturating_mul(2),
        3 => n / 2,
        4 => n.saturating_add(random.within(0, n / 4)),
        _ => random.scaled(least, most),
    };
    written(values, n.clamp(least, most))
}

/// The number in an option's text.
pub(crate) fn number(values: Values, text: &str) -> Option<u64> {
    match values {
        Values::Words(_) | Values::Calls(_) => None,
        Values::Count(..) => text.parse().ok(),
        Values::Kib(..) => text.strip_suffix('K')?.parse().ok(),
        Values::Us(..) => text.strip_suffix("us")?.parse().ok(),
    }
}

/// The text of a number.
pub(crate) fn written(values: Values, n: u64) -> String {
    match values {
        Values::Words(_) | Values::Calls(_) | Values::Count(..) => n.to_string(),
        Values::Kib(..) => format!("{n}K"),
        Values::Us(..) => format!("{n}us"),
    }
}
