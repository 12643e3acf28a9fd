// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a state to the lines of a screen.
//!
//! Pure. Units: columns and rows. Never more lines than the screen has, none wider than it.
//! A cursor is `>` and a mark is `*`, so that both are seen without colours.

use tailbound_core::units::format_span;
use tailbound_core::{CpuSet, TerminalSize};
use tailbound_report::machine::{Fit, Grid, Kind, interrupt_grid, thread_grid};
use tailbound_report::table::wrap;
use tailbound_report::text::ink::{Color, Ink, InkLine};

use super::hands::counted;
use super::state::{Mode, Pane, Question, Said, State, Tab};

/// Columns before each row: cursor, mark, space.
const BEFORE: usize = 3;
/// Lines of a message.
const MESSAGE_MAX: usize = 4;
const KEYS: &str = "c CPUs  i isolate  m move  p policy  u undo  / filter  s sort  ? help  q quit";
const HELP: &str = "\
Tab        the other table
\u{2191} \u{2193} PgUp PgDn Home End, j k g G   move
Space      mark the row; a mark all that is seen; n no marks
/          only rows with a text (Esc: all rows)
t          threads: all, real-time, of the kernel, of programs
o          only what concerns the selected CPUs, or all again
s  S       sort by the next column; turn the order
c          select CPUs
i          isolate the selected CPUs
m          move what is marked (else the row of the cursor) to CPUs
p          set policy and priority: fifo:50, rr:10, other, batch, idle
u          undo the last change
r          look again now
q          quit; so does Ctrl-C

Every change is shown as a plan first, and done when you agree to it.";

/// The lines of the screen.
pub(super) fn frame(state: &State, color: Color) -> Vec<String> {
    let TerminalSize { columns: width, rows: height } = state.size;
    let mut lines = vec![cpus(state)];
    match &state.mode {
        Mode::Plan { wanted, lines: steps, top } => {
            lines.extend(plan(state, &wanted.to_string(), steps, *top))
        }
        Mode::Help => lines.extend(HELP.lines().map(|l| InkLine::of(l, Ink::Plain))),
        _ => lines.extend(tables(state)),
    }
    let said = message(state);
    lines.resize(height.saturating_sub(1 + said.len()), InkLine::default());
    lines.extend(said);
    lines.push(keys(state));
    lines.truncate(height);
    lines.iter().map(|l| l.render(width, color)).collect()
}

fn cpus(state: &State) -> InkLine {
    let look = state.machine();
    let word = |set: &CpuSet| if set.is_empty() { "none".to_owned() } else { set.to_string() };
    let line = InkLine::of("CPUs ", Ink::Dim)
        .and(&word(&look.online), Ink::Bold)
        .and("  isolated ", Ink::Dim)
        .and(&word(&look.isolated), Ink::Accent)
        .and("  selected ", Ink::Dim)
        .and(&word(&state.selected), Ink::Warn);
    match state.seen.over_ns {
        Some(ns) => line.and(&format!("  rates over {}", format_span(ns)), Ink::Dim),
        None => line.and("  totals since boot", Ink::Dim),
    }
}

fn tables(state: &State) -> Vec<InkLine> {
    if state.both() {
        let mut lines = table(state, Tab::Threads);
        lines.resize(state.rows(Tab::Threads) + 2, InkLine::default());
        lines.extend(table(state, Tab::Interrupts));
        return lines;
    }
    table(state, state.tab)
}

fn table(state: &State, tab: Tab) -> Vec<InkLine> {
    let amounts = state.seen.amounts();
    match tab {
        Tab::Threads => {
            let rows = &state.seen.look.threads;
            let marked =
                |at: usize| rows.get(at).is_some_and(|t| state.threads.marked.contains(&t.id));
            body(state, tab, &state.threads, &thread_grid(rows, amounts, Fit::Terminal), marked)
        }
        Tab::Interrupts => {
            let rows = &state.seen.look.interrupts;
            let marked = |at: usize| {
                rows.get(at).is_some_and(|i| state.interrupts.marked.contains(&i.number))
            };
            body(
                state,
                tab,
                &state.interrupts,
                &interrupt_grid(rows, amounts, Fit::Terminal),
                marked,
            )
        }
    }
}

fn body<Id>(
    state: &State,
    tab: Tab,
    pane: &Pane<Id>,
    grid: &Grid,
    marked: impl Fn(usize) -> bool,
) -> Vec<InkLine> {
    let width = state.size.columns.saturating_sub(BEFORE);
    let active = state.tab == tab;
    let title = title(state, tab, pane.marked.len());
    let head = format!("{}{}", " ".repeat(BEFORE), grid.head(width));
    let mut lines = vec![
        InkLine::of(&title, if active { Ink::Bold } else { Ink::Dim }),
        InkLine::of(&head, Ink::Dim),
    ];
    for at in pane.top..pane.top.saturating_add(state.rows(tab)) {
        let Some(row) = grid.row(at, width) else { break };
        let here = active && at == pane.at;
        let (cursor, mark) = (if here { '>' } else { ' ' }, if marked(at) { '*' } else { ' ' });
        let ink = match (here, mark) {
            (true, _) => Ink::Chosen,
            (_, '*') => Ink::Warn,
            _ => Ink::Plain,
        };
        lines.push(InkLine::of(&format!("{cursor}{mark} {row}"), ink));
    }
    lines
}

/// What the table is, how much of it is seen and in which order.
fn title(state: &State, tab: Tab, marked: usize) -> String {
    let (all, seen) = (&state.machine(), &state.seen.look);
    let (name, seen, all, key, descending) = match tab {
        Tab::Threads => (
            "Threads",
            seen.threads.len(),
            all.threads.len(),
            state.sort.threads.key.word(),
            state.sort.threads.descending,
        ),
        Tab::Interrupts => (
            "Interrupts",
            seen.interrupts.len(),
            all.interrupts.len(),
            state.sort.interrupts.key.word(),
            state.sort.interrupts.descending,
        ),
    };
    let mut out =
        if seen == all { format!("{name} {all}") } else { format!("{name} {seen} of {all}") };
    if marked > 0 {
        out.push_str(&format!(", {marked} marked"));
    }
    out.push_str(&format!(", by {key}{}", if descending { " (greatest first)" } else { "" }));
    out.push_str(&chosen(state, tab));
    if !state.both() {
        let other = match tab {
            Tab::Threads => counted(state.seen.look.interrupts.len(), "interrupt"),
            Tab::Interrupts => counted(state.seen.look.threads.len(), "thread"),
        };
        out.push_str(&format!("   Tab: {other}"));
    }
    out
}

/// Why not all rows are seen.
fn chosen(state: &State, tab: Tab) -> String {
    let choice = &state.choice;
    let mut out = String::new();
    if !choice.text.is_empty() {
        out.push_str(&format!(", with \"{}\"", choice.text));
    }
    if !choice.cpus.is_empty() {
        out.push_str(&format!(", on {}", super::hands::cpus_of(&choice.cpus)));
    }
    if tab == Tab::Threads {
        out.push_str(if choice.realtime { ", real-time" } else { "" });
        out.push_str(match choice.kind {
            Kind::Any => "",
            Kind::Kernel => ", of the kernel",
            Kind::User => ", of programs",
        });
    }
    out
}

fn plan(state: &State, wanted: &str, steps: &[String], top: usize) -> Vec<InkLine> {
    if steps.is_empty() {
        return vec![InkLine::of(&format!("Plan: {wanted}. Nothing is to be changed."), Ink::Bold)];
    }
    let lines = state.folded(steps);
    let mut title = format!("Plan: {wanted}, in {}", counted(steps.len(), "step"));
    if lines.len() > state.page() {
        let last = top.saturating_add(state.page()).min(lines.len());
        title.push_str(&format!("; lines {} to {last} of {}", top + 1, lines.len()));
    }
    let shown = lines.iter().skip(top).take(state.page());
    let mut out = vec![InkLine::of(&title, Ink::Bold)];
    out.extend(shown.map(|l| InkLine::of(l, Ink::Plain)));
    out
}

/// What was said last, folded: a reason is for reading. One line, empty, where nothing was.
fn message(state: &State) -> Vec<InkLine> {
    let (text, ink) = match (&state.said, state.machine().missing.first()) {
        (Some(Said::Good(text)), _) => (text.clone(), Ink::Good),
        (Some(Said::Bad(text)), _) => (text.clone(), Ink::Bad),
        (None, Some(why)) => (format!("! {why}"), Ink::Warn),
        (None, None) => return vec![InkLine::default()],
    };
    let folded = wrap(&text, state.size.columns, "  ");
    folded.iter().take(MESSAGE_MAX).map(|l| InkLine::of(l, ink)).collect()
}

fn keys(state: &State) -> InkLine {
    match &state.mode {
        Mode::Browse => InkLine::of(KEYS, Ink::Dim),
        Mode::Help => InkLine::of("any key: back", Ink::Dim),
        Mode::Undo => InkLine::of("Undo the last change? y yes  n no", Ink::Warn),
        Mode::Plan { lines, .. } if lines.is_empty() => InkLine::of("Enter back", Ink::Dim),
        Mode::Plan { .. } => {
            InkLine::of("Do it? Enter or y yes  Esc or n no  \u{2191} \u{2193} read", Ink::Warn)
        }
        Mode::Ask { question, line } => {
            let room = state.size.columns.saturating_sub(1);
            let before = asked(question);
            // The end of a long line is what is typed at.
            let skip = (before.chars().count() + line.chars().count()).saturating_sub(room);
            let tail: String = line.chars().skip(skip).collect();
            InkLine::of(&before, Ink::Warn).and(&tail, Ink::Bold).and("_", Ink::Warn)
        }
    }
}

fn asked(question: &Question) -> String {
    match question {
        Question::Filter => "Only rows with: ".to_owned(),
        Question::Cpus => "Select CPUs (0, 2-3, all): ".to_owned(),
        Question::MoveThreads(threads) => {
            format!("Move {} to CPUs: ", counted(threads.len(), "thread"))
        }
        Question::MoveInterrupts(n) => format!("Move {} to CPUs: ", counted(n.len(), "interrupt")),
        Question::Policy(threads) => {
            format!("Policy of {} (fifo:50, rr:10, other): ", counted(threads.len(), "thread"))
        }
    }
}
