// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where in the kernel a part's time went, from a stack of its functions.
//!
//! A stack has the place first, then who called it, and on.

use super::{BlamePart, Cause};

/// Functions that give a lock back, enable interrupts or let the scheduler in: the place is who called them.
const LETS_GO: [&str; 10] = [
    "_raw_",
    "__raw_",
    "__local_bh_enable",
    "local_bh_enable",
    "rcu_read_unlock",
    "__rcu_read_unlock",
    "preempt_count_sub",
    "mutex_unlock",
    "migrate_enable",
    "rt_spin_unlock",
];
/// What the functions of system calls are called before the name of the call.
const CALLS: [&str; 5] = ["__x64_sys_", "__ia32_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_"];
/// What stands behind the functions where the call is known by its number alone.
const CALL_TOLD: (&str, &str) = ("(system call ", ")");
/// The last function of a way into the kernel has no place of its own: the thread was on its way back.
const BACK: [&str; 8] = [
    "exit_to_user_mode",
    "do_syscall_64",
    "entry_SYSCALL",
    "syscall_exit_to_user_mode",
    "irqentry_exit_to_user_mode",
    "do_el0_svc",
    "el0_",
    "ret_from_fork",
];

impl BlamePart {
    /// The function that kept others off: the first that does not merely let go.
    #[must_use]
    pub fn place(&self) -> Option<&str> {
        let lets_go = |f: &&String| LETS_GO.iter().any(|l| f.starts_with(l));
        let place = self.stack.iter().find(|f| !lets_go(f)).or(self.stack.first());
        place.map(String::as_str)
    }

    /// The system call that the stack lies in: by its function, or by its number, which stands behind the functions.
    #[must_use]
    pub fn system_call(&self) -> Option<&str> {
        let told = |f: &&String| f.starts_with(CALL_TOLD.0) && f.ends_with(CALL_TOLD.1);
        let by_number = self.stack.last().filter(told);
        let by_number =
            by_number.and_then(|f| f.strip_prefix(CALL_TOLD.0)?.strip_suffix(CALL_TOLD.1));
        let by_function = |f: &'_ String| CALLS.iter().find(|c| f.starts_with(*c)).map(|c| c.len());
        by_number.or_else(|| self.stack.iter().find_map(|f| f.get(by_function(f)?..)))
    }

    /// The stack is in this system call.
    pub fn in_system_call(&mut self, call: &str) {
        if self.system_call().is_none() {
            self.stack.push(format!("{}{call}{}", CALL_TOLD.0, CALL_TOLD.1));
        }
    }

    /// What the time went to, in words: cause, who, where in the kernel, and who had the lock.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut out = self.cause.sentence(&self.who);
        if let Some(place) = self.place() {
            let back = BACK.iter().any(|b| place.starts_with(b));
            match (self.cause, back) {
                (_, true) => out.push_str(", until its return to user mode"),
                (Cause::InterruptsOff, _) => out.push_str(&format!(" at {place}")),
                _ => out.push_str(&format!(", in {place}")),
            }
            if let Some(call) = self.system_call() {
                out.push_str(&format!(" (system call {call})"));
            }
        }
        if !self.holder.is_empty() {
            out.push_str(&format!(", waiting for a lock that {} had", self.holder));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blame::{Phase, Sureness};

    fn part(cause: Cause, stack: &[&str]) -> BlamePart {
        BlamePart {
            phase: Phase::Switch,
            from_ns: 0,
            ns: 1,
            cause,
            who: "cc1-7".to_owned(),
            sureness: Sureness::Sure,
            stack: stack.iter().map(|f| (*f).to_owned()).collect(),
            holder: String::new(),
        }
    }

    #[test]
    fn the_place_is_who_let_go_and_the_call_is_named() {
        let p = part(
            Cause::InterruptsOff,
            &[
                "_raw_spin_unlock_irqrestore",
                "sock_def_readable",
                "__x64_sys_write",
                "do_syscall_64",
            ],
        );
        assert_eq!(p.place(), Some("sock_def_readable"));
        assert_eq!(
            p.sentence(),
            "interrupts disabled in cc1-7 at sock_def_readable (system call write)"
        );
        let p = part(Cause::NotPreemptible, &["copy_page", "__x64_sys_clone"]);
        assert_eq!(
            p.sentence(),
            "kernel code that cannot be preempted, of cc1-7, in copy_page (system call clone)"
        );
    }

    #[test]
    fn without_a_stack_nothing_is_claimed() {
        assert_eq!(part(Cause::Softirq, &[]).sentence(), Cause::Softirq.sentence("cc1-7"));
        let p = part(Cause::NotPreemptible, &["exit_to_user_mode_loop", "do_syscall_64"]);
        assert!(
            p.sentence().ends_with("of cc1-7, until its return to user mode"),
            "{}",
            p.sentence()
        );
        let mut p = part(Cause::NotPreemptible, &["exit_to_user_mode_loop", "do_syscall_64"]);
        p.in_system_call("write");
        assert_eq!(p.system_call(), Some("write"));
        assert!(p.sentence().ends_with("until its return to user mode (system call write)"));
        let mut p = part(Cause::Blocked, &[]);
        p.holder = "low-9".to_owned();
        assert_eq!(p.sentence(), "asleep cc1-7, waiting for a lock that low-9 had");
    }
}
