// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a real-time program must not do: the rules, and what was seen of each that was broken.
//!
//! Units: ns; times count from the begin of the recording.
//! Not here: how violations are found (`tailbound-trace`), how stacks are taken (`tailbound-record`).
//! Source: Documentation/trace/rv/monitor_rtapp.rst for the first three rules; docs/rules.md.

use serde::{Deserialize, Serialize};

use crate::blame::Remedy;
use crate::units::format_ns_i64;
use crate::words::open_words;

open_words! {
    /// A rule for real-time programs.
    Rule {
        /// No page fault in a real-time thread (the kernel's monitor `pagefault`).
        PageFault = "page-fault",
        /// Sleep only by means that are safe for real-time (the kernel's monitor `sleep`).
        SleepMethod = "sleep-method",
        /// Be woken by nobody of lower priority (the kernel's monitor `sleep`).
        LowPriorityWaker = "low-priority-waker",
        /// No contended lock without priority inheritance.
        NonPiLock = "non-pi-lock",
        /// Neither take memory from the kernel nor give it back within a cycle.
        Allocation = "allocation",
        /// No system call within a cycle that gives up the CPU and cannot be interrupted.
        BlockingCall = "blocking-call",
        /// No link of a chain of threads has a lower priority than those on both sides of it.
        PipelineOrder = "pipeline-order",
        /// A real-time policy that was refused is not passed over.
        PolicyRefused = "policy-refused",
    }
}

const fn remedy(text: &'static str, check: &'static str) -> Remedy {
    Remedy { text, check: Some(check), setting: None }
}

const fn only(text: &'static str) -> Remedy {
    Remedy { text, check: None, setting: None }
}

/// Calls that can wait until something else has taken what they put out.
pub const OUTPUT_CALLS: &[&str] = &[
    "write",
    "writev",
    "pwrite64",
    "pwritev",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "fsync",
    "fdatasync",
    "sync",
    "mq_timedsend",
    "msgsnd",
];

/// What a thread slept in, by the first word of a place, and what to do instead.
const SLEEPS: &[(&[&str], &str)] = &[
    (
        &["nanosleep", "clock_nanosleep", "usleep"],
        "wait for time with clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME)",
    ),
    (
        OUTPUT_CALLS,
        "never wait for whoever takes what is written: hand it to an ordinary thread through memory that both share, or make the descriptor non-blocking (O_NONBLOCK) and drop what does not fit",
    ),
    (
        &[
            "read", "readv", "pread64", "recvfrom", "recvmsg", "recvmmsg", "accept", "accept4",
            "poll", "ppoll", "select", "pselect6",
        ],
        "wait with epoll_wait, or on a futex (condition variable, PI mutex) that a thread of at least this priority wakes, and then read without blocking",
    ),
    (
        &["in", "at"],
        "find out who holds the thread: a seccomp notifier, a tracer (ptrace) or the freezer of its control group; no call of its own sleeps there",
    ),
];

impl Rule {
    /// What to do about it at a place, as `ViolationRecord::site` names it.
    #[must_use]
    pub fn remedy_at(&self, site: &str) -> Option<Remedy> {
        let first = site.split([' ', ',']).next().unwrap_or_default();
        let known = SLEEPS.iter().find(|(names, _)| names.contains(&first));
        match (self, known) {
            (Self::SleepMethod, Some((_, text))) => Some(only(text)),
            (Self::SleepMethod, None) => Some(only(
                "wait for others with a futex (condition variable, PI mutex) or epoll_wait",
            )),
            _ => self.remedy(),
        }
    }

    /// Every rule.
    pub const ALL: &'static [Self] = &[
        Self::PageFault,
        Self::SleepMethod,
        Self::LowPriorityWaker,
        Self::NonPiLock,
        Self::Allocation,
        Self::BlockingCall,
        Self::PipelineOrder,
        Self::PolicyRefused,
    ];

    /// What was seen, for the head of a table or a sentence.
    #[must_use]
    pub fn phrase(&self) -> &str {
        match self {
            Self::PageFault => "page faults in real-time threads",
            Self::SleepMethod => "sleeps by means that are not safe for real-time",
            Self::LowPriorityWaker => "real-time threads woken by something of lower priority",
            Self::NonPiLock => "contended locks without priority inheritance",
            Self::Allocation => "memory taken from or given back to the kernel within a cycle",
            Self::BlockingCall => "system calls within a cycle that gave up the CPU",
            Self::PipelineOrder => "links of a chain with a lower priority than both sides",
            Self::PolicyRefused => "real-time policies that were refused and done without",
            Self::Unknown(word) => word.as_str(),
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::PageFault => remedy(
                "lock the program's memory before the cycles begin (mlockall(MCL_CURRENT|MCL_FUTURE)) and touch stacks and heaps once",
                "app.mlock",
            ),
            Self::SleepMethod => only(
                "wait for time with clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME), for others with a futex (condition variable, PI mutex) or epoll_wait",
            ),
            Self::LowPriorityWaker => remedy(
                "give the waking thread at least the priority of the one it wakes, or protect what both share by a mutex with PTHREAD_PRIO_INHERIT",
                "sched.prio-order",
            ),
            Self::NonPiLock => {
                only("create the mutex with PTHREAD_PRIO_INHERIT (pthread_mutexattr_setprotocol)")
            }
            Self::Allocation => remedy(
                "allocate before the cycles begin; keep malloc from giving memory back (mallopt: M_TRIM_THRESHOLD=-1, M_MMAP_MAX=0)",
                "app.mlock",
            ),
            Self::BlockingCall => only(
                "hand files, logs and devices to an ordinary thread through memory that both share",
            ),
            Self::PipelineOrder => remedy(
                "give every thread of the chain at least the lower of the priorities on both sides of it",
                "sched.prio-order",
            ),
            Self::PolicyRefused => remedy(
                "allow the user real-time priorities (RLIMIT_RTPRIO or CAP_SYS_NICE), and end the program where they are refused",
                "app.limits",
            ),
            Self::Unknown(_) => return None,
        })
    }
}

open_words! {
    /// How a stack was read.
    #[derive(Default)]
    StackMethod {
        /// It was not.
        #[default]
        None = "none",
        /// By the tables that compilers write for exceptions (.eh_frame, DWARF).
        Dwarf = "dwarf",
        /// By the chain of frame pointers.
        FramePointers = "frame-pointers",
        /// Some frames by the tables, some by frame pointers.
        Mixed = "mixed",
    }
}

/// A user stack, the innermost function first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// How it was read.
    pub method: StackMethod,
    /// `function+0x1f (module)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<String>,
    /// Why there is none, or why it ends where it does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Stack {
    /// None, because of this.
    #[must_use]
    pub fn absent(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..Self::default() }
    }
}

/// What a violation cost the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// How long; absent where nothing tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns: Option<i64>,
    /// It is a limit: the time contains something else as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_most: bool,
}

impl Cost {
    /// So long.
    #[must_use]
    pub fn exact(ns: i64) -> Self {
        Self { ns: Some(ns), at_most: false }
    }

    /// No longer than this.
    #[must_use]
    pub fn at_most(ns: i64) -> Self {
        Self { ns: Some(ns), at_most: true }
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.ns {
            None => f.pad("-"),
            Some(ns) if self.at_most => f.pad(&format!("≤ {}", format_ns_i64(ns))),
            Some(ns) => f.pad(&format_ns_i64(ns)),
        }
    }
}

/// One time that a rule was broken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occurrence {
    /// When.
    pub t_ns: i64,
    /// What it cost.
    #[serde(default)]
    pub cost: Cost,
    /// What happened, in a sentence.
    pub text: String,
    /// Where in the program.
    #[serde(default)]
    pub stack: Stack,
}

/// A rule that was broken at one place: a line `violation` of the run file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViolationRecord {
    /// Which rule.
    pub rule: Rule,
    /// The thread's number.
    pub tid: i32,
    /// The thread's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The system call or fault, and the function of the program where its stack is known.
    pub site: String,
    /// How often.
    pub n: u64,
    /// The costs together, of those that are known.
    #[serde(default)]
    pub total: Cost,
    /// The first time.
    pub first: Occurrence,
    /// The most expensive time.
    pub worst: Occurrence,
}

/// The answer in one sentence.
#[must_use]
pub fn sentence(records: &[ViolationRecord]) -> String {
    let all: u64 = records.iter().map(|r| r.n).fold(0, u64::saturating_add);
    let Some(most) = records.iter().max_by_key(|r| (r.worst.cost.ns.unwrap_or(-1), r.n)) else {
        return "no rule for real-time programs was broken in what was seen".to_owned();
    };
    let places = match records.len() {
        1 => "one place".to_owned(),
        n => format!("{n} places"),
    };
    let times = if all == 1 { "once".to_owned() } else { format!("{all} times") };
    format!(
        "rules for real-time programs were broken {times} at {places}; worst: {}",
        most.worst.text
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_its_word_a_phrase_and_a_remedy() {
        assert_eq!(Rule::ALL.len(), Rule::WORDS.len());
        for (rule, word) in Rule::ALL.iter().zip(Rule::WORDS) {
            assert_eq!(rule.as_str(), *word);
            assert!(!rule.phrase().is_empty() && rule.remedy().is_some());
        }
        assert_eq!(Rule::of("newer").remedy(), None);
    }

    #[test]
    fn advice_is_about_the_call_that_slept() {
        let text = |site| Rule::SleepMethod.remedy_at(site).expect("a remedy").text;
        assert!(text("write, descriptor 4 in log").contains("O_NONBLOCK"));
        assert!(!text("write, descriptor 4").contains("clock_nanosleep"));
        assert!(text("nanosleep").contains("TIMER_ABSTIME"));
        assert!(text("in no system call").contains("seccomp"));
        assert!(!text("ioctl, descriptor 3").contains("nanosleep"));
        assert_eq!(Rule::NonPiLock.remedy_at("futex"), Rule::NonPiLock.remedy());
    }

    #[test]
    fn costs_say_what_they_are() {
        assert_eq!(Cost::default().to_string(), "-");
        assert_eq!(Cost::exact(1500).to_string(), format_ns_i64(1500));
        assert!(Cost::at_most(1500).to_string().starts_with('≤'));
        assert_eq!(sentence(&[]), "no rule for real-time programs was broken in what was seen");
    }
}
