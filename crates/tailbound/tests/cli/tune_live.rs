// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tune show --live` on a terminal of its own: it is given back, whatever ends the view, and nothing is
//! done that was not shown first.
//!
//! What keys mean and what is drawn is tested without a terminal, beside the view.

use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Child;
use std::time::Instant;

use tailbound_sys::{ipc, sched, terminal};

use super::{PATIENCE, send, skip, tailbound};

/// A view, and the person before it.
struct Session {
    person: OwnedFd,
    terminal: OwnedFd,
    child: Child,
    said: String,
}

impl Session {
    fn begin(words: &[&str]) -> Option<Self> {
        let Ok((person, terminal)) = terminal::pair(terminal::WindowSize::USUAL) else {
            skip("pseudo-terminal", "none to be had");
            return None;
        };
        let end = || std::process::Stdio::from(terminal.try_clone().unwrap());
        let mut command = tailbound();
        command.args(["tune", "show", "--live"]).args(words);
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        drop(command);
        let mut session = Self { person, terminal, child, said: String::new() };
        session.until("Threads");
        assert_eq!(terminal::is_cooked(session.terminal.as_fd()), Ok(false));
        Some(session)
    }

    fn types(&self, keys: &str) {
        assert_eq!(ipc::write(self.person.as_fd(), keys.as_bytes()).unwrap(), keys.len());
    }

    /// Reads what is drawn for a moment.
    fn reads(&mut self) {
        let mut bytes = [0; 4096];
        if ipc::wait_readable(&[self.person.as_fd()], 20).unwrap() == [true]
            && let Ok(n) = ipc::read(self.person.as_fd(), &mut bytes)
        {
            self.said.push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
    }

    /// Reads until `text` was drawn; forgets what was before.
    fn until(&mut self, text: &str) -> String {
        let begun = Instant::now();
        while !self.said.contains(text) {
            assert!(begun.elapsed() < PATIENCE, "no {text:?} in {:?}", self.said);
            self.reads();
        }
        std::mem::take(&mut self.said)
    }

    /// Reads until the view has ended; its exit status.
    fn ends(&mut self) -> Option<i32> {
        let begun = Instant::now();
        loop {
            self.reads();
            if let Some(status) = self.child.try_wait().unwrap() {
                self.reads();
                return status.code();
            }
            assert!(begun.elapsed() < PATIENCE, "it goes on: {:?}", self.said);
        }
    }

    fn is_given_back(&self) {
        assert_eq!(terminal::is_cooked(self.terminal.as_fd()), Ok(true));
        assert!(self.said.ends_with("\x1b[?25h\x1b[?1049l"), "{:?}", self.said);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn quitting_gives_the_terminal_back() {
    for keys in ["q", "\x03", "/irq\r\tq", "\x1bq"] {
        let Some(mut session) = Session::begin(&["--interval", "100ms"]) else { return };
        session.types(keys);
        assert_eq!(session.ends(), Some(0), "{keys:?}");
        session.is_given_back();
    }
}

#[test]
fn signals_give_the_terminal_back() {
    for signal in ["TERM", "INT", "HUP"] {
        let Some(mut session) = Session::begin(&["threads", "--interval", "0"]) else { return };
        send(session.child.id(), signal);
        assert_eq!(session.ends(), Some(0), "{signal}");
        session.is_given_back();
    }
}

#[test]
fn a_terminal_that_is_gone_ends_the_view() {
    let Some(mut session) = Session::begin(&[]) else { return };
    // Anything else than the person's end, which closes.
    session.person = std::io::pipe().unwrap().0.into();
    let begun = Instant::now();
    while session.child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// A process to be changed, ended with the test however that ends.
struct Sleeper(std::process::Child);

impl Sleeper {
    fn begin() -> Self {
        Self(std::process::Command::new("sleep").arg("600").spawn().unwrap())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn keys_typed_ahead_of_a_plan_do_not_agree_to_it() {
    let sleeper = Sleeper::begin();
    let pid = sleeper.0.id().to_string();
    let policy = |pid: &str| sched::get(pid.parse().unwrap()).unwrap().policy;
    let Some(mut session) = Session::begin(&["threads", "--filter", &pid]) else { return };
    session.until(&pid);
    session.types("pbatch\r\ry");
    session.until("Do it?");
    // The same view still asks: nothing has agreed.
    session.types("\x1b[A");
    for _ in 0..20 {
        session.reads();
    }
    assert_eq!(policy(&pid), sched::SCHED_OTHER, "{:?}", session.said);
    session.types("\r");
    if tailbound_sys::process::is_root() {
        // The number and what stands behind it are drawn at once.
        let said = session.until(": 1 change");
        assert_eq!(policy(&pid), sched::SCHED_BATCH);
        let number = said.split("Applied as number ").nth(1).unwrap();
        let number: String = number.chars().take_while(char::is_ascii_digit).collect();
        let undone = tailbound().args(["tune", "undo", &number]).output().unwrap();
        assert!(undone.status.success(), "{undone:?}");
        assert_eq!(policy(&pid), sched::SCHED_OTHER);
    } else {
        session.until("only root");
    }
    drop(sleeper);
    session.types("q");
    assert_eq!(session.ends(), Some(0));
    session.is_given_back();
}
