// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts back what a transaction changed, in reverse order, and only what is still as it left it.
//!
//! Compare and swap: a setting that another writer has changed since is reported and
//! left, unless the caller insists. A step that a kill interrupted is judged by what is there now.
//! It can be interrupted and begun again at any point. What inherited a change meanwhile is put back too,
//! where it is known from whom (`heirs`).

use serde::Serialize;
use tailbound_host::root::Missing;

use crate::coalescing;
use crate::heirs::{Heir, Lineage, heirs};
use crate::journal::{self, Entry, Journal, JournalError, Made, Places, Transaction, Undone};
use crate::machine::{System, change, shown};
use crate::refused::Refused;
use crate::step::{State, Step};
use crate::target::Target;

/// How to undo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// Put back also what another writer has changed.
    pub force: bool,
    /// The machine was booted since: what ends with a reboot is gone.
    pub rebooted: bool,
}

/// What came of undoing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UndoReport {
    /// Each step with what came of it, in the order in which they were undone.
    pub outcomes: Vec<(Step, Undone)>,
    /// What began meanwhile and inherited a change.
    pub heirs: Vec<HeirOutcome>,
    /// Why what began meanwhile is not known.
    pub heirs_unknown: Option<String>,
}

/// What came of an heir.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeirOutcome {
    /// The heir.
    pub heir: Heir,
    /// What came of putting it back; `None`: it was left, because nobody knows from whom it inherited.
    pub outcome: Option<Undone>,
}

impl UndoReport {
    /// Settings that are not as they were.
    #[must_use]
    pub fn left(&self) -> usize {
        let heirs = self.heirs.iter().filter(|h| h.outcome.as_ref().is_some_and(Undone::is_left));
        self.outcomes.iter().filter(|(_, o)| o.is_left()).count() + heirs.count()
    }

    /// A sentence for each setting and heir that is not as it was.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let steps = self.outcomes.iter().filter(|(_, o)| o.is_left()).map(|(s, o)| sentence(s, o));
        let is_left = |h: &&HeirOutcome| h.outcome.as_ref().is_none_or(Undone::is_left);
        let heirs = self.heirs.iter().filter(is_left).map(heir_sentence);
        let unknown = self.heirs_unknown.iter().map(|why| {
            format!("threads that began meanwhile may have inherited the change: not known: {why}")
        });
        steps.chain(heirs).chain(unknown).collect()
    }

    /// For the end of an error's text.
    pub(crate) fn sentence(&self) -> String {
        match (self.outcomes.len(), self.left()) {
            (0, _) => "; nothing was changed".to_owned(),
            (n, 0) => format!("; the {n} changes before it were undone"),
            (n, left) => format!("; of the {n} changes before it {left} could not be undone"),
        }
    }
}

/// One outcome for people.
#[must_use]
pub fn sentence(step: &Step, outcome: &Undone) -> String {
    let target = &step.target;
    match outcome {
        Undone::Restored => format!("{target}: restored"),
        Undone::Already => format!("{target}: was as before"),
        Undone::Gone(why) => format!("{target}: nothing to restore: {why}"),
        Undone::Foreign { now, ours } => format!(
            "{target}: left as it is: another program changed it to {} (tailbound had written {})",
            shown(now),
            shown(ours)
        ),
        Undone::Failed(why) => format!("{target}: NOT restored: {why}"),
    }
}

/// The same for what began while the change was applied.
#[must_use]
pub fn heir_sentence(one: &HeirOutcome) -> String {
    let Heir { target, now, before, lineage } = &one.heir;
    let from = match lineage {
        Lineage::From(whom) => format!("inherited {} from {whom}", shown(now)),
        Lineage::Unknown => format!("{}, as the change had set", shown(now)),
    };
    match &one.outcome {
        Some(Undone::Restored | Undone::Already) => {
            format!("{target}: began meanwhile and {from}: set to {}", shown(before))
        }
        Some(Undone::Gone(why)) => format!("{target}: began meanwhile: {why}"),
        Some(Undone::Failed(why)) => {
            format!("{target}: began meanwhile and {from}: NOT set to {}: {why}", shown(before))
        }
        Some(Undone::Foreign { .. }) | None => format!(
            "{target}: began meanwhile with {from}; left, because who began it has ended: {}",
            target.shell(before.as_deref())
        ),
    }
}

/// Undoes `transaction`.
///
/// # Errors
/// The journal cannot be written: then nothing more is changed.
pub fn undo(
    system: &mut dyn System,
    places: &Places,
    transaction: &Transaction,
    mode: Mode,
    time: &str,
) -> Result<UndoReport, JournalError> {
    let mut report = UndoReport::default();
    let Some(plan) = transaction.plan() else { return Ok(report) };
    let mut journal = Journal::resume(transaction)?;
    journal.append(&Entry::Undoing)?;
    for made in transaction.made().into_iter().rev() {
        let Some(step) = plan.steps.get(made.step) else { continue };
        let earlier = earlier_undo(transaction, made.step);
        let outcome = restore(system, step, &made, &mode, earlier);
        journal.append(&Entry::Undone { step: made.step, outcome: outcome.clone() })?;
        report.outcomes.push((step.clone(), outcome));
    }
    put_back_heirs(system, &mut journal, transaction, &mode, &mut report)?;
    // What was left can be tried again, by force or when the obstacle is gone.
    if report.left() == 0 {
        journal.append(&Entry::Ended { time: time.to_owned(), left: 0 })?;
        drop(journal);
        journal::keep(places, transaction)?;
    }
    Ok(report)
}

/// After the steps: a thread that began before its parent was put back is found, a later one has
/// inherited nothing.
fn put_back_heirs(
    system: &mut dyn System,
    journal: &mut Journal,
    transaction: &Transaction,
    mode: &Mode,
    report: &mut UndoReport,
) -> Result<(), JournalError> {
    if mode.rebooted {
        return Ok(());
    }
    let found = match heirs(system, transaction) {
        Ok(found) => found,
        Err(missing) => {
            report.heirs_unknown = Some(missing.reason().to_owned());
            return Ok(());
        }
    };
    for heir in found {
        if heir.lineage == Lineage::Unknown && !mode.force {
            report.heirs.push(HeirOutcome { heir, outcome: None });
            continue;
        }
        journal.append(&Entry::Heir { target: heir.target.clone(), old: heir.now.clone() })?;
        let outcome = match change(system, &heir.target, &heir.before) {
            Ok(_) => Undone::Restored,
            Err(Refused::Gone(why)) => Undone::Gone(why),
            Err(e) => Undone::Failed(e.to_string()),
        };
        report.heirs.push(HeirOutcome { heir, outcome: Some(outcome) });
    }
    Ok(())
}

/// Ends a transaction without touching what it left.
///
/// # Errors
/// The journal cannot be written.
pub fn accept(places: &Places, transaction: &Transaction, time: &str) -> Result<(), JournalError> {
    let left = transaction.made().len();
    Journal::resume(transaction)?.append(&Entry::Ended { time: time.to_owned(), left })?;
    journal::keep(places, transaction)
}

fn restore(
    system: &mut dyn System,
    step: &Step,
    made: &Made,
    mode: &Mode,
    earlier: EarlierUndo,
) -> Undone {
    if mode.rebooted && !step.target.is_persistent() {
        return Undone::Gone("the machine was booted again".to_owned());
    }
    let current = match system.read(&step.target) {
        Ok(current) => current,
        Err(Missing::NotApplicable(why)) => return Undone::Gone(why),
        Err(Missing::Unknown(why)) => return Undone::Failed(why),
    };
    if current == made.old {
        return Undone::Already;
    }
    if made.anchor.is_some() && system.anchor(&step.target) != made.anchor {
        return Undone::Gone("its folder is another one of the same name".to_owned());
    }
    if !mode.force && !is_ours(step, made, &current, earlier) {
        let ours = made.now.clone().unwrap_or_else(|| step.new.clone());
        return Undone::Foreign { now: current, ours };
    }
    match change(system, &step.target, &made.old) {
        Ok(_) => Undone::Restored,
        Err(Refused::Gone(why)) => Undone::Gone(why),
        Err(e) => Undone::Failed(e.to_string()),
    }
}

/// Is it as this transaction left it?
fn is_ours(step: &Step, made: &Made, current: &State, earlier: EarlierUndo) -> bool {
    // The one change of several calls: a kill may have come between two of them.
    if let (Target::Coalescing { .. }, Some(old), Some(new), Some(now)) =
        (&step.target, &made.old, &step.new, current)
        && (earlier == EarlierUndo::CutOff || made.now.is_none())
        && coalescing::is_on_the_way(old, new, now)
    {
        return true;
    }
    match (&made.now, &step.target) {
        (Some(now), _) => now == current,
        // A kill came before it could be read back: the kernel chose the number.
        (None, Target::Group { .. } | Target::Holder { .. } | Target::Resctrl) => {
            current.is_some() == step.new.is_some()
        }
        (None, _) => *current == step.new,
    }
}

/// What is known of an earlier undoing of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EarlierUndo {
    /// It ended without a word about the step: a kill may have come while it was undone.
    CutOff,
    /// There was none, or it says what became of the step.
    Told,
}

fn earlier_undo(transaction: &Transaction, step: usize) -> EarlierUndo {
    let entries = &transaction.entries;
    let last = entries.iter().rposition(|e| matches!(e, Entry::Undoing));
    let after = last.and_then(|i| entries.get(i..)).unwrap_or_default();
    let told = |e: &Entry| matches!(e, Entry::Undone { step: s, .. } if *s == step);
    if after.is_empty() || after.iter().any(told) { EarlierUndo::Told } else { EarlierUndo::CutOff }
}
