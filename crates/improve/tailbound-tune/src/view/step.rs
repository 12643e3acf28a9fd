// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a key does: from a state and what happens to the next state, and what is to be done outside.
//!
//! Pure. Nothing is changed without a plan that was shown and agreed to.

use tailbound_core::cpus::ParseCpusError;
use tailbound_core::{CpuSet, TerminalSize};
use tailbound_report::machine::MachineView;

use super::hands::{Refused, Wanted, cpus_of};
use super::keys::Key;
use super::state::{Mode, Question, Said, State, Tab};

/// Longest line a person types.
const LINE_MAX: usize = 200;

/// What happens to the view.
#[derive(Clone, Debug)]
pub(super) enum Input {
    Key(Key),
    /// The terminal has another size.
    Resized(TerminalSize),
    /// A new look at the machine.
    Looked(MachineView),
    /// There could be none.
    NotLooked(String),
    /// The plan asked for.
    Planned(Wanted, Result<Vec<String>, Refused>),
    /// What was asked for is done, or undone.
    Done(Result<String, Refused>),
}

/// What is to be done outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Nothing,
    /// Look at the machine now.
    Look,
    Plan(Wanted),
    Apply(Wanted),
    Undo,
    Quit,
}

/// The next state.
pub(super) fn step(mut state: State, input: Input) -> (State, Effect) {
    let effect = match input {
        Input::Key(Key::Interrupt) => Effect::Quit,
        Input::Key(key) => on_key(&mut state, key),
        Input::Resized(size) => {
            state.size = size;
            state.settle();
            Effect::Nothing
        }
        Input::Looked(shown) => {
            state.looked(shown);
            Effect::Nothing
        }
        Input::NotLooked(why) => {
            state.said = Some(Said::Bad(why));
            Effect::Nothing
        }
        Input::Planned(wanted, Ok(lines)) => {
            state.mode = Mode::Plan { wanted, lines, top: 0 };
            Effect::Nothing
        }
        Input::Planned(wanted, Err(why)) => {
            state.said = Some(Said::Bad(format!("cannot {wanted}: {why}")));
            Effect::Nothing
        }
        Input::Done(result) => {
            state.said = Some(match result {
                Ok(what) => Said::Good(what),
                Err(why) => Said::Bad(why.to_string()),
            });
            Effect::Look
        }
    };
    (state, effect)
}

fn on_key(state: &mut State, key: Key) -> Effect {
    match std::mem::take(&mut state.mode) {
        Mode::Browse => {
            state.said = None;
            browse(state, key)
        }
        Mode::Ask { question, line } => typed(state, question, line, key),
        Mode::Plan { wanted, lines, top } => match key {
            Key::Enter | Key::Char('y') if !lines.is_empty() => Effect::Apply(wanted),
            Key::Enter | Key::Esc | Key::Char('n' | 'q') => Effect::Nothing,
            _ => {
                let last = state.folded(&lines).len().saturating_sub(state.page());
                let top = match key {
                    Key::Down | Key::Char('j') => top.saturating_add(1),
                    Key::Up | Key::Char('k') => top.saturating_sub(1),
                    Key::PageDown => top.saturating_add(state.page()),
                    Key::PageUp => top.saturating_sub(state.page()),
                    Key::Home => 0,
                    Key::End => last,
                    _ => top,
                };
                state.mode = Mode::Plan { wanted, lines, top: top.min(last) };
                Effect::Nothing
            }
        },
        Mode::Undo => match key {
            Key::Enter | Key::Char('y') => Effect::Undo,
            _ => Effect::Nothing,
        },
        Mode::Help => Effect::Nothing,
    }
}

fn browse(state: &mut State, key: Key) -> Effect {
    let page = isize::try_from(state.rows(state.tab).max(1)).unwrap_or(isize::MAX);
    match key {
        Key::Up | Key::Char('k') => state.step_by(-1),
        Key::Down | Key::Char('j') => state.step_by(1),
        Key::PageUp => state.step_by(-page),
        Key::PageDown => state.step_by(page),
        Key::Home | Key::Char('g') => state.go(0),
        Key::End | Key::Char('G') => state.go(usize::MAX),
        Key::Tab => state.tab = other(state.tab),
        Key::Char(' ') => state.mark(),
        Key::Char('a') => state.mark_all(),
        Key::Char('n') | Key::Esc => state.mark_none(),
        Key::Char('/') => ask(state, Question::Filter, state.choice.text.clone()),
        Key::Char('c') => ask(state, Question::Cpus, state.selected.to_string()),
        Key::Char('t') => state.next_kind(),
        Key::Char('o') => only_selected(state),
        Key::Char('s') => sort_by_next(state),
        Key::Char('S') => turn_order(state),
        Key::Char('?') => state.mode = Mode::Help,
        Key::Char('u') => state.mode = Mode::Undo,
        Key::Char('r') => return Effect::Look,
        Key::Char('i') => return isolate(state),
        Key::Char('m') => move_there(state),
        Key::Char('p') => set_policy(state),
        Key::Char('q') => return Effect::Quit,
        _ => {}
    }
    Effect::Nothing
}

fn other(tab: Tab) -> Tab {
    match tab {
        Tab::Threads => Tab::Interrupts,
        Tab::Interrupts => Tab::Threads,
    }
}

fn ask(state: &mut State, question: Question, line: String) {
    state.mode = Mode::Ask { question, line };
}

fn bad(state: &mut State, why: impl Into<String>) {
    state.said = Some(Said::Bad(why.into()));
}

/// Sorts by the next column.
fn sort_by_next(state: &mut State) {
    match state.tab {
        Tab::Threads => state.sort.threads.key = state.sort.threads.key.next(),
        Tab::Interrupts => state.sort.interrupts.key = state.sort.interrupts.key.next(),
    }
    show_first(state);
}

/// Sorts in the other direction.
fn turn_order(state: &mut State) {
    match state.tab {
        Tab::Threads => state.sort.threads.descending ^= true,
        Tab::Interrupts => state.sort.interrupts.descending ^= true,
    }
    show_first(state);
}

fn show_first(state: &mut State) {
    state.choose();
    state.go(0);
}

/// Rows of the selected CPUs only, or of all again.
fn only_selected(state: &mut State) {
    if !state.choice.cpus.is_empty() {
        state.choice.cpus = CpuSet::default();
    } else if state.selected.is_empty() {
        return bad(state, "no CPU is selected: press c");
    } else {
        state.choice.cpus = state.selected.clone();
    }
    state.choose();
}

fn isolate(state: &mut State) -> Effect {
    if state.selected.is_empty() {
        bad(state, "no CPU is selected: press c, then i");
        return Effect::Nothing;
    }
    Effect::Plan(Wanted::Isolate { cpus: state.selected.clone() })
}

fn move_there(state: &mut State) {
    let question = match state.tab {
        Tab::Threads => Question::MoveThreads(state.meant_threads()),
        Tab::Interrupts => Question::MoveInterrupts(state.meant_interrupts()),
    };
    match &question {
        Question::MoveThreads(threads) if threads.is_empty() => bad(state, "there is no thread"),
        Question::MoveInterrupts(n) if n.is_empty() => bad(state, "there is no interrupt"),
        _ => ask(state, question, state.selected.to_string()),
    }
}

/// Of interrupts it is the thread that has a policy.
fn set_policy(state: &mut State) {
    let threads = match state.tab {
        Tab::Threads => state.meant_threads(),
        Tab::Interrupts => {
            let meant = state.meant_interrupts();
            let rows = state.machine().interrupts.iter().filter(|i| meant.contains(&i.number));
            rows.flat_map(|i| i.handlers.iter().map(|h| h.id)).collect()
        }
    };
    match (threads.is_empty(), state.tab) {
        (true, Tab::Threads) => bad(state, "there is no thread"),
        (true, Tab::Interrupts) => {
            bad(state, "no thread handles this interrupt: it has no priority to set");
        }
        (false, _) => ask(state, Question::Policy(threads), String::new()),
    }
}

/// A key while a line is typed.
fn typed(state: &mut State, question: Question, mut line: String, key: Key) -> Effect {
    match key {
        Key::Esc if question == Question::Filter => {
            state.choice.text.clear();
            state.choose();
            return Effect::Nothing;
        }
        Key::Esc => {
            state.said = None;
            return Effect::Nothing;
        }
        Key::Enter => return answered(state, question, line),
        Key::Backspace => drop(line.pop()),
        Key::Clear => line.clear(),
        Key::Char(c) if line.chars().count() < LINE_MAX => line.push(c),
        _ => {}
    }
    state.said = None;
    if question == Question::Filter {
        state.choice.text.clone_from(&line);
        state.choose();
    }
    ask(state, question, line);
    Effect::Nothing
}

/// A line was typed to its end; one that is not understood stays to be mended.
fn answered(state: &mut State, question: Question, line: String) -> Effect {
    let again = |state: &mut State, question, line, why: String| {
        bad(state, why);
        ask(state, question, line);
        Effect::Nothing
    };
    if question == Question::Filter {
        return Effect::Nothing;
    }
    if let Question::Policy(threads) = question {
        return match line.trim().parse() {
            Ok(policy) => Effect::Plan(Wanted::SetPolicy { threads, policy }),
            Err(why) => again(state, Question::Policy(threads), line, why.to_string()),
        };
    }
    let cpus = match cpus(state, &line) {
        Ok(cpus) => cpus,
        Err(why) => return again(state, question, line, why.to_string()),
    };
    if cpus.is_empty() && question != Question::Cpus {
        return again(state, question, line, "name CPUs, for example 0 or 2-3".to_owned());
    }
    match question {
        Question::MoveThreads(threads) => Effect::Plan(Wanted::MoveThreads { threads, cpus }),
        Question::MoveInterrupts(numbers) => Effect::Plan(Wanted::MoveInterrupts { numbers, cpus }),
        _ => {
            state.selected = cpus;
            Effect::Nothing
        }
    }
}

/// Why a line is no choice of CPUs.
#[derive(Debug, thiserror::Error)]
enum CpuChoiceError {
    #[error(transparent)]
    List(#[from] ParseCpusError),
    #[error(
        "{} {} not online: there are {online}",
        cpus_of(absent),
        if absent.len() == 1 { "is" } else { "are" }
    )]
    Offline { absent: CpuSet, online: CpuSet },
}

fn cpus(state: &State, line: &str) -> Result<CpuSet, CpuChoiceError> {
    let online = &state.machine().online;
    let cpus: CpuSet = match line.trim() {
        "all" => online.clone(),
        list => list.parse()?,
    };
    let absent = cpus.minus(online);
    if absent.is_empty() {
        return Ok(cpus);
    }
    Err(CpuChoiceError::Offline { absent, online: online.clone() })
}
