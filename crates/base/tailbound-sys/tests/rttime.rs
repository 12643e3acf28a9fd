// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guard where a login allows real-time threads little time. Of its own: limits are the whole process's, and are not raised again.

#![expect(clippy::disallowed_methods, reason = "a child that ends by itself, and is waited for")]

use tailbound_sys::limits::{self, GUARD_HARD_US, GUARD_SOFT_US};
use tailbound_sys::process::is_root;
use tailbound_testing::skip;

const RTTIME: u32 = 15;

fn limit() -> (u64, u64) {
    limits::get(RTTIME).unwrap()
}

/// In a process of its own (`started by` the test below), without the right to raise a limit.
#[test]
#[ignore = "started by `a_tight_limit_is_raised_or_refused`"]
fn without_the_right() {
    let refused = limits::guard_realtime(0).unwrap_err().to_string();
    assert!(
        refused.contains("RLIMIT_RTTIME is 1000 us") && refused.contains("LimitRTTIME"),
        "{refused}"
    );
}

#[test]
fn a_tight_limit_is_raised_or_refused() {
    if !is_root() {
        skip("root", "raising a limit needs root");
        return;
    }
    limits::set(RTTIME, 1000, 1000).unwrap();
    let me = std::env::current_exe().unwrap();
    let ended = std::process::Command::new("setpriv")
        .args(["--bounding-set=-sys_resource", "--inh-caps=-sys_resource"])
        .arg(me)
        .args(["--ignored", "--exact", "without_the_right", "--nocapture"])
        .output();
    match ended {
        Ok(out) => assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout)),
        Err(e) => skip("setpriv", e),
    }
    let armed = limits::guard_realtime(0);
    // Root of a container may lack CAP_SYS_RESOURCE (bit 24).
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let capabilities = status.lines().find_map(|l| l.strip_prefix("CapEff:")).unwrap();
    if u64::from_str_radix(capabilities.trim(), 16).unwrap() >> 24 & 1 == 1 {
        armed.unwrap();
        assert_eq!(limit(), (GUARD_SOFT_US, GUARD_HARD_US));
    } else {
        assert!(armed.unwrap_err().to_string().contains("RLIMIT_RTTIME is 1000 us"));
        skip("resource", "this root lacks CAP_SYS_RESOURCE");
    }
}
