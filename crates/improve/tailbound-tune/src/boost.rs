// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU time lent to one thread for a while: SCHED_DEADLINE, which goes before every real-time priority and ends with its
//! budget in each period.
//!
//! Units: ns. It is a change like any other: journalled first, undone by this process or its guard. Where the
//! kernel refuses SCHED_DEADLINE (a thread that may not run everywhere, no bandwidth left), the lowest real-time priority
//! is lent, if that is above whoever has the CPU. Threads that it starts meanwhile inherit nothing.
//! Not here: who needs it (`tailbound-monitor`). Source: sched(7), sched_setattr(2).

use tailbound_core::order;
use tailbound_core::policy::ParsePolicyError;
use tailbound_core::{FailureKind, Policy};
use tailbound_host::root::Missing;
use tailbound_host::{Root, threads};
use tailbound_sys::new_file;

use crate::facts::machine_id;
use crate::here::{ForNow, HereError, needs_root};
use crate::journal::{self, JournalError, Places};
use crate::machine::with_nice;
use crate::step::{PLAN_FORMAT, Plan, Step};
use crate::target::{RESETS, Target, ThreadId};

/// Of plans and their history.
const NAME: &str = "boost";
/// Loans that stay in the history: a machine whose threads starve all day must not fill the disk.
const KEPT: usize = 20;
/// Where SCHED_DEADLINE is refused.
const LOWEST: Policy = Policy::Fifo(1);

/// Why nothing is lent, or not given back.
#[derive(Debug, thiserror::Error)]
pub enum BoostError {
    /// Not RUNTIME/PERIOD.
    #[error(
        "--boost-starving: `{0}` is no RUNTIME/PERIOD, of at least 1024 ns and at most the period: write for example 20us/1s"
    )]
    Words(String),
    /// Its place among real-time threads is its owner's choice.
    #[error("it is {0} itself: priorities of real-time threads stay as they were chosen")]
    RealTime(Policy),
    /// It has ended.
    #[error(transparent)]
    Thread(#[from] Missing),
    /// This machine is not changed.
    #[error(transparent)]
    Here(#[from] HereError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The kernel.
    #[error("{why}; {LOWEST} would not be above the real-time thread that has the CPU")]
    Refused {
        /// Of SCHED_DEADLINE.
        why: String,
    },
    /// Not as before.
    #[error("{0}")]
    Left(String),
}

impl BoostError {
    /// Whose fault it is.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        if matches!(self, Self::Words(_)) { FailureKind::Usage } else { FailureKind::Cannot }
    }
}

/// Who has the CPU that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Above {
    /// An ordinary thread: any real-time priority goes before it.
    Ordinary,
    /// A real-time thread, or nobody knows.
    RealTime,
}

/// What is lent, to one thread at a time.
#[derive(Debug)]
pub struct Loan {
    policy: Policy,
    lent: Option<ForNow>,
}

impl Loan {
    /// `RUNTIME/PERIOD`, for root.
    ///
    /// # Errors
    /// [`BoostError::Words`], [`BoostError::Here`].
    pub fn new(text: &str) -> Result<Self, BoostError> {
        let policy = format!("deadline:{text}").parse().map_err(|_: ParsePolicyError| {
            BoostError::Words(tailbound_core::printable::excerpt(text, 40))
        })?;
        needs_root()?;
        Ok(Self { policy, lent: None })
    }

    /// Lends it to `whom`, who waits for a CPU that `above` has; the policy that it has now.
    ///
    /// # Errors
    /// [`BoostError`]: it has what it had.
    pub fn begin(&mut self, whom: &ThreadId, above: Above) -> Result<String, BoostError> {
        let root = Root::real();
        let thread = threads::thread(&root, whom.tid)?;
        if matches!(thread.policy, Policy::Fifo(_) | Policy::Rr(_) | Policy::Deadline { .. }) {
            return Err(BoostError::RealTime(thread.policy));
        }
        let old = with_nice(&thread);
        let mut refused = String::new();
        for policy in choices(&self.policy, above) {
            let plan = Plan { machine: machine_id(&root), ..plan(whom, &old, policy) };
            let lent = ForNow::apply(&plan)?;
            let applied = lent.applied();
            if applied.is_some_and(|a| a.made > 0) {
                self.lent = Some(lent);
                return Ok(policy.to_string());
            }
            let why = applied.and_then(|a| a.skipped.first()).map(|(_, why)| why.clone());
            refused = why.unwrap_or_else(|| "it is so already".to_owned());
        }
        Err(BoostError::Refused { why: refused })
    }

    /// Gives it back, if something is lent.
    ///
    /// # Errors
    /// [`BoostError`]: what another program changed meanwhile is left; the guard tries what failed again.
    pub fn end(&mut self) -> Result<(), BoostError> {
        let Some(lent) = self.lent.take() else { return Ok(()) };
        let report = lent.end()?;
        forget_old(&Places::of_machine())?;
        match report.left() {
            0 => Ok(()),
            _ => Err(BoostError::Left(report.remarks().join("; "))),
        }
    }
}

/// What is tried, one after the other.
fn choices(policy: &Policy, above: Above) -> Vec<&Policy> {
    match above {
        Above::Ordinary => vec![policy, &LOWEST],
        Above::RealTime => vec![policy],
    }
}

/// One step, which the kernel may refuse.
fn plan(thread: &ThreadId, old: &str, policy: &Policy) -> Plan {
    let step = Step {
        target: Target::Policy(thread.clone()),
        old: Some(old.to_owned()),
        new: Some(format!("{policy}{RESETS}")),
        setting: NAME.to_owned(),
        may_fail: true,
    };
    Plan { format: PLAN_FORMAT, name: NAME.to_owned(), steps: vec![step], ..Plan::default() }
}

/// Removes loans that were given back from the history, but for the latest.
fn forget_old(places: &Places) -> Result<(), JournalError> {
    let Ok(lock) = journal::lock(places) else { return Ok(()) };
    let mut ended = journal::all(places)?;
    ended.retain(|t| t.has_ended() && t.plan().is_some_and(|p| p.name == NAME));
    order::by_key(&mut ended, |t| std::cmp::Reverse(t.number));
    for transaction in ended.iter().skip(KEPT) {
        // What cannot be removed now is removed after the next one.
        drop(new_file::remove(&transaction.path));
    }
    lock.release();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::{apply, find};
    use crate::machine::{Moment, System};
    use crate::refused::Refused;
    use crate::step::State;
    use crate::undo::{Mode, undo};
    use tailbound_host::root::Found;

    /// One thread, whose kernel refuses SCHED_DEADLINE.
    struct Pinned(String);

    impl System for Pinned {
        fn read(&self, _: &Target) -> Found<State> {
            Ok(Some(self.0.clone()))
        }
        fn write(&mut self, _: &Target, state: &State) -> Result<(), Refused> {
            let state = state.clone().unwrap_or_default();
            if state.starts_with("deadline") {
                return Err(Refused::Denied("sched_setattr: Operation not permitted".to_owned()));
            }
            self.0 = state;
            Ok(())
        }
        fn anchor(&self, _: &Target) -> Option<u64> {
            None
        }
        fn moment(&self) -> Found<Moment> {
            Ok(Moment::default())
        }
        fn threads(&self) -> Found<Vec<threads::Thread>> {
            Ok(Vec::new())
        }
    }

    fn deadline() -> Policy {
        "deadline:20us/1s".parse().expect("valid")
    }

    #[test]
    fn the_lowest_priority_is_lent_where_deadline_is_refused_and_given_back_with_the_nice_value() {
        let room = tempfile::tempdir().expect("a folder");
        let places = Places::below(room.path());
        let id = ThreadId { tid: 7, start_ticks: 1, name: "kworker/1:1".to_owned() };
        let mut machine = Pinned("other nice 5".to_owned());
        let policy = deadline();
        let mut lent = Vec::new();
        for policy in choices(&policy, Above::Ordinary) {
            let plan = plan(&id, "other nice 5", policy);
            let applied =
                apply(&mut machine, &places, &plan, "t", &mut |_, _| ()).expect("may fail");
            lent.push((applied.made, machine.0.clone()));
        }
        let of = |n, text: &str| (n, text.to_owned());
        assert_eq!(lent, [of(0, "other nice 5"), of(1, "fifo:1 reset-on-fork")]);
        let transaction = find(&places, 2).expect("readable").expect("there");
        let report = undo(&mut machine, &places, &transaction, Mode::default(), "t");
        assert_eq!((report.expect("writable").left(), machine.0.as_str()), (0, "other nice 5"));
        // Behind a real-time thread it would change nothing.
        assert_eq!(choices(&policy, Above::RealTime), [&policy]);
    }

    #[test]
    fn words_are_a_runtime_and_a_period_and_the_history_does_not_grow() {
        for wrong in ["", "20us", "1s/20us", "20/1000", "x/1s", "10ns/1s"] {
            let error = Loan::new(wrong).expect_err(wrong).to_string();
            assert!(error.ends_with("write for example 20us/1s"), "{error}");
        }
        let room = tempfile::tempdir().expect("a folder");
        let places = Places::below(room.path());
        let id = ThreadId { tid: 7, start_ticks: 1, name: "x".to_owned() };
        let mut machine = Pinned("other".to_owned());
        let mut give = |name: &str| {
            let plan = Plan { name: name.to_owned(), ..plan(&id, "other", &LOWEST) };
            let number =
                apply(&mut machine, &places, &plan, "t", &mut |_, _| ()).expect("valid").number;
            let transaction = find(&places, number).expect("readable").expect("there");
            undo(&mut machine, &places, &transaction, Mode::default(), "t").expect("writable");
        };
        give("mine");
        (0..KEPT + 3).for_each(|_| give(NAME));
        forget_old(&places).expect("readable");
        let left = journal::all(&places).expect("readable");
        assert_eq!(left.len(), KEPT + 1);
        assert!(left.iter().any(|t| t.number == 1), "changes of persons stay");
    }
}
