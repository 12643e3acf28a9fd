// SPDX-License-Identifier: MIT OR Apache-2.0
//! The longest pulses of a source, joined with what the machine that answered them recorded: where their time went.
//!
//! Units: ns. A datagram is told by its sender, number and token. An edge has no number of its own: it is told by its
//! place on the line, and only where both sides counted the same edges and neither saw one too many or too few. What is
//! not certain is not joined, and the reason is counted.

use std::collections::{BTreeMap, BTreeSet};
use tailbound_core::order;

use tailbound_core::Run;
use tailbound_core::pulses::{
    AnsweredPulse, AnsweredPulses, DatagramNumbers, NotJoined, PulseJoin, PulseSplit, SentPulses,
};
use tailbound_core::record::ExceedanceRecord;
use tailbound_core::units::{format_ns_i64, grouped};

/// Two clocks differ by less than this part: crystals, and a clock that is slewed.
const DRIFT_PART: i64 = 1_000;
/// What a box counts where edges of the answer are not those of its pulses, one to one.
const ODD_EDGES: [&str; 4] = ["spurious", "answered_twice", "unassigned", "edges_lost"];

/// Why one pulse was not joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Unjoined {
    #[error("not among the {} longest that who answered kept: inside it took {} at most", grouped(*.kept), format_ns_i64(*.at_most_ns))]
    NotKept { kept: u64, at_most_ns: i64 },
    #[error("who answered has no such pulse in its measurement")]
    Absent,
    #[error("its number came more than once: which was answered is not known")]
    Repeated,
    #[error("its token is that of another pulse")]
    OtherToken,
    #[error("the kernel did not stamp its arrival, or the clock of the stamp was set")]
    Unstamped,
    #[error("its answer took longer inside than outside: it is another pulse, or a clock is wrong")]
    LongerInside,
}

/// Joins each thread of `run`, whose source sent pulses, with `answers`, the run of who answered.
pub fn join(run: &mut Run, answers: &Run) {
    let mut threads: Vec<u32> = run.threads.iter().map(|thread| thread.thread).collect();
    threads.dedup();
    run.pulse_joins = threads.iter().map(|thread| joined(run, *thread, answers)).collect();
}

/// Says for each thread of `run` why nothing could be joined.
pub(crate) fn refuse(run: &mut Run, reason: &str) {
    let of = |thread: &tailbound_core::record::ThreadRecord| {
        let n = worst(run, thread.thread).len() as u64;
        let not_joined = vec![NotJoined { n, reason: reason.to_owned() }];
        PulseJoin { thread: thread.thread, worst: n, not_joined, ..PulseJoin::default() }
    };
    run.pulse_joins = run.threads.iter().map(of).collect();
}

/// Longest first.
fn worst(run: &Run, thread: u32) -> Vec<&ExceedanceRecord> {
    let mut all: Vec<_> = run.exceedances.iter().filter(|e| e.thread == thread).collect();
    order::by_key(&mut all, |e| (std::cmp::Reverse(e.error_ns), e.activation));
    all
}

fn joined(run: &Run, thread: u32, answers: &Run) -> PulseJoin {
    let worst = worst(run, thread);
    let mut join = PulseJoin {
        thread,
        answers: answers.header.id.clone(),
        worst: worst.len() as u64,
        ..PulseJoin::default()
    };
    let all_alike =
        |why: Unpaired| vec![NotJoined { n: worst.len() as u64, reason: why.to_string() }];
    let pair = match Pair::of(run, thread, answers) {
        Ok(pair) => pair,
        Err(why) => {
            join.not_joined = all_alike(why);
            return join;
        }
    };
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for sent in worst.iter().copied() {
        match pair.split(sent) {
            Ok((split, _)) => join.splits.push(split),
            Err(why) => *reasons.entry(why.to_string()).or_default() += 1,
        }
    }
    join.not_joined = reasons.into_iter().map(|(reason, n)| NotJoined { n, reason }).collect();
    if let Some(why) = pair.contradiction(run, &worst) {
        join.not_joined = all_alike(why);
        join.splits.clear();
    }
    join
}

/// Why none of the pulses of a source can be told among the answers.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Unpaired {
    #[error(
        "the source does not tell single pulses, or was not read to its end: which they are is not known"
    )]
    UnknownPulses,
    #[error(
        "the run of who answered keeps no pulses: it was cut off, no pulse came, its line does not number them, or an earlier tailbound made it"
    )]
    NoAnswers,
    #[error("the one side has datagrams, the other edges of a line")]
    OtherKind,
    #[error("the answers are not those of these pulses: one took longer inside than outside")]
    LongerInside,
    #[error(
        "the answers are not those of these pulses: one that took longer inside than others outside is none of the longest"
    )]
    MissingAmongLongest,
    #[error("the answers are not those of these pulses: their distances in time differ")]
    OtherDistances,
    #[error("the box has {0} channels, and which of them was answered is not known")]
    Channels(usize),
    #[error("{} edges came before the kernel had looked at the one before: from there on the count is not known", grouped(*.0))]
    UnseenEdges(u64),
    #[error("the box gave {} edges and who answered counted {}: which were lost or too many is not known", grouped(*.expected), grouped(*.edges))]
    OtherCount { expected: u64, edges: u64 },
    #[error("the box counted {} edges of the answer as {name}: an edge of the line may have been too many", grouped(*.n))]
    OddEdges { name: String, n: u64 },
}

/// One thread of a source, and who answered it.
struct Pair<'a> {
    sent: &'a SentPulses,
    answered: &'a AnsweredPulses,
    /// The answers by their numbers.
    by_number: BTreeMap<u64, Vec<&'a AnsweredPulse>>,
    resolution_ns: i64,
}

impl<'a> Pair<'a> {
    /// Whether their pulses can be told from one another at all; else why not.
    fn of(run: &'a Run, thread: u32, answers: &'a Run) -> Result<Self, Unpaired> {
        let sent = run.sent_pulses.iter().find(|sent| sent.thread == thread);
        let sent = sent.ok_or(Unpaired::UnknownPulses)?;
        let [answered] = answers.answered_pulses.as_slice() else {
            return Err(Unpaired::NoAnswers);
        };
        match (&sent.datagrams, sent.edges, answered.edges) {
            (Some(_), _, None) => {}
            (None, Some(expected), Some(edges)) => {
                counted_alike(run, thread, expected, answered, edges)?;
            }
            _ => return Err(Unpaired::OtherKind),
        }
        let mut by_number: BTreeMap<u64, Vec<&AnsweredPulse>> = BTreeMap::new();
        for pulse in answered.kept.iter().filter(|p| is_of(p, sent.datagrams.as_ref())) {
            by_number.entry(pulse.number).or_default().push(pulse);
        }
        let own = run.threads.iter().find(|t| t.thread == thread);
        let resolution_ns = own.map_or(1, |t| t.wakeup.resolution_ns.max(1));
        let resolution_ns = i64::try_from(resolution_ns).unwrap_or(i64::MAX);
        Ok(Self { sent, answered, by_number, resolution_ns })
    }

    fn split(&self, sent: &ExceedanceRecord) -> Result<(PulseSplit, &AnsweredPulse), Unjoined> {
        let numbers = self.sent.datagrams.as_ref();
        let number = numbers.map_or(0, |d| d.first).saturating_add(sent.activation);
        let found = self.by_number.get(&number).map_or(&[][..], Vec::as_slice);
        let answer = match found {
            [] => {
                let kept = self.answered.kept.len() as u64;
                return Err(match self.answered.others_at_most_ns {
                    Some(at_most_ns) => Unjoined::NotKept { kept, at_most_ns },
                    None => Unjoined::Absent,
                });
            }
            [one] if !one.repeated => *one,
            _ => return Err(Unjoined::Repeated),
        };
        let t_ns = sent.t_ns.saturating_sub(sent.error_ns);
        if let Some(numbers) = numbers {
            let token = numbers.token.wrapping_add_signed(t_ns);
            if answer.token != Some(token) {
                return Err(Unjoined::OtherToken);
            }
        }
        let start_ns = answer.start_ns.ok_or(Unjoined::Unstamped)?;
        let inside_ns = start_ns.saturating_add(answer.work_ns);
        let split = PulseSplit {
            activation: sent.activation,
            t_ns,
            outside_ns: sent.error_ns,
            start_ns,
            work_ns: answer.work_ns,
            rest_ns: sent.error_ns.saturating_sub(inside_ns),
            error_ns: answer.error_ns,
        };
        // A datagram is its own proof, and may be back before the call that sent it returned.
        if numbers.is_none() && split.rest_ns < -self.tolerance_ns(&split) {
            return Err(Unjoined::LongerInside);
        }
        Ok((split, answer))
    }

    /// Clocks and stamps may be wrong by so much.
    fn tolerance_ns(&self, split: &PulseSplit) -> i64 {
        let clocks_ns = split.outside_ns / DRIFT_PART;
        split.error_ns.saturating_add(self.resolution_ns).saturating_add(clocks_ns)
    }

    /// What shows that edges were counted apart after all: they have nothing else that tells them.
    fn contradiction(&self, run: &Run, worst: &[&ExceedanceRecord]) -> Option<Unpaired> {
        self.sent.edges?;
        let all: Vec<_> = worst.iter().map(|sent| self.split(sent)).collect();
        if all.iter().any(|split| split.as_ref().is_err_and(|why| *why == Unjoined::LongerInside)) {
            return Some(Unpaired::LongerInside);
        }
        if self.is_longer_than_all(run, worst) {
            return Some(Unpaired::MissingAmongLongest);
        }
        let mut fits = all.iter().filter_map(|split| split.as_ref().ok());
        let (first, answer) = fits.next()?;
        let is_off = fits.any(|(split, other)| {
            let sent_ns = split.t_ns.saturating_sub(first.t_ns);
            let arrived_ns = other.t_ns.saturating_sub(answer.t_ns);
            let may_ns = split.rest_ns.max(first.rest_ns).max(0);
            let may_ns = may_ns.saturating_add(self.tolerance_ns(split));
            let may_ns = may_ns.saturating_add(self.tolerance_ns(first));
            let may_ns = may_ns.saturating_add(sent_ns.saturating_abs() / DRIFT_PART);
            arrived_ns.saturating_sub(sent_ns).saturating_abs() > may_ns
        });
        is_off.then_some(Unpaired::OtherDistances)
    }
}

impl Pair<'_> {
    /// A pulse that took longer inside than the least of the longest outside would be among these.
    fn is_longer_than_all(&self, run: &Run, worst: &[&ExceedanceRecord]) -> bool {
        let own = run.threads.iter().find(|t| t.thread == self.sent.thread);
        let counted = |name| own.and_then(|t| t.counters.get(name)).copied().unwrap_or(0);
        // Of those the outside does not know the time.
        if ["unanswered", "unknown", "not_known"].into_iter().any(|name| counted(name) > 0) {
            return false;
        }
        let Some(least) = worst.last() else { return false };
        let all: BTreeSet<u64> = worst.iter().map(|e| e.activation).collect();
        // The last one may have been in flight.
        let last = self.sent.n.saturating_sub(1);
        self.answered.kept.iter().filter(|pulse| pulse.number < last).any(|pulse| {
            let inside_ns = pulse.start_ns.unwrap_or(0).saturating_add(pulse.work_ns);
            let may_ns = pulse.error_ns.saturating_add(self.resolution_ns);
            let may_ns = may_ns.saturating_add(inside_ns / DRIFT_PART);
            inside_ns.saturating_sub(may_ns) > least.error_ns && !all.contains(&pulse.number)
        })
    }
}

fn is_of(pulse: &AnsweredPulse, numbers: Option<&DatagramNumbers>) -> bool {
    pulse.sender.as_deref() == numbers.map(|numbers| numbers.sender.as_str())
}

/// Whether each edge of the line is one pulse, from the first to the last.
fn counted_alike(
    run: &Run,
    thread: u32,
    expected: u64,
    answered: &AnsweredPulses,
    edges: u64,
) -> Result<(), Unpaired> {
    if run.threads.len() > 1 {
        return Err(Unpaired::Channels(run.threads.len()));
    }
    if answered.unseen > 0 {
        return Err(Unpaired::UnseenEdges(answered.unseen));
    }
    if edges != expected {
        return Err(Unpaired::OtherCount { expected, edges });
    }
    let counters = run.threads.iter().filter(|t| t.thread == thread).flat_map(|t| &t.counters);
    let mut odd = counters.filter(|(name, n)| **n > 0 && ODD_EDGES.contains(&name.as_str()));
    match odd.next() {
        Some((name, n)) => Err(Unpaired::OddEdges { name: name.clone(), n: *n }),
        None => Ok(()),
    }
}
