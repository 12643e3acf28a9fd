// SPDX-License-Identifier: MIT OR Apache-2.0
//! A test program that hangs: what its processes wait for, and their end.
//!
//! Source: proc_pid_task(5) `children`, proc_pid_stat(5), proc_pid_stack(5).

use std::fmt::Write as _;
use std::fs;

use crate::exec;

/// Ends all that `cargo` started and has not ended; a line for each of those processes, and one for each of their threads in the kernel.
pub(super) fn told_and_ended(cargo: u32) -> String {
    let all = descendants(cargo);
    let mut told = String::from("a test program hangs; these are ended:");
    for process in &all {
        let file = |name: &str| fs::read(format!("/proc/{process}/{name}")).unwrap_or_default();
        let words = String::from_utf8_lossy(&file("cmdline")).replace('\0', " ");
        _ = write!(told, "\n  {process}: {}", words.trim());
        let threads = fs::read_dir(format!("/proc/{process}/task"));
        for thread in threads.into_iter().flatten().flatten() {
            let read = |name: &str| fs::read_to_string(thread.path().join(name));
            let name = read("comm").unwrap_or_default();
            // Of root alone, and not in every kernel.
            let stack = read("stack").or_else(|_| read("wchan")).unwrap_or_default();
            let stack: Vec<&str> = stack.lines().map(|l| l.trim_start_matches("[<0>] ")).collect();
            _ = write!(told, "\n    {}: {}", name.trim(), stack.join(", "));
        }
    }
    // From the last: a parent might start another.
    let words = all.iter().rev().map(ToString::to_string);
    let mut kill = exec::command("sh");
    kill.args(["-c", "kill -KILL \"$@\"", "kill"]).args(words);
    if let Err(e) = exec::output(&mut kill) {
        _ = write!(told, "\n  not ended: {e:#}");
    }
    told
}

/// Each thread has the children that it started.
fn descendants(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let children = threads.into_iter().flatten().flatten().map(|t| t.path().join("children"));
    let children = children.filter_map(|c| fs::read_to_string(c).ok()).collect::<String>();
    let children = children.split_whitespace().filter_map(|p| p.parse().ok());
    children.flat_map(|p| [vec![p], descendants(p)].concat()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_is_told_and_ended_with_its_children() {
        let mut hangs = exec::command("sh");
        let mut hangs = hangs.args(["-c", "sh -c 'sleep 600; true' & wait"]).spawn().unwrap();
        let all = || descendants(std::process::id());
        let sleeps = |p: &u32| {
            fs::read_to_string(format!("/proc/{p}/cmdline")).is_ok_and(|c| c.starts_with("sleep"))
        };
        while !all().iter().any(sleeps) {
            std::thread::park_timeout(std::time::Duration::from_millis(20));
        }
        let told = told_and_ended(hangs.id());
        assert!(told.contains(": sleep 600\n    sleep: "), "{told}");
        // It waited for what was ended.
        assert!(hangs.wait().unwrap().success());
    }
}
