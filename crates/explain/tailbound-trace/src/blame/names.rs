// SPDX-License-Identifier: MIT OR Apache-2.0
//! What people call threads, interrupts and functions.
//!
//! No address of the kernel is ever part of a name.

use super::cpu::{CpuActivity, Segment};
use super::engine::Engine;

/// How long before its begin an interrupt from another CPU may have been sent.
const SENT_BEFORE_NS: u64 = 10_000_000;
/// Source: softirq_to_name in kernel/softirq.c.
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

impl Engine {
    /// `hackbench-3975`.
    pub(crate) fn thread_name(&self, pid: i32) -> String {
        match self.threads.get(&pid) {
            _ if pid == 0 => "idle".to_owned(),
            _ if pid < 0 => String::new(),
            Some(t) if !t.comm.as_str().is_empty() => format!("{}-{pid}", t.comm),
            _ => format!("thread {pid}"),
        }
    }

    /// The kernel's function at an address.
    pub(super) fn function(&self, address: u64) -> &str {
        self.symbols.name(address).unwrap_or("(function without a name)")
    }

    /// Who runs in a segment.
    pub(super) fn who(&self, cpu: u32, s: &Segment) -> String {
        match s.what {
            CpuActivity::Unknown => String::new(),
            CpuActivity::Idle(Some(state)) => format!("state {state}"),
            CpuActivity::Idle(None) => String::new(),
            CpuActivity::Thread | CpuActivity::Spin(_) => self.thread_name(s.pid),
            CpuActivity::Work(function) => {
                format!("{} {}", self.thread_name(s.pid), self.function(function))
            }
            CpuActivity::Irq(irq) => match self.interrupts.get(&irq) {
                Some(name) => format!("{irq} {name}"),
                None => irq.to_string(),
            },
            CpuActivity::Timer(0) => String::new(),
            CpuActivity::Timer(function) => self.function(function).to_owned(),
            CpuActivity::Ipi(name, function) => self.ipi(cpu, s, name, function),
            CpuActivity::Vector(name) => name.to_owned(),
            CpuActivity::Softirq(vec) => SOFTIRQS
                .get(vec as usize)
                .map_or_else(|| format!("number {vec}"), |name| (*name).to_owned()),
            CpuActivity::Nmi(handler) => self.function(handler).to_owned(),
        }
    }

    /// An interrupt from another CPU, with the function and who sent it, where told.
    fn ipi(&self, cpu: u32, s: &Segment, name: &str, function: u64) -> String {
        let mut text = name.to_owned();
        let bit = 1u64.checked_shl(cpu).unwrap_or(0);
        // One that asks for a function names what is called for it, one to reschedule nothing.
        let calls = name == "function call";
        let before = self.sent.partition_point(|sent| sent.t_ns <= s.from);
        let sent = self
            .sent
            .range(..before)
            .rev()
            .take_while(|sent| s.from.saturating_sub(sent.t_ns) < SENT_BEFORE_NS)
            .find(|sent| sent.to & bit != 0 && sent.from != cpu && (sent.callback != 0) == calls);
        let asked = match (function, sent) {
            (0, Some(sent)) => self.symbols.name(sent.callback),
            (0, None) => None,
            (function, _) => Some(self.function(function)),
        };
        if let Some(asked) = asked {
            text = match purpose(asked) {
                Some(purpose) => format!("{text} {asked} ({purpose})"),
                None => format!("{text} {asked}"),
            };
        }
        match sent {
            Some(sent) => {
                let by = self.symbols.name(sent.callsite);
                let by = by.map_or_else(String::new, |f| format!(" in {f}"));
                format!("{text} from {}{by}", self.thread_name(sent.pid))
            }
            None => text,
        }
    }
}

/// What a function is called on other CPUs for, where its name does not say it.
/// Source: kernel/sched/membarrier.c, arch/x86/mm/tlb.c, arch/x86/kernel/{alternative,process}.c,
/// kernel/events/core.c, kernel/rcu/tree_exp.h.
fn purpose(function: &str) -> Option<&'static str> {
    Some(match function {
        "ipi_mb" | "ipi_sync_core" | "ipi_rseq" | "ipi_sync_rq_state" => "membarrier",
        "flush_tlb_func" | "do_flush_tlb_all" | "flush_tlb_func_remote" => "TLB flush",
        "do_kernel_range_flush" => "TLB flush of the kernel's memory",
        "do_sync_core" => "the kernel's code was changed",
        "remote_function" | "__perf_event_enable" | "__perf_event_read" => "perf",
        "rcu_exp_handler" => "expedited RCU",
        "do_nothing" => "wait until it has left the kernel",
        _ => return None,
    })
}
