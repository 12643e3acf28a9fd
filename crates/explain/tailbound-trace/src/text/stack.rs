// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's functions below a record, ` => function`, without those that recorded them.

/// Functions of the tracing itself, by how their names begin.
const RECORDS: [&str; 16] = [
    "__ftrace_trace_stack",
    "ftrace_trace_stack",
    "__trace_stack",
    "probe_wakeup",
    "wakeup_sched",
    "trace_hardirqs",
    "tracer_hardirqs",
    "trace_preempt_",
    "tracer_preempt_",
    "time_hardirqs",
    "stop_critical_timing",
    "start_critical_timing",
    "check_critical_timing",
    "trace_event_",
    "__traceiter_",
    "function_stack_trace_call",
];
/// Most functions that are kept.
pub(super) const FRAMES_MAX: usize = 64;
/// Callers in a sentence.
const CALLERS: usize = 2;

/// The functions through which the kernel was entered, where a call's name follows.
const CALLS: [&str; 8] = [
    "__x64_sys_",
    "__ia32_sys_",
    "__arm64_sys_",
    "__riscv_sys_",
    "__se_sys_",
    "__do_sys_",
    "SyS_",
    "sys_",
];

/// The function of a line ` => function` or `-> function`.
pub(super) fn frame(line: &str) -> Option<&str> {
    let line = line.trim();
    let name = line.strip_prefix("=>").or_else(|| line.strip_prefix("->"))?.trim();
    let name = name.split(['+', '<', ' ']).next().unwrap_or(name);
    (!name.is_empty()).then_some(name)
}

/// `frames` without those that recorded them: the place first.
pub(super) fn from_place(frames: &[String]) -> Vec<String> {
    let records = |f: &String| RECORDS.iter().any(|r| f.starts_with(r));
    let first = frames.iter().position(|f| !records(f)).unwrap_or(frames.len());
    frames.get(first..).unwrap_or_default().to_vec()
}

/// The system call that `frames` lie in.
pub(super) fn system_call(frames: &[String]) -> Option<String> {
    let call = |f: &String| CALLS.iter().find_map(|c| f.strip_prefix(c)).map(str::to_owned);
    frames.iter().rev().find_map(call).filter(|c| !c.is_empty())
}

/// `A, called from B, called from C (system call read)`
pub(super) fn sentence(frames: &[String]) -> String {
    let mut out = frames.first().cloned().unwrap_or_default();
    for caller in frames.iter().skip(1).take(CALLERS) {
        out.push_str(&format!(", called from {caller}"));
    }
    match system_call(frames) {
        Some(call) => format!("{out} (system call {call})"),
        None => out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_behind_what_recorded_it() {
        let lines =
            [" => __trace_stack", " => tracer_hardirqs_on", " => f+0x1/0x2", " => sys_read"];
        let frames: Vec<String> =
            lines.iter().filter_map(|l| frame(l)).map(str::to_owned).collect();
        let left = from_place(&frames);
        assert_eq!(left, ["f", "sys_read"]);
        assert_eq!(sentence(&left), "f, called from sys_read (system call read)");
        assert_eq!(frame(" => "), None);
    }
}
