// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one place where a setting is read and written.
//!
//! Everything above it is written against [`System`], so that plans, journals and
//! kills are tried on a machine that is played (`tests/`), and on a tree of files.
//! A thread, interrupt or group that is not the one that was meant is *gone*, never written.
//! Source: sched(7), proc_pid_stat(5), Documentation/core-api/irq/irq-affinity.rst,
//! Documentation/admin-guide/cgroup-v2.rst.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tailbound_core::{CpuSet, Policy};
use tailbound_host::root::{Found, Missing, Root};
use tailbound_host::{interrupts, threads};
use tailbound_sys::new_file::{self, Existing};
use tailbound_sys::{clock, hostinfo, sched};

use crate::coalescing;
use crate::holder;
use crate::refused::Refused;
use crate::resctrl;
use crate::step::State;
use crate::target::{InterruptId, NICE, RESETS, Target, ThreadId};

/// What tells, later, what began after a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Ticks since boot, as a thread's start is counted.
    pub ticks: u64,
    /// The interrupts there are; they have no start of their own.
    pub interrupts: Vec<InterruptId>,
}

/// What settings are read from and written to.
pub trait System {
    /// The state of `target` now.
    ///
    /// # Errors
    /// *Not applicable*: it is gone, or another; *unknown*: it cannot be read.
    fn read(&self, target: &Target) -> Found<State>;

    /// Brings `target` to `state`, without a look at what came of it.
    ///
    /// # Errors
    /// [`Refused`].
    fn write(&mut self, target: &Target, state: &State) -> Result<(), Refused>;

    /// What tells the folder of a setting from another of the same name, where the kernel keeps that.
    fn anchor(&self, target: &Target) -> Option<u64>;

    /// Now.
    ///
    /// # Errors
    /// The time since boot, or the interrupts, cannot be read.
    fn moment(&self) -> Found<Moment>;

    /// Every thread there is now.
    ///
    /// # Errors
    /// /proc shows none.
    fn threads(&self) -> Found<Vec<threads::Thread>>;
}

/// Reads, writes, and looks at what came of it.
///
/// # Errors
/// [`Refused`].
pub(crate) fn change(
    system: &mut dyn System,
    target: &Target,
    state: &State,
) -> Result<State, Refused> {
    system.write(target, state)?;
    let now = system.read(target)?;
    let same = match (target, state, &now) {
        // What is made gets its inode or process number from the kernel.
        (Target::Group { .. } | Target::Holder { .. }, Some(_), Some(_)) => true,
        (Target::Coalescing { .. }, Some(wanted), Some(now)) => coalescing::is_met(wanted, now),
        _ => *state == now,
    };
    if same { Ok(now) } else { Err(Refused::Otherwise { wanted: shown(state), now: shown(&now) }) }
}

/// A state for people, one line.
#[must_use]
pub fn shown(state: &State) -> String {
    match state.as_deref() {
        None => "absent".to_owned(),
        Some("") => "nothing".to_owned(),
        Some(text) => tailbound_core::printable::excerpt(text, 60),
    }
}

/// The machine under a root.
#[derive(Clone, Debug)]
pub struct Machine {
    root: Root,
}

impl Machine {
    /// The machine, or a tree of files.
    #[must_use]
    pub fn new(root: Root) -> Self {
        Self { root }
    }

    /// Ticks since boot. A container may show a /proc/uptime of its own: only a tree of files is read.
    fn ticks(&self) -> Found<u64> {
        let second = hostinfo::ticks_per_second();
        if self.root.is_real() {
            let ns = clock::now_ns(clock::CLOCK_BOOTTIME).unsigned_abs();
            return Ok(ns / (1_000_000_000 / second));
        }
        let text = self.root.read_trimmed("/proc/uptime")?;
        let seconds = text.split(['.', ' ']).next().and_then(|s| s.parse::<u64>().ok());
        seconds
            .map(|s| s * second)
            .ok_or_else(|| Missing::Unknown(format!("/proc/uptime: `{text}`")))
    }

    fn thread(&self, id: &ThreadId) -> Found<threads::Thread> {
        let gone = || Missing::NotApplicable(format!("thread {id} has ended"));
        match threads::thread(&self.root, id.tid) {
            Ok(thread) if thread.start_ticks == id.start_ticks => Ok(thread),
            Ok(_) | Err(Missing::NotApplicable(_)) => Err(gone()),
            Err(why) => Err(why),
        }
    }

    /// Policy, priority, nice value, and whether children inherit it.
    fn policy(&self, id: &ThreadId) -> Found<String> {
        let mut text = with_nice(&self.thread(id)?);
        let resets = |tid: u32| sched::resets_on_fork(tid.cast_signed()).unwrap_or(false);
        if self.root.is_real() && resets(id.tid) {
            text.push_str(RESETS);
        }
        Ok(text)
    }

    fn interrupt(&self, id: &InterruptId) -> Found<CpuSet> {
        let all = interrupts::interrupts(&self.root)?;
        match all.lines.into_iter().find(|l| l.number == id.number) {
            Some(line) if line.chip == id.chip && line.actions == id.actions => line.affinity,
            Some(_) => Err(Missing::NotApplicable(format!(
                "interrupt {} belongs to another device now",
                id.number
            ))),
            None => Err(Missing::NotApplicable(format!("interrupt {id} is gone"))),
        }
    }

    fn setting(&self, path: &str, text: &str) -> Result<(), Refused> {
        let written = File::options()
            .write(true)
            .open(self.root.path(path))
            .and_then(|mut file| file.write_all(format!("{text}\n").as_bytes()));
        written.map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => Refused::Gone(format!("there is no {path}")),
            _ => Refused::Denied(format!(
                "{path}: the kernel refused `{text}`: {e}{}",
                resctrl::reason(&self.root, path)
            )),
        })
    }

    fn group(&self, path: &str, state: &State) -> Result<(), Refused> {
        let full = self.root.path(path);
        // Threads of a program join it one by one, while the others stay where they are.
        let make = || {
            fs::create_dir(&full)?;
            if resctrl::is_inside(path) {
                return Ok(());
            }
            match File::options().write(true).open(full.join("cgroup.type")) {
                Ok(mut kind) => kind.write_all(b"threaded"),
                // A tree of files.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
                Err(e) => Err(e),
            }
        };
        let done = if state.is_some() { make() } else { fs::remove_dir(&full) };
        done.map_err(|e| match e.raw_os_error() {
            Some(libc_errno::EBUSY) => Refused::Denied(format!(
                "{path} has processes or groups in it: end or move them, then undo again"
            )),
            _ => Refused::Denied(format!("{path}: {e}{}", resctrl::reason(&self.root, path))),
        })
    }

    fn file(&self, path: &str, state: &State) -> Result<(), Refused> {
        let full = self.root.path(path);
        let done = match state {
            Some(text) => {
                if let Some(folder) = full.parent() {
                    fs::create_dir_all(folder).map_err(|e| denied(folder, &e))?;
                }
                new_file::write(&full, Existing::Replace, text.as_bytes())
            }
            None => new_file::remove(&full),
        };
        done.map_err(|e| denied(&full, &e))
    }
}

/// Numbers of errno(3) that mean something of their own here.
mod libc_errno {
    pub(super) const EBUSY: i32 = 16;
}

fn denied(path: &Path, e: &std::io::Error) -> Refused {
    Refused::Denied(format!("{}: {e}", path.display()))
}

impl System for Machine {
    fn read(&self, target: &Target) -> Found<State> {
        match target {
            Target::Setting { path, codec } => {
                // Where debugfs is not mounted or locked, absence proves nothing.
                let text = match path.strip_prefix("/sys/kernel/debug/") {
                    Some(below) => self.root.debugfs(below)?,
                    None => self.root.read_trimmed(path)?,
                };
                let state = codec.decode(&text);
                state.map(Some).map_err(|e| Missing::Unknown(format!("{path}: {e}")))
            }
            Target::Affinity(id) => self.thread(id)?.allowed.map(|cpus| Some(cpus.to_string())),
            Target::Policy(id) => self.policy(id).map(Some),
            Target::Interrupt(id) => self.interrupt(id).map(|cpus| Some(cpus.to_string())),
            Target::Group { path } => match fs::symlink_metadata(self.root.path(path)) {
                Ok(found) if found.is_dir() => Ok(Some(found.ino().to_string())),
                Ok(_) => Err(Missing::Unknown(format!("{path} is not a folder"))),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(e) => Err(Missing::Unknown(format!("{path}: {e}"))),
            },
            Target::Holder { name } => holder::state(&self.root, name),
            Target::Coalescing { device } => {
                coalescing::read(&self.root, device).map(|c| Some(coalescing::text(c)))
            }
            Target::Resctrl => resctrl::mounted(&self.root),
            Target::File { path } => match self.root.text(path) {
                Ok(text) => Ok(Some(text)),
                Err(Missing::NotApplicable(_)) => Ok(None),
                Err(why) => Err(why),
            },
        }
    }

    fn write(&mut self, target: &Target, state: &State) -> Result<(), Refused> {
        let value = || {
            state.as_deref().ok_or_else(|| Refused::Denied(format!("{target} cannot be absent")))
        };
        match target {
            Target::Setting { path, codec } => {
                let text =
                    codec.encode(value()?).map_err(|e| Refused::Denied(format!("{path}: {e}")))?;
                self.setting(path, &text)
            }
            Target::Affinity(id) => {
                self.thread(id)?;
                let cpus: CpuSet = parsed(value()?)?;
                let cpus: Vec<u32> = cpus.iter().collect();
                call(sched::set_affinity(id.tid.cast_signed(), &cpus))
            }
            Target::Policy(id) => {
                self.thread(id)?;
                let (text, resets) = match value()?.strip_suffix(RESETS) {
                    Some(text) => (text, true),
                    None => (value()?, false),
                };
                let (tid, wanted) = (id.tid.cast_signed(), attributes(text)?);
                call(if resets {
                    sched::set_without_children(tid, &wanted)
                } else {
                    sched::set(tid, &wanted)
                })
            }
            Target::Interrupt(id) => {
                self.interrupt(id)?;
                self.setting(&format!("/proc/irq/{}/smp_affinity_list", id.number), value()?)
            }
            Target::Group { path } => self.group(path, state),
            Target::Holder { name } => holder::set(&self.root, name, state),
            Target::Coalescing { device } => coalescing::write(&self.root, device, value()?),
            Target::Resctrl => resctrl::mount(&self.root, state),
            Target::File { path } => self.file(path, state),
        }
    }

    fn anchor(&self, target: &Target) -> Option<u64> {
        // The numbers of sysfs and cgroupfs stay with a folder as long as it is there.
        let folder = match target {
            Target::Setting { path, .. } if path.starts_with("/sys/") => {
                path.rsplit_once('/')?.0.to_owned()
            }
            // The name of a device that was unplugged goes to the next one.
            Target::Coalescing { device } => format!("/sys/class/net/{device}"),
            _ => return None,
        };
        fs::metadata(self.root.path(&folder)).ok().map(|m| m.ino())
    }

    fn moment(&self) -> Found<Moment> {
        let lines = interrupts::interrupts(&self.root)?.lines;
        Ok(Moment {
            ticks: self.ticks()?,
            interrupts: lines.iter().map(InterruptId::from).collect(),
        })
    }

    fn threads(&self) -> Found<Vec<threads::Thread>> {
        threads::threads(&self.root)
    }
}

fn call(done: Result<(), tailbound_sys::SysError>) -> Result<(), Refused> {
    done.map_err(|e| Refused::Denied(e.to_string()))
}

fn parsed<T: std::str::FromStr>(text: &str) -> Result<T, Refused>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|e: T::Err| Refused::Denied(e.to_string()))
}

/// `fifo:80`; `other` with the nice value where there is one: `other nice 5`.
pub(crate) fn with_nice(thread: &threads::Thread) -> String {
    match (thread.policy, thread.nice) {
        (Policy::Other | Policy::Batch, nice) if nice != 0 => {
            format!("{}{NICE}{nice}", thread.policy)
        }
        (policy, _) => policy.to_string(),
    }
}

/// The state of a policy as the kernel takes it.
fn attributes(state: &str) -> Result<sched::Attributes, Refused> {
    let (policy, nice) = match state.split_once(NICE) {
        Some((policy, nice)) => (parsed::<Policy>(policy)?, parsed(nice)?),
        None => (parsed::<Policy>(state)?, 0),
    };
    if let Policy::Unknown(word) = policy {
        return Err(Refused::Denied(format!("policy {word} is not known here")));
    }
    Ok(sched::Attributes { nice, ..tailbound_host::attributes(policy) })
}
