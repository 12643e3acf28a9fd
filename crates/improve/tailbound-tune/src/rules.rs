// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for threads and services: who gets which policy and which CPUs.
//!
//! A rule for threads counts for those that are there now, interrupt threads
//! among them (`irq/24-eth0`); one for a service is a drop-in of systemd and counts at its next
//! start. Source: sched(7), systemd.exec(5).

use serde::{Deserialize, Serialize};
use tailbound_core::cpus::ParseCpusError;
use tailbound_core::policy::ParsePolicyError;
use tailbound_core::{CpuSet, Policy};
use tailbound_host::Missing;
use tailbound_host::interrupts::Interrupt;
use tailbound_host::threads::Thread;

use crate::facts::Facts;
use crate::settings::{Draft, Omission, OnRefusal};
use crate::target::{InterruptId, Target, ThreadId};

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// It is about CPUs for real-time work, and none are named.
    #[error("`rt` needs CPUs for real-time work: name them with --rt-cpus LIST")]
    NoRtCpus,
    /// Its CPUs.
    #[error(transparent)]
    Cpus(#[from] ParseCpusError),
    /// Its policy.
    #[error(transparent)]
    Policy(#[from] ParsePolicyError),
    /// A policy that only the program itself can ask for.
    #[error("{0}: a deadline is for the program itself to ask for")]
    Deadline(String),
    /// What it is about cannot be read.
    #[error("{}", .0.reason())]
    Unread(Missing),
    /// Its name is none of a service.
    #[error("not the name of a service, which ends in .service")]
    NoService,
    /// Nobody starts services so here.
    #[error("this machine does not run systemd")]
    NoSystemd,
}

/// Threads of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadRule {
    /// Name of the threads; `*` stands for any characters. One of `name` and `number` is given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The number of one thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// `fifo:80`, `rr:10`, `other`, `batch`, `idle`.
    pub policy: Option<String>,
    /// `rt`, `housekeeping` or a list.
    pub cpus: Option<String>,
}

/// Interrupts of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterruptRule {
    /// Its number, or who handles it; `*` stands for any characters.
    pub name: String,
    /// `rt`, `housekeeping` or a list.
    pub cpus: String,
}

/// A service of systemd.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceRule {
    /// `chrony.service`
    pub name: String,
    /// `fifo:80`, `rr:10`, `other`, `batch`, `idle`.
    pub policy: Option<String>,
    /// `rt`, `housekeeping` or a list.
    pub cpus: Option<String>,
}

/// Does `pattern`, in which `*` stands for any characters, describe `name`?
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

/// Plans the rules for threads.
///
/// # Errors
/// What is wrong with a rule.
pub(crate) fn threads(draft: &mut Draft<'_>, rules: &[ThreadRule]) -> Result<(), RuleError> {
    for rule in rules {
        draft.begin("thread");
        let policy = rule.policy.as_deref().map(policy_of).transpose()?;
        let cpus = rule.cpus.as_deref().map(|c| cpus_of(draft.facts, c)).transpose()?;
        let all = match &draft.facts.threads {
            Ok(all) => all,
            Err(why) => return Err(RuleError::Unread(why.clone())),
        };
        let mut found = false;
        for thread in all.iter().filter(|t| rule.means(t)) {
            found = true;
            let id = ThreadId::from(thread);
            if let Some(policy) = policy {
                if matches!(thread.policy, Policy::Deadline { .. } | Policy::Unknown(_)) {
                    draft.leave_out(
                        format!("thread {id} has policy {}", thread.policy),
                        Omission::Wanting,
                    );
                } else {
                    draft.change(
                        Target::Policy(id.clone()),
                        Some(policy.to_string()),
                        OnRefusal::Skip,
                    );
                }
            }
            if let Some(cpus) = &cpus {
                if thread.fixed {
                    draft.leave_out(format!("thread {id} cannot be moved"), Omission::Wanting);
                } else {
                    draft.change(Target::Affinity(id), Some(cpus.to_string()), OnRefusal::Skip);
                }
            }
        }
        if !found {
            draft.leave_out(format!("there is no thread {}", rule.label()), Omission::Wanting);
        }
    }
    Ok(())
}

impl ThreadRule {
    fn means(&self, thread: &Thread) -> bool {
        match self.number {
            Some(number) => number == thread.tid,
            None => matches(&self.name, &thread.name),
        }
    }

    fn label(&self) -> String {
        self.number.map_or_else(|| self.name.clone(), |n| n.to_string())
    }
}

/// Plans the rules for interrupts.
///
/// # Errors
/// What is wrong with a rule.
pub(crate) fn interrupts(draft: &mut Draft<'_>, rules: &[InterruptRule]) -> Result<(), RuleError> {
    for rule in rules {
        draft.begin("interrupt");
        let cpus = cpus_of(draft.facts, &rule.cpus)?;
        let all = match &draft.facts.interrupts {
            Ok(all) => all,
            Err(why) => return Err(RuleError::Unread(why.clone())),
        };
        let meant = |line: &&Interrupt| {
            matches(&rule.name, &line.number.to_string())
                || line.actions.iter().any(|a| matches(&rule.name, a))
        };
        let mut found = false;
        for line in all.lines.iter().filter(meant) {
            found = true;
            let id = InterruptId::from(line);
            if line.managed == Ok(true) {
                draft.leave_out(
                    format!("interrupt {id} is managed by the kernel, which alone moves it"),
                    Omission::Wanting,
                );
            } else {
                draft.change(Target::Interrupt(id), Some(cpus.to_string()), OnRefusal::Undo);
            }
        }
        if !found {
            draft.leave_out(format!("there is no interrupt {}", rule.name), Omission::Wanting);
        }
    }
    Ok(())
}

/// Plans the rules for services.
pub(crate) fn services(draft: &mut Draft<'_>, rules: &[ServiceRule]) {
    for rule in rules {
        draft.begin("service");
        let drop_in = drop_in(draft, rule);
        match drop_in {
            Ok((path, text)) => draft.change(Target::File { path }, Some(text), OnRefusal::Undo),
            Err(why) => draft.leave_out(format!("{}: {why}", rule.name), Omission::Wanting),
        }
    }
}

/// Path and text of a drop-in of systemd.
fn drop_in(draft: &Draft<'_>, rule: &ServiceRule) -> Result<(String, String), RuleError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.@:".contains(c);
    if !rule.name.chars().all(plain)
        || !rule.name.ends_with(".service")
        || rule.name.starts_with('.')
    {
        return Err(RuleError::NoService);
    }
    if !draft.facts.root.exists("/run/systemd/system") {
        return Err(RuleError::NoSystemd);
    }
    let mut text = format!("{}\n[Service]\n", crate::boot::MARK);
    if let Some(policy) = &rule.policy {
        let policy = policy_of(policy)?;
        let word = match policy {
            Policy::Fifo(_) => "fifo",
            Policy::Rr(_) => "rr",
            Policy::Batch => "batch",
            Policy::Idle => "idle",
            _ => "other",
        };
        text.push_str(&format!("CPUSchedulingPolicy={word}\n"));
        if policy.is_realtime() {
            text.push_str(&format!("CPUSchedulingPriority={}\n", policy.priority()));
        }
    }
    if let Some(cpus) = &rule.cpus {
        text.push_str(&format!("CPUAffinity={}\n", cpus_of(draft.facts, cpus)?));
    }
    Ok((format!("/etc/systemd/system/{}.d/50-tailbound.conf", rule.name), text))
}

/// CPUs of a rule: `rt`, `housekeeping`, or a list.
fn cpus_of(facts: &Facts, text: &str) -> Result<CpuSet, RuleError> {
    match text {
        "rt" if facts.rt.is_empty() => Err(RuleError::NoRtCpus),
        "rt" => Ok(facts.rt.clone()),
        "housekeeping" => Ok(facts.housekeeping.clone()),
        list => Ok(list.parse::<CpuSet>()?),
    }
}

/// A policy of a rule that the kernel can be given.
fn policy_of(text: &str) -> Result<Policy, RuleError> {
    match text.parse::<Policy>()? {
        Policy::Deadline { .. } => Err(RuleError::Deadline(text.to_owned())),
        policy => Ok(policy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, name, want) in [
            ("irq/*-eth0", "irq/24-eth0", true),
            ("irq/*-eth0", "irq/24-eth01", false),
            ("ksoftirqd/1", "ksoftirqd/1", true),
            ("ksoftirqd/1", "ksoftirqd/10", false),
            ("*", "", true),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "a--c--b", false),
            ("a*a", "a", false),
            ("ä*", "äb", true),
        ] {
            assert_eq!(matches(pattern, name), want, "{pattern} {name}");
        }
    }
}
