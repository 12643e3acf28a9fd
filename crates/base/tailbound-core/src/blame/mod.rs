// SPDX-License-Identifier: MIT OR Apache-2.0
//! What made a wake-up late: one late sample taken apart into adjoining parts, each with its
//! cause, and what each CPU did meanwhile.
//!
//! Units: ns; times within a record count from the due time of its activation.
//! The parts of a record adjoin and their sum is the latency: what nothing explains is a part
//! too, with the cause `unexplained`.
//! Not here: how the parts are found (`tailbound-trace`), pictures of them (`tailbound-report`).

mod cause;
mod interrupted;
mod kernel_kind;
mod ranking;
mod remedy;
mod stack;

pub use cause::{Activity, Cause, Phase, Sureness};
pub use interrupted::{Interrupted, OnCpu, Sender, TimeTotals};
pub use kernel_kind::KernelKind;
pub use ranking::{Culprit, Ranking, SampleKind, without_numbers};
pub use remedy::Remedy;

use serde::{Deserialize, Serialize};

/// One late wake-up, taken apart: a line `blame` of the run file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlameRecord {
    /// Which measured thread, by its place in the plan; 0 for a thread of somebody else's.
    pub thread: u32,
    /// The thread's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// When the activation fell due, on the run's clock.
    pub t_ns: i64,
    /// How late it was served.
    pub latency_ns: i64,
    /// The CPU that served it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// The latency in adjoining parts, in the order of time.
    pub parts: Vec<BlamePart>,
    /// What happened, in sentences, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<String>,
    /// What each CPU did from shortly before the due time to the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<BlameLane>,
    /// What recording the events within the latency cost, by the measured cost of one: the sum of
    /// the parts `tracing`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tracing_ns: i64,
    /// A near miss: above half of the limit that was asked for, and not above it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub near: bool,
    /// Events of this time were lost: a part may have another cause than it says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &i64) -> bool {
    *n == 0
}

/// A part of a latency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlamePart {
    /// Where on the way from the timer to the thread.
    pub phase: Phase,
    /// Its begin, since the due time.
    pub from_ns: i64,
    /// Its length.
    pub ns: i64,
    /// What the time went to.
    pub cause: Cause,
    /// Who, as the kernel names it: a thread, an interrupt, a function. Empty where there is nobody.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub who: String,
    /// How sure that is.
    #[serde(default)]
    pub sureness: Sureness,
    /// Functions of the kernel, where they were recorded: the place first, then who called it; the last may be
    /// `(system call NAME)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
    /// Who had the lock that was waited for, and who had the one that that thread waited for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub holder: String,
}

/// What one CPU did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlameLane {
    /// Which.
    pub cpu: u32,
    /// In the order of time; nothing is known of the gaps. What interrupts lies over what it
    /// interrupted: such spans lie within an earlier one of the same lane.
    pub spans: Vec<BlameSpan>,
}

/// What a CPU did for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlameSpan {
    /// Its begin, since the due time; negative before it.
    pub from_ns: i64,
    /// Its end.
    pub to_ns: i64,
    /// What kind of work.
    pub activity: Activity,
    /// Which, as the kernel names it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub who: String,
}

impl BlameRecord {
    /// Is it a stretch of the kernel's code, and no wake-up?
    #[must_use]
    pub fn is_section(&self) -> bool {
        self.parts.iter().any(|p| p.phase == Phase::Section)
    }

    /// The cause with the largest share, and who; the kernel's ordinary way and the thread's own
    /// work count only where nothing else is there.
    #[must_use]
    pub fn culprit(&self) -> (Cause, &str) {
        let mut sums: Vec<(Cause, &str, i64)> = Vec::new();
        for part in &self.parts {
            match sums.iter_mut().find(|(c, w, _)| *c == part.cause && *w == part.who) {
                Some((.., ns)) => *ns = ns.saturating_add(part.ns),
                None => sums.push((part.cause, &part.who, part.ns)),
            }
        }
        let most = |foreign: bool| {
            let fits = |c: &Cause| !foreign || c.is_foreign();
            sums.iter().filter(|(c, ..)| fits(c)).max_by_key(|(.., ns)| *ns).copied()
        };
        let own: i64 = sums
            .iter()
            .filter(|(c, ..)| !c.is_foreign())
            .fold(0, |sum, (.., ns)| sum.saturating_add(*ns));
        match (most(true), most(false)) {
            // A few ns of somebody's are not what made it late.
            (Some((cause, who, ns)), _) if ns.saturating_mul(4) >= own => (cause, who),
            (_, Some((cause, who, _))) => (cause, who),
            _ => (Cause::Unexplained, ""),
        }
    }

    /// How much of the latency went to `cause` and `who`.
    #[must_use]
    pub fn share_ns(&self, cause: Cause, who: &str) -> i64 {
        let fits = |p: &&BlamePart| p.cause == cause && p.who == who;
        self.parts.iter().filter(fits).map(|p| p.ns).fold(0, i64::saturating_add)
    }

    /// How sure the largest part of `cause` and `who` is.
    #[must_use]
    pub fn sureness(&self, cause: Cause, who: &str) -> Sureness {
        let fits = |p: &&BlamePart| p.cause == cause && p.who == who;
        self.parts.iter().filter(fits).max_by_key(|p| p.ns).map_or(Sureness::Unsure, |p| p.sureness)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn record(latency_ns: i64, parts: &[(Cause, &str, i64)]) -> BlameRecord {
        let mut from_ns = 0;
        let part = |&(cause, who, ns): &(Cause, &str, i64)| {
            let part = BlamePart {
                phase: Phase::Switch,
                from_ns,
                ns,
                cause,
                who: who.to_owned(),
                sureness: Sureness::Sure,
                stack: Vec::new(),
                holder: String::new(),
            };
            from_ns += ns;
            part
        };
        let parts = parts.iter().map(part).collect();
        BlameRecord { latency_ns, cpu: Some(0), parts, ..BlameRecord::default() }
    }

    #[test]
    fn the_culprit_is_who_took_most_of_it_together() {
        let late = record(
            100,
            &[
                (Cause::Interrupt, "eth0", 30),
                (Cause::NotPreemptible, "cc1", 40),
                (Cause::Interrupt, "eth0", 20),
                (Cause::WakeUp, "", 10),
            ],
        );
        assert_eq!(late.culprit(), (Cause::Interrupt, "eth0"));
        assert_eq!(late.share_ns(Cause::Interrupt, "eth0"), 50);
        let way = record(100, &[(Cause::Interrupt, "timer", 3), (Cause::WakeUp, "", 97)]);
        assert_eq!(way.culprit(), (Cause::WakeUp, ""), "three of a hundred made nobody late");
        assert_eq!(record(0, &[]).culprit(), (Cause::Unexplained, ""));
    }

    #[test]
    fn a_record_is_read_back_as_it_was() -> Result<(), serde_json::Error> {
        let late = record(10, &[(Cause::LockSpin, "hackbench", 10)]);
        let text = serde_json::to_string(&late)?;
        assert!(text.contains("\"lock-spin\"") && !text.contains("tracing_ns"), "{text}");
        assert_eq!(serde_json::from_str::<BlameRecord>(&text)?, late);
        Ok(())
    }
}
