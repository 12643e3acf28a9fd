// SPDX-License-Identifier: MIT OR Apache-2.0
//! Late wake-ups as occasions to act: at most ten a run, one at a time, what is to be done in its order.
//!
//! Context: COLD, by the supervisor. Units: ns of the run's clock, from the first due activation.
//! Where something fails, what stands behind it is left out, as in rtla. A late wake-up that comes while an occasion is
//! under way, or after the last, is counted and starts none.

use std::collections::VecDeque;
use std::ops::Range;

use tailbound_core::finding::{Finding, Impact};
use tailbound_core::units::grouped;
use tailbound_core::{Context, instant};
use tailbound_sys::addressee::signal_name;

use super::Action;
use super::command::{CommandEnd, RunningCommand, Shell, Variables, shown};

/// Occasions of one run.
const OCCASIONS_MAX: u32 = 10;
/// Between two looks at a command that is waited for.
const LOOK_MS: i32 = 20;

/// A wake-up, or an interrupt, beyond its limit.
#[derive(Clone, Debug)]
pub(crate) struct LateEvent {
    pub(crate) context: Context,
    pub(crate) thread: Option<u32>,
    pub(crate) cpu: Option<u32>,
    pub(crate) cycle: Option<u64>,
    pub(crate) latency_ns: i64,
    pub(crate) limit_ns: i64,
    pub(crate) t_ns: i64,
}

impl LateEvent {
    /// For a command; `begin_ns` is the first due activation on CLOCK_REALTIME.
    fn variables(&self, begin_ns: i64) -> Variables {
        let number = |n: Option<u64>| n.map_or_else(String::new, |n| n.to_string());
        vec![
            "TAILBOUND_EVENT=late".to_owned(),
            format!("TAILBOUND_CONTEXT={}", self.context.as_str()),
            format!("TAILBOUND_LATENCY_NS={}", self.latency_ns),
            format!("TAILBOUND_LIMIT_NS={}", self.limit_ns),
            format!("TAILBOUND_THREAD={}", number(self.thread.map(u64::from))),
            format!("TAILBOUND_CPU={}", number(self.cpu.map(u64::from))),
            format!("TAILBOUND_CYCLE={}", number(self.cycle)),
            format!("TAILBOUND_T_NS={}", self.t_ns),
            format!("TAILBOUND_TIME={}", instant::seconds(begin_ns.saturating_add(self.t_ns))),
        ]
    }
}

/// Whether commands may be started now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandGate {
    Open,
    /// The run ends, and its trace is not written yet.
    Closed,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Occasions {
    actions: Vec<Action>,
    shell: Option<Box<dyn Shell>>,
    /// What holds for all: files.
    always: Variables,
    /// Of the occasion that is under way: what is left to do, and what happened.
    left: Range<usize>,
    variables: Variables,
    running: Option<(usize, Box<dyn RunningCommand>)>,
    begun: u32,
    unanswered: u64,
    failed: u32,
    notes: VecDeque<String>,
}

impl Occasions {
    pub(crate) fn new(actions: Vec<Action>, shell: Box<dyn Shell>, always: Variables) -> Self {
        Self { actions, shell: Some(shell), always, ..Self::default() }
    }

    /// Is anything to be done at all?
    pub(crate) fn are_wanted(&self) -> bool {
        !self.actions.is_empty()
    }

    fn is_under_way(&self) -> bool {
        self.running.is_some() || !self.left.is_empty()
    }

    /// A wake-up was late.
    pub(crate) fn late(&mut self, event: &LateEvent, begin_ns: i64) {
        if !self.are_wanted() {
            return;
        }
        if self.begun == OCCASIONS_MAX || self.is_under_way() {
            self.unanswered = self.unanswered.saturating_add(1);
            return;
        }
        self.begun += 1;
        self.left = 0..self.actions.len();
        self.variables = event.variables(begin_ns);
    }

    /// What every later command is told, too.
    pub(crate) fn tell(&mut self, variable: String) {
        self.always.push(variable);
    }

    /// Does what can be done now, without waiting.
    pub(crate) fn go_on(&mut self, gate: CommandGate) {
        loop {
            if let Some((at, command)) = &mut self.running {
                let Some(end) = command.ended() else { return };
                let at = *at;
                self.running = None;
                self.command_ended(at, &end);
            }
            let Some(at) = self.left.clone().next() else { return };
            match self.actions.get(at) {
                Some(Action::Command(_)) if gate == CommandGate::Closed => return,
                Some(Action::Command(line)) => {
                    self.left.start += 1;
                    let variables = [self.variables.clone(), self.always.clone()].concat();
                    match self.shell.as_mut().map(|shell| shell.start(line, &variables)) {
                        Some(Ok(command)) => self.running = Some((at, command)),
                        Some(Err(e)) => self.fail(format!("{} was not started: {e}", shown(line))),
                        None => {}
                    }
                }
                Some(Action::Signal { to, number }) => {
                    self.left.start += 1;
                    let what = format!("{} to process {}", signal_name(*number), to.pid());
                    match to.send(*number) {
                        Ok(()) => self.notes.push_back(format!("sent {what}")),
                        Err(e) => self.fail(format!("{what} was not sent: {e}")),
                    }
                }
                None => return,
            }
        }
    }

    fn command_ended(&mut self, at: usize, end: &CommandEnd) {
        let Some(Action::Command(line)) = self.actions.get(at) else { return };
        let note = format!("{}: {}", shown(line), end.how);
        match end.succeeded {
            true => self.notes.push_back(note),
            false => self.fail(note),
        }
    }

    fn fail(&mut self, note: String) {
        self.failed += 1;
        let left = self.left.len();
        self.left = 0..0;
        self.notes.push_back(match left {
            0 => note,
            n => format!("{note}; {n} more of this occasion left out"),
        });
    }

    /// What was done since the last call, for the record.
    pub(crate) fn take_notes(&mut self) -> impl Iterator<Item = String> + use<> {
        std::mem::take(&mut self.notes).into_iter()
    }

    /// Waits for what is under way. `pause` waits for a number of ms and returns whether somebody wants the end: then
    /// it is ended, and so it is at once where the run `was_cut_off`.
    pub(crate) fn settle(&mut self, was_cut_off: bool, pause: &mut dyn FnMut(i32) -> bool) {
        let mut over = was_cut_off;
        loop {
            if over {
                self.left = 0..0;
                if let Some((at, mut command)) = self.running.take() {
                    let end = command.end();
                    self.command_ended(at, &end);
                }
            }
            self.go_on(CommandGate::Open);
            if !self.is_under_way() {
                return;
            }
            over = pause(LOOK_MS);
        }
    }

    /// What a reader must know of all of them.
    pub(crate) fn finding(&self) -> Option<Finding> {
        if self.begun == 0 {
            return None;
        }
        let times =
            |n: u64| if n == 1 { "once".to_owned() } else { format!("{} times", grouped(n)) };
        let mut title = format!("acted on late wake-ups {}", times(self.begun.into()));
        if self.failed > 0 {
            title.push_str(&format!(", failed {}", times(self.failed.into())));
        }
        if self.unanswered > 0 {
            title.push_str(&format!(
                "; {} more that were kept one by one started nothing: one at a time, {OCCASIONS_MAX} a run",
                grouped(self.unanswered)
            ));
        }
        let meaning = "Each command, signal and exit status is an event of the run file. What a command takes is in the figures.";
        Some(Finding::new("acted", Impact::Notice, title).meaning(meaning))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use tailbound_sys::SysError;

    use super::*;

    /// What was started, with its variables; what is to become of commands.
    #[derive(Default)]
    struct Script {
        started: Vec<(String, Variables)>,
        ended: Vec<String>,
        /// `None`: it goes on until it is ended.
        fate: Option<bool>,
    }

    struct Scripted(Rc<RefCell<Script>>, String);

    impl Shell for Rc<RefCell<Script>> {
        fn start(
            &mut self,
            line: &str,
            variables: &Variables,
        ) -> Result<Box<dyn RunningCommand>, SysError> {
            if line == "refused" {
                return Err(SysError::code("execve", line, 2));
            }
            self.borrow_mut().started.push((line.to_owned(), variables.clone()));
            Ok(Box::new(Scripted(Self::clone(self), line.to_owned())))
        }
    }

    impl RunningCommand for Scripted {
        fn ended(&mut self) -> Option<CommandEnd> {
            let succeeded = self.0.borrow().fate?;
            Some(CommandEnd { how: "it ended".to_owned(), succeeded })
        }
        fn end(&mut self) -> CommandEnd {
            self.0.borrow_mut().ended.push(self.1.clone());
            CommandEnd { how: "cut off".to_owned(), succeeded: false }
        }
    }

    fn occasions(lines: &[&str], fate: Option<bool>) -> (Occasions, Rc<RefCell<Script>>) {
        let script = Rc::new(RefCell::new(Script { fate, ..Script::default() }));
        let actions = lines.iter().map(|line| Action::Command((*line).to_owned())).collect();
        let always = vec!["TAILBOUND_FILE=/r".to_owned()];
        (Occasions::new(actions, Box::new(Rc::clone(&script)), always), script)
    }

    fn late() -> LateEvent {
        LateEvent {
            context: Context::User,
            thread: Some(1),
            cpu: Some(3),
            cycle: Some(42),
            latency_ns: 1_500,
            limit_ns: 1_000,
            t_ns: 500_000_000,
        }
    }

    #[test]
    fn a_command_is_told_what_happened() {
        let (mut occasions, script) = occasions(&["a"], Some(true));
        occasions.late(&late(), 1_000_000_000);
        occasions.go_on(CommandGate::Open);
        let (line, variables) = script.borrow().started.first().cloned().expect("it was started");
        assert_eq!(line, "a");
        assert_eq!(
            variables,
            [
                "TAILBOUND_EVENT=late",
                "TAILBOUND_CONTEXT=user",
                "TAILBOUND_LATENCY_NS=1500",
                "TAILBOUND_LIMIT_NS=1000",
                "TAILBOUND_THREAD=1",
                "TAILBOUND_CPU=3",
                "TAILBOUND_CYCLE=42",
                "TAILBOUND_T_NS=500000000",
                "TAILBOUND_TIME=1.500000000",
                "TAILBOUND_FILE=/r",
            ]
        );
        assert_eq!(occasions.take_notes().collect::<Vec<_>>(), ["`a`: it ended"]);
    }

    #[test]
    fn ten_are_begun_and_the_others_counted() {
        let (mut occasions, script) = occasions(&["a"], Some(true));
        for _ in 0..25 {
            occasions.late(&late(), 0);
            occasions.go_on(CommandGate::Open);
        }
        assert_eq!(script.borrow().started.len(), 10);
        let title = occasions.finding().expect("something was done").title;
        assert!(title.starts_with("acted on late wake-ups 10 times; 15 more that"), "{title}");
    }

    #[test]
    fn one_goes_on_at_a_time_and_none_is_left_behind() {
        let (mut occasions, script) = occasions(&["a", "b"], None);
        for _ in 0..3 {
            occasions.late(&late(), 0);
            occasions.go_on(CommandGate::Open);
        }
        assert_eq!((script.borrow().started.len(), occasions.unanswered), (1, 2));
        // Somebody wants the end at the third look.
        let mut looks = 0;
        occasions.settle(false, &mut |_| {
            looks += 1;
            looks == 3
        });
        assert_eq!((looks, script.borrow().ended.clone()), (3, vec!["a".to_owned()]));
        let notes: Vec<String> = occasions.take_notes().collect();
        assert_eq!(notes, ["`a`: cut off"]);
        assert_eq!(script.borrow().started.len(), 1, "what stood behind it is not begun");
    }

    #[test]
    fn a_run_that_was_cut_off_ends_its_command_at_once() {
        let (mut occasions, script) = occasions(&["a"], None);
        occasions.late(&late(), 0);
        occasions.go_on(CommandGate::Open);
        occasions.settle(true, &mut |_| panic!("it waited"));
        assert_eq!(script.borrow().ended, ["a"]);
    }

    #[test]
    fn what_stands_behind_a_failure_is_left_out() {
        for (lines, fate) in [(["a", "b"], Some(false)), (["refused", "b"], Some(true))] {
            let (mut occasions, script) = occasions(&lines, fate);
            occasions.late(&late(), 0);
            occasions.go_on(CommandGate::Open);
            assert!(script.borrow().started.iter().all(|(line, _)| line != "b"));
            let notes: Vec<String> = occasions.take_notes().collect();
            assert!(notes.len() == 1, "{notes:?}");
            assert!(
                notes.iter().all(|n| n.ends_with("1 more of this occasion left out")),
                "{notes:?}"
            );
            let title = occasions.finding().expect("something was done").title;
            assert_eq!(title, "acted on late wake-ups once, failed once");
        }
    }

    #[test]
    fn commands_wait_for_the_trace_of_a_run_that_ends() {
        let (mut occasions, script) = occasions(&["a"], Some(true));
        occasions.late(&late(), 0);
        occasions.go_on(CommandGate::Closed);
        assert_eq!(script.borrow().started.len(), 0);
        occasions.tell("TAILBOUND_TRACE=/t".to_owned());
        occasions.settle(false, &mut |_| panic!("it waited"));
        let started = script.borrow().started.clone();
        assert!(started.iter().all(|(_, v)| v.last().is_some_and(|v| v == "TAILBOUND_TRACE=/t")));
        assert_eq!(started.len(), 1);
    }

    #[test]
    fn without_actions_nothing_happens() {
        let (mut occasions, _) = occasions(&[], None);
        occasions.late(&late(), 0);
        occasions.settle(false, &mut |_| panic!("it waited"));
        assert!(occasions.finding().is_none() && !occasions.are_wanted());
    }
}
