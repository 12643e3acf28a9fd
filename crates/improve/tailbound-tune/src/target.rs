// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one step changes, named such that a number used again is not taken for it.
//!
//! Numbers of threads and interrupts are given out again, and a folder of the
//! same name may be another one: so a target carries what tells it from its successor.
//! Not here: reading and writing it (`machine`).

use std::fmt;

use serde::{Deserialize, Serialize};
use tailbound_core::{Policy, printable};
use tailbound_host::interrupts::Interrupt;
use tailbound_host::resctrl as host;
use tailbound_host::threads::Thread;

use crate::coalescing;
use crate::codec::Codec;
use crate::resctrl;

/// Where the CPUs of an interrupt come from that is set up.
pub(crate) const DEFAULT_AFFINITY: &str = "/proc/irq/default_smp_affinity";

/// What is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Target {
    /// A file of /proc or /sys.
    Setting {
        /// Its path.
        path: String,
        /// Its form.
        codec: Codec,
    },
    /// The CPUs of a thread, as a list.
    Affinity(ThreadId),
    /// The policy and priority of a thread, as `fifo:80`, `other`.
    Policy(ThreadId),
    /// The CPUs of an interrupt, as a list.
    Interrupt(InterruptId),
    /// A control group of threads: its inode, or absent.
    Group {
        /// Its folder.
        path: String,
    },
    /// A process of ours that holds a request for short wake-up latencies: its number and start, or absent.
    Holder {
        /// What tells it from other holders.
        name: String,
    },
    /// How long a network device waits for further packets, as ethtool(8) takes it:
    /// `rx-usecs 50 rx-frames 0 adaptive-rx off adaptive-tx off`.
    Coalescing {
        /// Its name.
        device: String,
    },
    /// The resctrl file system: the options with which it is mounted (`plain` without any), or absent.
    Resctrl,
    /// A file that outlives a reboot: its text, or absent.
    File {
        /// Its path.
        path: String,
    },
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadId {
    /// Its number.
    pub tid: u32,
    /// When it began, in ticks since boot.
    pub start_ticks: u64,
    /// Its name, for people.
    pub name: String,
}

/// What of a thread is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ThreadProperty {
    /// Its CPUs.
    Affinity,
    /// Its policy and priority.
    Policy,
}

impl ThreadProperty {
    pub(crate) const ALL: [Self; 2] = [Self::Affinity, Self::Policy];

    /// Of this thread.
    pub(crate) fn of(self, id: ThreadId) -> Target {
        match self {
            Self::Affinity => Target::Affinity(id),
            Self::Policy => Target::Policy(id),
        }
    }
}

impl Target {
    /// The thread, and what of it, where it is one's.
    pub(crate) fn thread(&self) -> Option<(&ThreadId, ThreadProperty)> {
        match self {
            Self::Affinity(id) => Some((id, ThreadProperty::Affinity)),
            Self::Policy(id) => Some((id, ThreadProperty::Policy)),
            _ => None,
        }
    }
}

impl From<&Thread> for ThreadId {
    fn from(thread: &Thread) -> Self {
        Self { tid: thread.tid, start_ticks: thread.start_ticks, name: thread.name.clone() }
    }
}

/// One interrupt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptId {
    /// Its number.
    pub number: u32,
    /// Its controller, with the device's address where it has one.
    pub chip: String,
    /// Who handles it.
    pub actions: Vec<String>,
}

impl From<&Interrupt> for InterruptId {
    fn from(line: &Interrupt) -> Self {
        Self { number: line.number, chip: line.chip.clone(), actions: line.actions.clone() }
    }
}

impl Target {
    /// A file of /proc or /sys.
    #[must_use]
    pub fn setting(path: impl Into<String>, codec: Codec) -> Self {
        Self::Setting { path: path.into(), codec }
    }

    /// Does what was changed outlive a reboot?
    #[must_use]
    pub fn is_persistent(&self) -> bool {
        matches!(self, Self::File { .. })
    }

    /// The commands that bring it from one state to another, for people and scripts.
    #[must_use]
    pub fn shell_between(&self, from: Option<&str>, to: Option<&str>) -> String {
        if let (Self::Coalescing { device }, Some(from), Some(to)) = (self, from, to)
            && let Ok(lines) = coalescing::commands(&quoted(device), from, to)
        {
            return lines;
        }
        self.shell(to)
    }

    /// The command that brings it to `state`, whatever it is now.
    #[must_use]
    pub fn shell(&self, state: Option<&str>) -> String {
        let value = state.unwrap_or_default();
        match self {
            Self::Setting { path, codec } => {
                let written = codec.encode(value).unwrap_or_else(|_| value.to_owned());
                format!("echo {} > {}", quoted(&written), quoted(path))
            }
            Self::Affinity(id) => format!("taskset --pid --cpu-list {value} {}  # {id}", id.tid),
            Self::Policy(id) => format!("{}  # {id}", chrt(value, id.tid)),
            Self::Interrupt(id) => {
                format!(
                    "echo {} > /proc/irq/{}/smp_affinity_list  # {id}",
                    quoted(value),
                    id.number
                )
            }
            Self::Resctrl => match state {
                Some(options) => resctrl::mount_command(options),
                None => format!("umount {}", host::FOLDER),
            },
            Self::Group { path } if resctrl::is_inside(path) => match state {
                Some(_) => format!("mkdir {}", quoted(path)),
                None => format!("rmdir {}", quoted(path)),
            },
            Self::Group { path } => match state {
                Some(_) => {
                    let kind = quoted(&format!("{path}/cgroup.type"));
                    format!("mkdir {}; echo threaded > {kind}", quoted(path))
                }
                None => format!("rmdir {}", quoted(path)),
            },
            Self::Holder { name } => match state {
                Some(_) => "# tailbound holds /dev/cpu_dma_latency open".to_owned(),
                None => format!("# tailbound ends its process that holds {name}"),
            },
            Self::Coalescing { device } => format!("ethtool -C {} {value}", quoted(device)),
            Self::File { path } => match state {
                Some(text) => {
                    let lines: Vec<String> = text.lines().map(quoted).collect();
                    format!("printf '%s\\n' {} > {}", lines.join(" "), quoted(path))
                }
                None => format!("rm {}", quoted(path)),
            },
        }
    }
}

/// Behind the policy of a thread whose children are ordinary ones (SCHED_FLAG_RESET_ON_FORK).
pub(crate) const RESETS: &str = " reset-on-fork";
/// Before the nice value of a thread.
pub(crate) const NICE: &str = " nice ";

/// Commands that give thread `tid` the state of a policy: chrt(1), and renice(1) for a nice value.
fn chrt(state: &str, tid: u32) -> String {
    let (state, resets) = match state.strip_suffix(RESETS) {
        Some(state) => (state, "--reset-on-fork "),
        None => (state, ""),
    };
    let (state, nice) = match state.split_once(NICE) {
        Some((state, nice)) => (state, format!("; renice --priority {nice} --pid {tid}")),
        None => (state, String::new()),
    };
    let policy = match state.parse() {
        Ok(Policy::Fifo(n)) => format!("--fifo --pid {n}"),
        Ok(Policy::Rr(n)) => format!("--rr --pid {n}"),
        Ok(Policy::Deadline { runtime_ns, period_ns }) => format!(
            "--deadline --sched-runtime {runtime_ns} --sched-deadline {period_ns} --sched-period {period_ns} --pid 0"
        ),
        Ok(_) | Err(_) => format!("--{state} --pid 0"),
    };
    format!("chrt {resets}{policy} {tid}{nice}")
}

/// One word of a shell, whatever it holds.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:+=@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.tid, printable::line(&self.name))
    }
}

impl fmt::Display for InterruptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.number, printable::line(&self.actions.join(", ")))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting { path, codec: Codec::Controller(name) | Codec::Schemata(name) } => {
                write!(f, "{path} ({name})")
            }
            Self::Setting { path, .. } | Self::Group { path } | Self::File { path } => {
                f.write_str(path)
            }
            Self::Affinity(id) => write!(f, "CPUs of thread {id}"),
            Self::Policy(id) => write!(f, "policy of thread {id}"),
            Self::Interrupt(id) => write!(f, "CPUs of interrupt {id}"),
            Self::Holder { name } => write!(f, "{name}, held open"),
            Self::Coalescing { device } => write!(f, "coalescing of {}", printable::line(device)),
            Self::Resctrl => write!(f, "mount of {}", host::FOLDER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_pasted() {
        let thp = Target::setting("/sys/kernel/mm/transparent_hugepage/enabled", Codec::Choice);
        assert_eq!(
            thp.shell(Some("never")),
            "echo never > /sys/kernel/mm/transparent_hugepage/enabled"
        );
        let mask = Target::setting("/proc/irq/default_smp_affinity", Codec::Mask);
        assert_eq!(mask.shell(Some("0-1")), "echo 3 > /proc/irq/default_smp_affinity");
        let id = ThreadId { tid: 7, start_ticks: 1, name: "a b".to_owned() };
        assert_eq!(
            Target::Policy(id.clone()).shell(Some("fifo:80")),
            "chrt --fifo --pid 80 7  # 7 (a b)"
        );
        for (state, commands) in [
            ("other", "chrt --other --pid 0 7"),
            ("batch nice -5", "chrt --batch --pid 0 7; renice --priority -5 --pid 7"),
            ("rr:3 reset-on-fork", "chrt --reset-on-fork --rr --pid 3 7"),
            (
                "deadline:1ms/10ms",
                "chrt --deadline --sched-runtime 1000000 --sched-deadline 10000000 --sched-period 10000000 --pid 0 7",
            ),
        ] {
            let shell = Target::Policy(id.clone()).shell(Some(state));
            assert_eq!(shell, format!("{commands}  # 7 (a b)"));
        }
        let file = Target::File { path: "/etc/x".to_owned() };
        assert_eq!(file.shell(Some("a\nit's\n")), "printf '%s\\n' a 'it'\\''s' > /etc/x");
        assert_eq!(file.shell(None), "rm /etc/x");
        let ways = Codec::Schemata("L3".to_owned());
        let ways = Target::setting("/sys/fs/resctrl/schemata", ways);
        assert_eq!(ways.shell(Some("0=ff0")), "echo L3:0=ff0 > /sys/fs/resctrl/schemata");
        assert_eq!(
            [Some("plain"), Some("cdp"), None].map(|s| Target::Resctrl.shell(s)),
            [
                "mount -t resctrl resctrl /sys/fs/resctrl",
                "mount -t resctrl -o cdp resctrl /sys/fs/resctrl",
                "umount /sys/fs/resctrl",
            ]
        );
        let device = Target::Coalescing { device: "eth 0".to_owned() };
        let [old, new] =
            [3, 0].map(|us| format!("rx-usecs {us} rx-frames 0 adaptive-rx off adaptive-tx off"));
        assert_eq!(device.shell_between(Some(&old), Some(&new)), "ethtool -C 'eth 0' rx-usecs 0");
        assert_eq!(file.shell_between(Some("a"), None), "rm /etc/x");
    }
}
