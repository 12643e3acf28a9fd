// SPDX-License-Identifier: MIT OR Apache-2.0
//! The search on a kernel that was made up, in which four conditions lie one behind the other within one function: none of
//! them makes anything late or shows a section of its own, each executes some code.
//!
//! Nothing here is measured.

use tailbound_core::calls::{Call, Calls, Op};

use crate::hunt::{
    Candidate, Code, End, Entry, Evaluator, Figures, Guidance, Origin, Outcome, Search, hunt, lab,
};

const EVALUATIONS: u64 = 2000;
const SEEDS: u64 = 50;
/// Of hunts that are told of, not what they find.
const SHORT: u64 = 400;
const PLANTED_NS: i64 = 500_000;
const BASE_NS: i64 = 5_000;
/// Where the made-up kernel's functions begin, one for each call.
const TEXT: u64 = 0xffff_ffff_8100_0000;
const CONDITIONS: u64 = TEXT + 0x10_0000;
const SELDOM: u64 = TEXT + 0x20_0000;

/// A pipe.
#[derive(Clone, Copy, Default)]
struct Pipe {
    /// Writes since it was made, or read.
    sent: u64,
    /// A child was made while two writes were in it.
    forked: bool,
    /// Then it was read.
    received: bool,
}

/// How many conditions hold when a pipe is shut, at most: written to twice, then a child, then read, then written to
/// again.
fn met(calls: &Calls) -> u64 {
    let mut pipes = [None::<Pipe>; 4];
    let mut most = 0;
    let shut = |pipe: Option<Pipe>| {
        pipe.map_or(0, |p| match p {
            Pipe { received: true, sent: 1.., .. } => 4,
            Pipe { received: true, .. } => 3,
            Pipe { forked: true, .. } => 2,
            Pipe { sent: 2.., .. } => 1,
            _ => 0,
        })
    };
    let mut made = |call: &Call| {
        let slot = call.slot(0);
        match call.op {
            Op::Pipe | Op::Socketpair => {
                most = most.max(shut(pipes[slot].replace(Pipe::default())));
            }
            Op::Send => pipes[slot].iter_mut().for_each(|p| p.sent += 1),
            Op::Receive => {
                pipes[slot].iter_mut().for_each(|p| (p.sent, p.received) = (0, p.forked));
            }
            Op::Fork => pipes.iter_mut().flatten().for_each(|p| p.forked |= p.sent >= 2),
            Op::Shut => most = most.max(shut(pipes[slot].take())),
            _ => {}
        }
    };
    calls.list().iter().for_each(&mut made);
    pipes.into_iter().map(shut).max().unwrap_or(0).max(most)
}

fn sequence(it: &Candidate) -> Option<Calls> {
    let load = it.loads.iter().find(|l| l.name == "calls")?;
    load.option("do").map_or_else(|| Some(Calls::sample()), |text| text.parse().ok())
}

/// What the made-up kernel shows.
struct Kernel {
    code_known: bool,
}

impl Kernel {
    fn outcome(&self, it: &Candidate) -> Outcome {
        let calls = sequence(it);
        let met = calls.as_ref().map_or(0, met);
        let latest_ns = if met == 4 { PLANTED_NS } else { BASE_NS };
        // Each call has a function; what conditions lead to lies in one of them, piece behind piece.
        let function = |call: &Call| (TEXT + (call.op as u64) * 0x100, 0x80);
        let mut pieces: Vec<(u64, u64)> =
            calls.iter().flat_map(|c| c.list()).map(function).collect();
        pieces.push((CONDITIONS, 0x10 + met * 0x10));
        // Something that has nothing to do with it, seldom the same.
        let length = it.to_string().len() as u64 * it.interval_ns;
        let seldom = length % 4099;
        if seldom.is_multiple_of(10) {
            pieces.push((SELDOM + seldom * 0x10, 0x10));
        }
        let code = pieces.into_iter().map(|(from, bytes)| (from, from + bytes)).collect();
        let code = self.code_known.then(|| Code::of(code));
        Outcome::Ran(Figures { latest_ns, code, ..Figures::default() })
    }
}

/// Ends after so many.
struct Made {
    kernel: Kernel,
    left: usize,
}

impl Evaluator for Made {
    fn evaluate(&mut self, batch: &[Candidate], told: &mut dyn FnMut(Outcome)) -> End {
        for candidate in batch {
            let Some(left) = self.left.checked_sub(1) else { return End::Early };
            self.left = left;
            told(self.kernel.outcome(candidate));
        }
        End::Done
    }
}

fn hunted(seed: u64, most: u64, code_known: bool, guidance: Guidance) -> Search {
    let mut search = Search::new(lab(), seed, guidance);
    let mut made = Made { kernel: Kernel { code_known }, left: usize::MAX };
    let end = hunt(&mut search, Vec::new(), most, &mut made, &mut |_, _| {});
    assert_eq!(end, Ok(End::Done));
    search
}

#[test]
fn conditions_that_show_as_code_lead_to_what_lies_behind_them() {
    let found = |code_known, guidance| {
        let found = |seed: &u64| {
            let search = hunted(*seed, EVALUATIONS, code_known, guidance);
            search.worst().and_then(Entry::latest_ns) == Some(PLANTED_NS)
        };
        (1..=SEEDS).filter(found).count()
    };
    let (led, not_led) = (found(true, Guidance::Results), found(false, Guidance::Results));
    let blind = found(true, Guidance::Chance);
    assert!(led >= SEEDS as usize * 2 / 5, "found with {led} of {SEEDS} seeds");
    assert!(
        not_led <= led / 2 && blind <= led / 4,
        "found with {led}, without code {not_led}, drawn at random {blind}, of {SEEDS} seeds"
    );
}

#[test]
fn a_line_has_the_code_that_was_new_and_a_hunt_that_goes_on_knows_all_of_it() {
    let whole = hunted(3, SHORT, true, Guidance::Results);
    let (code, firsts) = whole.reached().expect("known");
    let mut all = Code::default();
    let mut new = 0;
    for entry in whole.entries() {
        let own = entry.outcome.figures().and_then(|f| f.code.as_ref()).expect("known");
        assert_eq!(own.without(&all), *own, "candidate {}", entry.nr);
        new += usize::from(!own.is_empty() && entry.origin != Origin::Base);
        all.add(own);
    }
    assert_eq!((&all, new), (code, firsts));
    for cut in [1, 40, 77, 250] {
        let lines: Vec<String> = whole
            .entries()
            .iter()
            .take(cut)
            .map(|e| serde_json::to_string(e).expect("a line"))
            .collect();
        let known = lines.iter().map(|line| serde_json::from_str(line).expect("a line")).collect();
        let mut second = Search::new(lab(), 3, Guidance::Results);
        let mut made = Made { kernel: Kernel { code_known: true }, left: SHORT as usize - cut };
        let end = hunt(&mut second, known, SHORT, &mut made, &mut |_, _| {});
        assert_eq!((end, made.left), (Ok(End::Done), 0));
        assert_eq!(second.entries(), whole.entries());
        assert_eq!(second.reached().map(|(c, n)| (c.clone(), n)), Some((code.clone(), firsts)));
    }
    let none = hunted(3, SHORT, false, Guidance::Results);
    assert!(none.reached().is_none());
}
