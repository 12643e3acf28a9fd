// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples of what CPUs are busy with.

use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::{call, folder, skip, status, stderr};

/// A process that does nothing but run, until it is dropped.
struct Busy(Child);

impl Busy {
    fn begin() -> Self {
        // This program is there wherever the tests are, and has the names of its functions.
        let exe = env!("CARGO_BIN_EXE_tailbound");
        let mut command = Command::new(exe);
        command.args(["load", "cpu", "-D", "60s", "-q"]).stdout(Stdio::null());
        Self(command.stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_busy_function_is_found_by_its_name() {
    let dir = folder();
    let busy = Busy::begin();
    let page = dir.path().join("hot.html");
    let words = ["hot", "-D", "2s", "--json", "--html"];
    let out = call(dir.path(), &[&words[..], &["hot.html"]].concat());
    for cannot in ["perf_event_open", "in a PID namespace of its own"] {
        if stderr(&out).contains(cannot) {
            return skip("perf", stderr(&out));
        }
    }
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let value: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(value.pointer("/schema").unwrap(), "tailbound-hot/1");
    let all = |list: &str| value.pointer(list).unwrap().as_array().unwrap().clone();
    // Whatever else runs: a process that always runs has samples, and functions with names.
    let own = |f: &&Value| {
        let text = |k: &str| f.get(k).and_then(Value::as_str).unwrap_or_default().to_owned();
        text("comm").starts_with("tailbound") || text("object").starts_with("tailbound")
    };
    let functions = all("/functions");
    let named = functions.iter().filter(own).any(|f| f.get("function").unwrap() != "");
    assert!(named, "{functions:?}");
    for row in functions.iter().chain(&all("/processes")) {
        let number = |k: &str| row.get(k).and_then(Value::as_f64).unwrap();
        assert!(number("low") <= number("share") && number("share") <= number("high"), "{row}");
    }
    let counted: u64 = functions.iter().map(|f| f.get("n").unwrap().as_u64().unwrap()).sum();
    assert_eq!(Some(counted), value.pointer("/busy").unwrap().as_u64(), "each sample once");
    assert!(std::fs::read_to_string(page).unwrap().contains("Tailbound hot"));
    drop(busy);
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_sampled() {
    for words in [
        &["hot", "-D", "0s"][..],
        &["hot", "--frequency", "0"],
        &["hot", "--pid", "4194305"],
        &["hot", "-c", "99999"],
    ] {
        let out = call(folder().path(), words);
        assert_eq!(status(&out), 2, "{words:?}: {}", stderr(&out));
    }
}
