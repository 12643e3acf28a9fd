// SPDX-License-Identifier: MIT OR Apache-2.0
//! `monitor --upload`: a real monitor and a real server, which is away for a while.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::farm::{Farm, Process, machine, tailbound};

/// Sleeps 10 ms again and again as `fifo:10`; the kernel ends it if it ever runs for a second.
const SLEEPER: &str = "ulimit -R 1000000 2>/dev/null; exec chrt -f 10 sh -c 'i=0; while [ $i -lt 100000 ]; do sleep 0.01; i=$((i+1)); done'";

fn monitor(farm: &Farm, port: u16) -> Process {
    let log = File::options().create(true).append(true).open(farm.at("agent.log")).unwrap();
    let mut command = tailbound();
    command.current_dir(farm.path()).args(["monitor", "--every", "1s", "--upload-every", "2s"]);
    command.args(["--upload", &farm.url(port), "--token-file", "press.token"]);
    command.args(["--spool", "kept", "--out", "m.jsonl"]);
    if farm.tls {
        command.args(["--ca", "farm.pem"]);
    }
    Process(command.stdin(Stdio::null()).stderr(log).spawn().unwrap())
}

fn waiting(farm: &Farm) -> usize {
    let entries = fs::read_dir(farm.at("kept")).into_iter().flatten().flatten();
    entries.filter(|e| e.file_name().to_string_lossy().starts_with("run-")).count()
}

#[test]
fn run_files_of_a_monitor_wait_for_a_server_that_is_away_and_arrive_once() {
    let _one = machine();
    if !tailbound_sys::process::is_root() {
        return tailbound_testing::skip("root", "programs in the kernel need it");
    }
    let sleeper = Command::new("bash").args(["-c", SLEEPER]).stderr(Stdio::null()).spawn();
    let Ok(_sleeper) = sleeper.map(Process) else {
        return tailbound_testing::skip("bash", "it starts a thread");
    };
    let farm = Farm::new(true);
    let (server, port) = farm.serve(0, &[]);
    let mut one = monitor(&farm, port);
    let cannot = farm.until("a run arrives, or this kernel cannot", || {
        if let Some(ended) = one.0.try_wait().unwrap() {
            assert_eq!(ended.code(), Some(3), "{}", farm.log());
            return Some(true);
        }
        (farm.runs() >= 1).then_some(false)
    });
    if cannot {
        return tailbound_testing::skip("bpf", farm.log());
    }
    assert_eq!(server.ended(), Some(0));
    farm.until("files wait", || (waiting(&farm) >= 2).then_some(()));
    // What it had so far is handed in as a run that was cut off, by the next one.
    one.killed();
    assert!(farm.log().contains("does not answer"), "{}", farm.log());
    let before = (waiting(&farm), farm.runs());
    let so_far = farm.at("kept/so-far").exists();
    let two = monitor(&farm, port);
    let (server, _) = farm.serve(port, &[]);
    let all = before.0 + before.1 + usize::from(so_far);
    farm.until("all have arrived", || (farm.runs() >= all).then_some(()));
    farm.until("nothing waits", || (waiting(&farm) == 0).then_some(()));
    assert_eq!(two.ended(), Some(0), "{}", farm.log());
    let rows = farm.call(&["store", "query", "--store", "s.sqlite", "--json",
        "SELECT w.probe AS probe, r.context AS context, r.ended AS ended, r.reasons AS reasons, s.name AS system, r.activations AS n \
         FROM run r JOIN workload w ON w.id = r.workload JOIN system s ON s.id = r.system"]);
    let rows: Value = serde_json::from_slice(&rows.stdout).unwrap();
    let rows =
        rows["rows"].as_array().or(rows.as_array()).unwrap_or_else(|| panic!("{rows}")).clone();
    assert!(rows.len() >= all, "{rows:?}");
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    for row in &rows {
        assert!(text(row, "probe").starts_with("monitor"), "{row}");
        assert_eq!(text(row, "system"), "press", "{row}");
        assert!(text(row, "reasons").contains("observed"), "{row}");
    }
    assert!(
        rows.iter().any(|r| text(r, "context") == "run-queue" && r["n"].as_u64() > Some(0)),
        "{rows:?}"
    );
    let cut = rows.iter().filter(|r| text(r, "ended") == "cut-off").count();
    assert_eq!(cut, usize::from(so_far), "{rows:?}");
    drop(server);
}
