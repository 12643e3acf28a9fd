// SPDX-License-Identifier: MIT OR Apache-2.0
//! The view without a terminal: keys in, states and screens out.

use std::collections::BTreeMap;

use tailbound_core::{CpuSet, Policy, TerminalSize};
use tailbound_report::Color;
use tailbound_report::machine::{
    Choice, InterruptRow, Look, Sort, Switches, ThreadId, ThreadRow, UnknownFact,
};
use tailbound_report::table::columns;

use super::draw::frame;
use super::hands::{Refused, Wanted, cpus_of};
use super::keys::Key;
use super::state::{Mode, Said, State, Tab};
use super::step::{Effect, Input, step};

/// A plan in words, of nobody who changes anything.
fn planned(wanted: &Wanted) -> Result<Vec<String>, Refused> {
    Ok(match wanted {
        Wanted::Isolate { cpus } => vec![format!("keep all else off {}", cpus_of(cpus))],
        Wanted::MoveThreads { threads, cpus } => {
            threads.iter().map(|t| format!("thread {}: to {}", t.tid, cpus_of(cpus))).collect()
        }
        Wanted::MoveInterrupts { numbers, cpus } => {
            numbers.iter().map(|n| format!("interrupt {n}: to {}", cpus_of(cpus))).collect()
        }
        Wanted::SetPolicy { threads, policy } => {
            threads.iter().map(|t| format!("thread {}: to {policy}", t.tid)).collect()
        }
    })
}

fn set(text: &str) -> CpuSet {
    text.parse().unwrap_or_else(|e| panic!("{e}"))
}

fn thread(tid: u32, name: &str, policy: Policy) -> ThreadRow {
    ThreadRow {
        id: ThreadId { tid, start_ticks: 7 },
        pid: tid,
        name: name.to_owned(),
        process: None,
        kernel: name.contains('/'),
        fixed: name.starts_with("migration"),
        policy,
        nice: 0,
        last_cpu: tid % 4,
        affinity: Ok(set("0-3")),
        switches: Ok(Switches { voluntary: u64::from(tid) * 3, involuntary: u64::from(tid) }),
        rate: None,
    }
}

fn interrupt(number: u32, user: &str, managed: bool) -> InterruptRow {
    InterruptRow {
        number,
        counts: BTreeMap::from([(0, 100), (1, u64::from(number))]),
        rates: None,
        chip: "PCI-MSIX-0000:00:01.0 1-edge".to_owned(),
        users: vec![user.to_owned()],
        affinity: Ok(set("0-3")),
        effective: Ok(set("1")),
        managed: Ok(managed),
        handlers: Vec::new(),
    }
}

fn machine(at_ns: i64) -> Look {
    Look {
        at_ns,
        online: set("0-3"),
        isolated: set("3"),
        threads: vec![
            thread(1, "systemd", Policy::Other),
            thread(21, "migration/1", Policy::Fifo(99)),
            thread(50, "irq/24-eth0", Policy::Fifo(50)),
            ThreadRow { process: Some("robot".to_owned()), ..thread(700, "servo", Policy::Rr(80)) },
            ThreadRow { nice: 5, ..thread(701, "\u{1b}[2Jlogger", Policy::Other) },
            ThreadRow {
                affinity: Err(UnknownFact { reason: "gone".to_owned() }),
                ..thread(4_000_000, "last", Policy::Idle)
            },
        ],
        interrupts: vec![interrupt(24, "eth0", false), interrupt(36, "nvme0q1", true)],
        ..Look::default()
    }
    .with_handlers()
}

fn sized(columns: usize, rows: usize) -> TerminalSize {
    TerminalSize { columns, rows }
}

fn view() -> State {
    let size = TerminalSize::default();
    let state = State::new(Choice::default(), Sort::default(), Tab::Threads, size);
    let mut second = machine(2_000_000_000);
    for t in &mut second.threads {
        t.switches = Ok(Switches { voluntary: u64::from(t.id.tid) * 4, involuntary: 4_000_001 });
    }
    step(state, Input::Looked(second.since(&machine(1_000_000_000)))).0
}

/// Types keys: letters, and words in angle brackets. The last effect.
fn type_in(state: State, text: &str) -> (State, Effect) {
    let mut rest = text;
    let mut now = (state, Effect::Nothing);
    while let Some(c) = rest.chars().next() {
        let named = [
            ("<enter>", Key::Enter),
            ("<esc>", Key::Esc),
            ("<tab>", Key::Tab),
            ("<back>", Key::Backspace),
            ("<down>", Key::Down),
            ("<pgdn>", Key::PageDown),
            ("<end>", Key::End),
        ];
        let (word, key) = named
            .into_iter()
            .find(|(word, _)| rest.starts_with(word))
            .map_or((c.len_utf8(), Key::Char(c)), |(word, key)| (word.len(), key));
        rest = rest.get(word..).unwrap_or_default();
        now = step(now.0, Input::Key(key));
    }
    now
}

fn bad(state: &State) -> &str {
    match &state.said {
        Some(Said::Bad(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn ids(tids: &[u32]) -> Vec<ThreadId> {
    tids.iter().map(|tid| ThreadId { tid: *tid, start_ticks: 7 }).collect()
}

#[test]
fn marked_threads_are_moved_to_the_cpus_typed() {
    let (state, effect) = type_in(view(), "  m2-3<enter>");
    let wanted = Wanted::MoveThreads { threads: ids(&[1, 21]), cpus: set("2-3") };
    assert_eq!(effect, Effect::Plan(wanted.clone()));
    // Nothing is done before the plan was agreed to.
    let lines = planned(&wanted);
    let (state, effect) = step(state, Input::Planned(wanted.clone(), lines));
    assert_eq!(effect, Effect::Nothing);
    assert!(frame(&state, Color::Off).join("\n").contains("thread 21: to CPUs 2-3"));
    let (left, effect) = type_in(state.clone(), "<esc>");
    assert_eq!((&left.mode, effect), (&Mode::Browse, Effect::Nothing));
    let (state, effect) = type_in(state, "<enter>");
    assert_eq!((&state.mode, effect), (&Mode::Browse, Effect::Apply(wanted)));
    let (state, effect) = step(state, Input::Done(Err(Refused("not permitted".to_owned()))));
    assert_eq!((bad(&state), effect), ("not permitted", Effect::Look), "what is true is looked at");
}

#[test]
fn without_marks_the_row_of_the_cursor_is_meant() {
    let (_, effect) = type_in(view(), "jjjpfifo:42<enter>");
    let policy = Policy::Fifo(42);
    assert_eq!(effect, Effect::Plan(Wanted::SetPolicy { threads: ids(&[700]), policy }));
    let (_, effect) = type_in(view(), "<tab>jm1<enter>");
    assert_eq!(effect, Effect::Plan(Wanted::MoveInterrupts { numbers: vec![36], cpus: set("1") }));
    // The policy of an interrupt is that of its thread.
    let (_, effect) = type_in(view(), "<tab>pother<enter>");
    let policy = Policy::Other;
    assert_eq!(effect, Effect::Plan(Wanted::SetPolicy { threads: ids(&[50]), policy }));
    let (state, effect) = type_in(view(), "<tab>jp");
    assert_eq!(effect, Effect::Nothing);
    assert!(bad(&state).contains("no thread handles"));
}

#[test]
fn selected_cpus_are_isolated_and_offered() {
    let (state, effect) = type_in(view(), "i");
    assert_eq!(effect, Effect::Nothing);
    assert!(bad(&state).contains("press c"));
    let (state, effect) = type_in(state, "c2<enter>i");
    assert_eq!(effect, Effect::Plan(Wanted::Isolate { cpus: set("2") }));
    let (state, effect) = type_in(state, "m<enter>");
    assert_eq!(effect, Effect::Plan(Wanted::MoveThreads { threads: ids(&[1]), cpus: set("2") }));
    // A list that cannot be is to be mended, not typed again.
    let (state, _) = type_in(state, "c-9<enter>");
    assert!(bad(&state).contains("there are 0-3"), "{}", bad(&state));
    let (state, _) = type_in(state, "<back><back>,3<enter>");
    assert_eq!(state.selected, set("2-3"));
    let (state, _) = type_in(state, "m<back><back><back><enter>");
    assert!(matches!(state.mode, Mode::Ask { .. }) && bad(&state).contains("name CPUs"));
}

#[test]
fn wrong_policies_are_told_and_mended() {
    let (state, effect) = type_in(view(), "pfifo:200<enter>");
    assert_eq!(effect, Effect::Nothing);
    assert!(bad(&state).contains("1 to 99"));
    let (_, effect) = type_in(state, "<back><enter>");
    let policy = Policy::Fifo(20);
    assert_eq!(effect, Effect::Plan(Wanted::SetPolicy { threads: ids(&[1]), policy }));
}

#[test]
fn undo_is_asked_for_and_a_refused_plan_is_told() {
    let (state, effect) = type_in(view(), "u");
    assert_eq!(effect, Effect::Nothing);
    assert_eq!(type_in(state.clone(), "n").1, Effect::Nothing);
    let (state, effect) = type_in(state, "y");
    assert_eq!(effect, Effect::Undo);
    let (state, _) = step(state, Input::Done(Ok("undone".to_owned())));
    assert_eq!(state.said, Some(Said::Good("undone".to_owned())));
    let wanted = Wanted::Isolate { cpus: set("0-3") };
    let (state, effect) =
        step(state, Input::Planned(wanted, Err(Refused("none would be left".to_owned()))));
    assert_eq!(
        (bad(&state), effect),
        ("cannot isolate CPUs 0-3: none would be left", Effect::Nothing)
    );
    assert_eq!(state.mode, Mode::Browse);
    let nothing = Input::Planned(Wanted::Isolate { cpus: set("3") }, Ok(Vec::new()));
    let (state, effect) = type_in(step(state, nothing).0, "<enter>");
    assert_eq!(
        (state.mode, effect),
        (Mode::Browse, Effect::Nothing),
        "an empty plan is not applied"
    );
}

#[test]
fn the_cursor_and_the_marks_stay_with_their_threads() {
    let (state, _) = type_in(view(), "jjj a<esc>j s");
    let on = |s: &State| s.seen.look.threads.get(s.threads.at).map(|t| t.id.tid);
    let (state, _) = type_in(state, "n<end> ");
    assert_eq!(
        on(&state).map(|t| ids(&[t]).into_iter().collect()),
        Some(state.threads.marked.clone())
    );
    let marked = state.threads.marked.clone();
    let mut less = machine(3_000_000_000);
    less.threads.remove(0);
    let (state, _) = step(state, Input::Looked(less.clone().totals()));
    assert_eq!(state.threads.marked, marked);
    // The same number, another thread.
    for t in &mut less.threads {
        t.id.start_ticks = 8;
    }
    let (state, _) = step(state, Input::Looked(less.totals()));
    assert_eq!(
        state.threads.marked.len(),
        0,
        "a mark does not pass to a thread of the same number"
    );
}

#[test]
fn rows_are_filtered_as_they_are_typed() {
    let tids = |s: &State| s.seen.look.threads.iter().map(|t| t.id.tid).collect::<Vec<_>>();
    let (state, _) = type_in(view(), "/rob");
    assert_eq!(tids(&state), [700]);
    let (state, _) = type_in(state, "<enter>");
    assert_eq!((tids(&state), &state.mode), (vec![700], &Mode::Browse));
    let (state, _) = type_in(state, "/<esc>t");
    assert_eq!(tids(&state), [21, 50, 700], "real-time");
    assert_eq!(tids(&type_in(state.clone(), "t").0), [21, 50], "of the kernel");
    assert_eq!(tids(&type_in(state.clone(), "ttt").0).len(), 6);
    let (state, _) = type_in(state, "tttsS");
    assert_eq!(tids(&state).first(), Some(&21), "by priority, the greatest first");
    let (state, _) = type_in(state, "o");
    assert!(bad(&state).contains("press c"));
    assert_eq!(type_in(state, "c0<enter>o").0.choice.cpus, set("0"));
}

#[test]
fn ctrl_c_and_q_end_it_but_not_while_a_line_is_typed() {
    assert_eq!(type_in(view(), "q").1, Effect::Quit);
    assert_eq!(type_in(view(), "/q").1, Effect::Nothing);
    for before in ["", "/x", "u", "?", "c"] {
        let state = type_in(view(), before).0;
        assert_eq!(step(state, Input::Key(Key::Interrupt)).1, Effect::Quit, "{before}");
    }
}

/// Compares with a golden file; `TAILBOUND_BLESS=1` writes it instead.
fn golden(name: &str, state: &State) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/view/golden");
    let path = std::path::Path::new(folder).join(name);
    let mut found = frame(state, Color::Off).join("\n");
    found.push('\n');
    if std::env::var_os("TAILBOUND_BLESS").is_some() {
        std::fs::write(&path, &found).unwrap_or_else(|e| panic!("{e}"));
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == found, "{name} differs; TAILBOUND_BLESS=1 accepts this:\n{found}");
}

#[test]
fn golden_screens() {
    let (state, _) = type_in(view(), "j  c2-3<enter>");
    golden("threads-80x24.txt", &state);
    golden("interrupts-80x24.txt", &type_in(state.clone(), "<tab>sss").0);
    golden("help-80x24.txt", &type_in(state.clone(), "?").0);
    let (asked, effect) = type_in(state.clone(), "m<enter>");
    let Effect::Plan(wanted) = effect else { panic!("{effect:?}") };
    let plan = planned(&wanted);
    golden("plan-80x24.txt", &step(asked, Input::Planned(wanted, plan)).0);
    let (state, _) = step(state, Input::Resized(sized(120, 40)));
    golden("both-120x40.txt", &type_in(state, "pfifo:100<enter>").0);
}

#[test]
fn a_screen_never_has_more_than_fits() {
    let mut many = machine(1);
    many.threads = (1..6000).map(|tid| thread(tid, "worker", Policy::Other)).collect();
    many.interrupts = (0..300).map(|n| interrupt(n, "eth0-TxRx", false)).collect();
    let steps: Vec<String> =
        (0..500).map(|n| format!("step {n} {}", "word ".repeat(n % 40))).collect();
    let plan = Input::Planned(Wanted::Isolate { cpus: set("3") }, Ok(steps));
    for (columns, rows) in
        [(80, 24), (80, 20), (120, 40), (30, 8), (200, 100), (10, 3), (1, 1), (80, 2)]
    {
        let size = sized(columns, rows);
        let state = State::new(Choice::default(), Sort::default(), Tab::Threads, size);
        let state = step(state, Input::Looked(many.clone().totals())).0;
        for keys in
            ["", "<end>", "<pgdn><pgdn> ", "/worker", "<tab><end>", "?", "u", "pwhat<enter>"]
        {
            fits(&type_in(state.clone(), keys).0, size, keys);
        }
        let read = type_in(step(state.clone(), plan.clone()).0, "<end>").0;
        fits(&read, size, "plan");
        if rows > 5 && columns > 20 {
            assert!(frame(&read, Color::Off).join("\n").contains("step 499"), "{size:?}");
            let last = type_in(state, "<end>").0;
            assert!(
                frame(&last, Color::Off).iter().any(|l| l.starts_with('>') && l.contains("5999"))
            );
        }
    }
}

fn fits(state: &State, size: TerminalSize, what: &str) {
    let lines = frame(state, Color::Off);
    assert_eq!(lines.len(), size.rows, "{what} in {size:?}");
    for line in lines {
        assert!(
            columns(&line) <= size.columns && !line.contains('\u{1b}'),
            "{what} in {size:?}: {line:?}"
        );
    }
}
