// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words of an action: those of rtla, and our own.
//!
//! Context: SETUP.
//! Source: Documentation/tools/rtla/common_timerlat_options.rst, `--on-threshold`.

use std::path::PathBuf;

use tailbound_sys::addressee::signal_number;
use tailbound_sys::process::Pid;

use super::ActionError;

/// What is sent where nobody names a signal.
const SIGNAL: &str = "USR1";

/// An action as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ActionWord {
    /// Keep the trace, in this file.
    Trace(Option<PathBuf>),
    /// Do not end the run.
    Continue,
    Task(TaskWord),
}

/// Something that is done in its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TaskWord {
    Signal { to: Recipient, number: i32 },
    Command(String),
}

/// Who gets a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recipient {
    Process(Pid),
    /// Who started this program.
    Parent,
}

/// `trace[,file=FILE]`, `signal,num=N,pid=PID`, `shell,command=CMD`, `continue`.
pub(super) fn action(flag: &'static str, text: &str) -> Result<ActionWord, ActionError> {
    let (name, rest) = match text.split_once(',') {
        Some((name, rest)) => (name, Some(rest)),
        None => (text, None),
    };
    let wrong = |wanted| ActionError::Action { flag, typed: text.to_owned(), wanted };
    match (name, rest) {
        ("trace", None) => Ok(ActionWord::Trace(None)),
        ("trace", Some(rest)) => rest
            .strip_prefix("file=")
            .filter(|file| !file.is_empty())
            .map(|file| ActionWord::Trace(Some(PathBuf::from(file))))
            .ok_or_else(|| wrong("trace,file=FILE")),
        ("continue", None) => Ok(ActionWord::Continue),
        ("continue", Some(_)) => Err(wrong("continue")),
        ("shell", rest) => rest
            .and_then(|rest| rest.strip_prefix("command="))
            .filter(|line| !line.trim().is_empty())
            .map(|line| ActionWord::Task(TaskWord::Command(line.to_owned())))
            .ok_or_else(|| wrong("shell,command=CMD")),
        ("signal", rest) => rtla_signal(rest.unwrap_or_default())
            .map(ActionWord::Task)
            .ok_or_else(|| wrong("signal,num=N,pid=PID (or pid=parent)")),
        _ => Err(ActionError::UnknownAction { flag, typed: text.to_owned() }),
    }
}

fn rtla_signal(rest: &str) -> Option<TaskWord> {
    let (mut number, mut to) = (None, None);
    for part in rest.split(',') {
        match part.split_once('=')? {
            ("num", text) if number.is_none() => number = Some(signal_number(text)?),
            ("pid", text) if to.is_none() => to = Some(recipient(text)?),
            _ => return None,
        }
    }
    Some(TaskWord::Signal { to: to?, number: number? })
}

fn recipient(text: &str) -> Option<Recipient> {
    match text {
        "parent" => Some(Recipient::Parent),
        _ => text.parse().ok().filter(|pid| *pid > 0).map(|pid| Recipient::Process(Pid(pid))),
    }
}

/// `PID[:SIGNAL]` of `--signal`.
pub(super) fn signal(text: &str) -> Result<TaskWord, ActionError> {
    let (to, name) = text.split_once(':').unwrap_or((text, SIGNAL));
    match (recipient(to), signal_number(name)) {
        (Some(to), Some(number)) => Ok(TaskWord::Signal { to, number }),
        _ => Err(ActionError::Signal { typed: text.to_owned() }),
    }
}

/// A command for a shell.
pub(super) fn command(flag: &'static str, line: &str) -> Result<TaskWord, ActionError> {
    match line.trim().is_empty() {
        true => Err(ActionError::NoCommand { flag }),
        false => Ok(TaskWord::Command(line.to_owned())),
    }
}

/// An action where it is written as one, `WORD` or `WORD,KEY=…`, else a command.
pub(super) fn action_or_command(flag: &'static str, text: &str) -> Result<ActionWord, ActionError> {
    let (name, rest) = text.split_once(',').unwrap_or((text, ""));
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase());
    let has_key = rest.split_once('=').is_some_and(|(key, _)| is_word(key));
    // No program is called `continue`, and who has one called `trace` writes its path.
    let alone = rest.is_empty() && ["trace", "continue"].contains(&name);
    if alone || (is_word(name) && has_key) {
        return action(flag, text);
    }
    command(flag, text).map(ActionWord::Task)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(word: Result<ActionWord, ActionError>) -> TaskWord {
        match word {
            Ok(ActionWord::Task(task)) => task,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_words_of_rtla_are_understood() {
        let read = |text| action("--on-threshold", text);
        assert_eq!(read("trace").ok(), Some(ActionWord::Trace(None)));
        assert_eq!(
            read("trace,file=a,b.dat").ok(),
            Some(ActionWord::Trace(Some("a,b.dat".into())))
        );
        assert_eq!(read("continue").ok(), Some(ActionWord::Continue));
        let command = TaskWord::Command("grep -c a,b=c x".to_owned());
        assert_eq!(task(read("shell,command=grep -c a,b=c x")), command);
        let parent = TaskWord::Signal { to: Recipient::Parent, number: 2 };
        assert_eq!(task(read("signal,num=2,pid=parent")), parent);
        let other = TaskWord::Signal { to: Recipient::Process(Pid(77)), number: 15 };
        assert_eq!(task(read("signal,pid=77,num=TERM")), other);
    }

    #[test]
    fn what_is_wrong_is_named_with_what_could_be_written() {
        for (typed, hint) in [
            ("tracing", "trace[,file=FILE], signal,num=N,pid=PID"),
            ("", "trace[,file=FILE]"),
            ("trace,name=x", "trace,file=FILE"),
            ("trace,file=", "trace,file=FILE"),
            ("signal", "signal,num=N,pid=PID"),
            ("signal,num=2", "signal,num=N,pid=PID"),
            ("signal,num=0,pid=parent", "signal,num=N,pid=PID"),
            ("signal,num=2,num=3,pid=parent", "signal,num=N,pid=PID"),
            ("signal,num=2,pid=-1", "signal,num=N,pid=PID"),
            ("shell", "shell,command=CMD"),
            ("shell,command= ", "shell,command=CMD"),
            ("continue,now", "write continue"),
        ] {
            let why = action("--on-threshold", typed).map_err(|e| e.to_string()).err();
            let why = why.unwrap_or_else(|| panic!("{typed} was taken"));
            assert!(why.starts_with("--on-threshold") && why.contains(hint), "{typed}: {why}");
        }
    }

    #[test]
    fn a_command_is_a_command_unless_it_is_written_as_an_action() {
        let read = |text| action_or_command("--on-end", text);
        for line in ["cp a b", "make,clean", "echo a,b=c", "./trace", "trace -x", "a"] {
            assert_eq!(task(read(line)), TaskWord::Command(line.to_owned()));
        }
        assert_eq!(task(read("shell,command=true")), TaskWord::Command("true".to_owned()));
        assert_eq!(read("trace").ok(), Some(ActionWord::Trace(None)));
        // A slip of the pen is no command.
        assert!(read("shel,command=true").is_err() && read("shell,cmd=true").is_err());
        assert!(read(" ").is_err());
    }

    #[test]
    fn a_signal_is_one_of_its_own_or_the_usual() {
        let usual = signal_number(SIGNAL).expect("it has a number");
        let to = |pid| Recipient::Process(Pid(pid));
        let asked = |text| signal(text).ok();
        assert_eq!(asked("42"), Some(TaskWord::Signal { to: to(42), number: usual }));
        assert_eq!(asked("42:SIGTERM"), Some(TaskWord::Signal { to: to(42), number: 15 }));
        assert_eq!(
            asked("parent:INT"),
            Some(TaskWord::Signal { to: Recipient::Parent, number: 2 })
        );
        for wrong in ["", "x", "0", "-3", "42:", "42:NONE", ":TERM"] {
            assert!(signal(wrong).is_err(), "{wrong}");
        }
    }
}
