// SPDX-License-Identifier: MIT OR Apache-2.0
//! One machine held: by a lock that lies on the machine itself, for as long as a connection lasts.
//!
//! A shell on the machine locks a file (flock(1)), says so, and then runs what it is told, a line at a
//! time. What it runs inherits the lock, so the machine stays locked until that has ended, even where
//! the connection is lost: two fleets never measure on one machine at a time. When its input ends, it
//! ends what it runs. A person's file goes first: it is looked for before each run. Persons who measure share the lock
//! (tailbound-host, machine_lock.rs).

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::EngineError;
use super::console::Console;
use super::keeper::Keeper;
use super::shell::{self, ShellLauncher, quoted};
use super::strategy::Reached;

/// Where the lock lies, and a person's file: says who has it as `held WHO`, or nothing.
const PLACES: &str = r#"d=$TAILBOUND_LOCK_FOLDER
[ -n "$d" ] || { d=/run/lock; [ -d "$d" ] || d=/tmp; }
f=$d/tailbound.machine
person() { for r in /etc/tailbound/reserved "$d/tailbound.reserved"; do
if [ -e "$r" ]; then echo "held a person has it: $r: $(head -n 1 "$r")"; return 0; fi; done; return 1; }
"#;

/// Whoever opens it first makes it; it is only read, so that any user can lock it.
const LOCK: &str = r#"command -v flock >/dev/null || { echo "held there is no flock(1) to lock the machine with"; exit 0; }
[ -e "$f" ] || (umask 022; set -C; : >"$f") 2>/dev/null
exec 9<"$f" || exit 1
flock -n 9 || {
if flock -s -n 9; then echo "held a person measures on it with tailbound ($f)"; else echo "held another fleet or an agent of tailbound measures on it ($f)"; fi
exit 0; }
person && exit 0
"#;

/// Answers go to descriptor 3: what is run writes to neither it nor standard output.
/// It is told to end by the end of its input, or by a signal where something else starts and ends it.
/// A shell that was just forked forgets a signal that comes before it has cleared its parent's traps: as long as who is told has the
/// shell's name (proc_pid_comm(5)), it is told again. Who has another name was told as that, and once.
const SERVE: &str = r#"exec 3>&1 1>&2
child=
own=$(cat /proc/$$/comm 2>/dev/null)
stop() { while :; do was=$(cat "/proc/$1/comm" 2>/dev/null); kill -TERM "$1" 2>/dev/null || break
[ -n "$was" ] && [ "$was" = "$2" ] || break
sleep 0.1 2>/dev/null || sleep 1; done; wait "$1"; }
end() { [ -z "$child" ] || { stop "$child" "$own"; }; }
trap 'trap "" TERM; end; exit 1' TERM
echo "ready $$ $name" >&3
while IFS= read -r line; do
person >&3 && continue
( p=; trap 'trap "" TERM; [ -z "$p" ] || stop "$p" "$own"; exit 1' TERM
eval "exec $line" >/dev/null 3>&- & p=$!
wait "$p"; r=$?; printf '\004ended\n' >&2; echo "ended $r" >&3 ) </dev/null &
child=$!
done
end
"#;

/// A run says how far it is every 10 s. After a longer silence it is looked for: what carries its words may have died without
/// closing anything (a slurmstepd that was killed).
const SILENT: Duration = Duration::from_secs(60);
/// What holds the machine ends in this time after it was told to, or is killed.
const LEAVES_MOST: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_millis(20);

/// The last line of what a run says: its answer comes by another way and may overtake it.
const SAID_ALL: &str = "\u{4}ended";

/// Who holds the machine now, as a script that prints it.
pub(super) fn asked() -> String {
    // A free machine is no failure.
    format!("{PLACES}({LOCK}:\n)\n")
}

/// A machine that is held.
#[derive(Debug)]
pub struct Lease {
    /// To further shells on it.
    pub(super) way: ShellLauncher,
    /// What the machine calls it.
    pub(super) name: String,
    /// Number of its shell's process there.
    shell: u32,
    /// Of a place that was acquired for it.
    pub(super) elsewhere: Option<Box<Elsewhere>>,
    /// Gives back what else was taken, once the shell has ended.
    keeper: Option<Keeper>,
    child: Child,
    input: Option<ChildStdin>,
    heard: Receiver<Heard>,
}

/// A place of labgrid, as it was when it was acquired, and what serves its board meanwhile.
#[derive(Debug)]
pub(super) struct Elsewhere {
    /// As labgrid-client takes it.
    pub(super) place: String,
    /// Who has it.
    pub(super) acquired: Option<String>,
    /// When anything about it last changed.
    pub(super) changed: String,
    /// Read while it is held.
    pub(super) console: Option<Console>,
    /// The drivers of the strategy that booted it.
    pub(super) booted: Option<Reached>,
}

#[derive(Debug)]
enum Heard {
    /// Of the shell.
    Answer(String),
    /// Of what it runs.
    Said(String),
    /// The shell says no more.
    End,
}

/// What becomes of a machine's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockUse {
    Held,
    /// Time is virtual there: nothing that goes on beside it matters.
    NotNeeded,
}

impl Lease {
    /// Takes the machine. `name` is a word of the shell there. `heard` gets what is said meanwhile.
    pub(super) fn take(
        way: ShellLauncher,
        lock: LockUse,
        name: &str,
        mut keeper: Option<Keeper>,
        heard_of: &mut dyn FnMut(&str),
    ) -> Result<Self, EngineError> {
        let what = "taking the machine";
        let lock = match lock {
            LockUse::Held => LOCK,
            LockUse::NotNeeded => "person() { return 1; }\n",
        };
        let script = format!("name={name}\n{PLACES}{lock}{SERVE}");
        let mut command = shell::command(&way, &script);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| shell::not_started(&command, what, &e))?;
        if let Some(keeper) = &mut keeper {
            keeper.holder(child.id());
        }
        let (answers, said) = (child.stdout.take(), child.stderr.take());
        let input = child.stdin.take();
        let (to, heard) = mpsc::channel();
        let also = to.clone();
        thread::spawn(move || {
            for line in answers.into_iter().flat_map(|a| BufReader::new(a).lines()) {
                let Ok(line) = line else { break };
                drop(to.send(Heard::Answer(line)));
            }
            drop(to.send(Heard::End));
        });
        thread::spawn(move || {
            for line in said.into_iter().flat_map(|a| BufReader::new(a).lines()) {
                let Ok(line) = line else { break };
                drop(also.send(Heard::Said(line)));
            }
        });
        let mut lease = Self {
            way,
            name: String::new(),
            shell: 0,
            elsewhere: None,
            keeper,
            child,
            input,
            heard,
        };
        let mut last = "it ended without a word".to_owned();
        loop {
            match lease.heard.recv() {
                Ok(Heard::Answer(a)) => {
                    if let Some((shell, name)) =
                        a.strip_prefix("ready ").and_then(|r| r.split_once(' '))
                    {
                        lease.shell = shell.parse().map_err(|_| EngineError::failed(what, &a))?;
                        name.clone_into(&mut lease.name);
                        return Ok(lease);
                    }
                    let who = a.strip_prefix("held ").unwrap_or(&a).to_owned();
                    return Err(EngineError::Held(who));
                }
                Ok(Heard::Said(line)) => {
                    heard_of(&line);
                    last = line;
                }
                Ok(Heard::End) | Err(_) => {
                    // What it said last may come after.
                    while let Ok(Heard::Said(line)) = lease.heard.recv() {
                        last = line;
                    }
                    return Err(EngineError::failed(what, last));
                }
            }
        }
    }

    /// Runs words there and gives their exit status.
    ///
    /// # Errors
    /// [`EngineError::Lost`] when the lease ended before the words did.
    pub fn run(
        &mut self,
        words: &[String],
        heard: &mut dyn FnMut(&str),
    ) -> Result<i32, EngineError> {
        let line: Vec<String> = words.iter().map(|w| quoted(w)).collect();
        let line = line.join(" ");
        if line.contains('\n') {
            return Err(EngineError::failed("running", "a word contains a line break"));
        }
        let told = self.input.as_mut().map(|i| writeln!(i, "{line}").and_then(|()| i.flush()));
        if !matches!(told, Some(Ok(()))) {
            return Err(EngineError::Held("the lease is lost already".to_owned()));
        }
        let mut last = "the connection ended without a word".to_owned();
        let (mut said_all, mut ended) = (false, None);
        loop {
            if let Some(status) = ended.filter(|_| said_all) {
                return Ok(status);
            }
            match self.heard.recv_timeout(SILENT) {
                Ok(Heard::Said(text)) => {
                    let rest = text.strip_suffix(SAID_ALL);
                    said_all |= rest.is_some();
                    // Its own last line may lack a line break.
                    let text = rest.unwrap_or(&text);
                    if rest.is_none() || !text.is_empty() {
                        heard(text);
                        text.clone_into(&mut last);
                    }
                }
                Ok(Heard::Answer(answer)) => {
                    if let Some(status) = answer.strip_prefix("ended ") {
                        let status = status.parse();
                        let status =
                            status.map_err(|_| EngineError::failed("running", answer.clone()))?;
                        ended = Some(status);
                        continue;
                    }
                    let who = answer.strip_prefix("held ").unwrap_or(&answer).to_owned();
                    return Err(EngineError::Held(who));
                }
                Err(RecvTimeoutError::Timeout) => self.still_there(heard)?,
                Ok(Heard::End) | Err(RecvTimeoutError::Disconnected) => {
                    return ended.ok_or(EngineError::Lost(last));
                }
            }
        }
    }

    /// Is the shell there? By another connection; where there is none, that of the shell knows more.
    fn still_there(&mut self, heard: &mut dyn FnMut(&str)) -> Result<(), EngineError> {
        let script = format!("kill -0 {} 2>/dev/null && echo yes || echo no", self.shell);
        let said = shell::ask(&self.way, "looking for the run", &script, None);
        match said.as_deref().map(str::trim) {
            Ok("no") => {
                // It would wait for ever.
                drop(self.child.kill());
                let why = "its shell there is gone, and its connection did not say so";
                Err(EngineError::Lost(why.to_owned()))
            }
            Ok(_) => Ok(()),
            Err(e) => {
                heard(&e.to_string());
                Ok(())
            }
        }
    }

    /// What was taken elsewhere is somebody else's now.
    pub(super) fn keep(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            keeper.keep();
        }
    }

    /// Process number of what holds it here: when that ends, the lease is lost.
    #[must_use]
    pub fn holder(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // The end of its input ends it.
        self.input = None;
        let told = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if told.elapsed() > LEAVES_MOST {
                drop(self.child.kill());
                drop(self.child.wait());
                break;
            }
            thread::park_timeout(LOOK);
        }
        // Then all else is given back: what serves the board first.
        if let Some(elsewhere) = self.elsewhere.take() {
            drop((elsewhere.console, elsewhere.booted));
        }
        self.keeper = None;
    }
}
