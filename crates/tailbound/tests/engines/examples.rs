// SPDX-License-Identifier: MIT OR Apache-2.0
//! The examples for LAVA and Kubernetes: what their files say is what the program does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pipelines::documents;
use crate::{machine, status, stderr, stdout, tailbound};
use serde_json::Value;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples")
}

/// What a file says, read by Python's YAML; `None` where that is not there.
fn parsed(file: &str) -> Option<Value> {
    documents(&examples().join(file))?.pop()
}

#[test]
fn the_kubernetes_job_runs_what_its_image_holds_and_is_never_repeated() {
    let Some(job) = parsed("kubernetes/job.yaml") else { return };
    assert_eq!((job["apiVersion"].as_str(), job["kind"].as_str()), (Some("batch/v1"), Some("Job")));
    assert_eq!(job["spec"]["backoffLimit"].as_i64(), Some(0));
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["restartPolicy"].as_str(), Some("Never"));
    let container = &pod["containers"][0];
    let resources = &container["resources"];
    assert_eq!(resources["requests"], resources["limits"], "a quota stops the loads");
    let added = container["securityContext"]["capabilities"]["add"].as_array().unwrap();
    let added: Vec<&str> = added.iter().map(|c| c.as_str().unwrap()).collect();
    assert_eq!(added, ["SYS_NICE", "IPC_LOCK"]);

    let image = fs::read_to_string(examples().join("kubernetes/Containerfile")).unwrap();
    let last = image.rsplit_once("\nFROM ").unwrap().1;
    assert!(last.starts_with("scratch\n"), "{last}");
    assert!(last.contains("ENTRYPOINT [\"/usr/local/bin/tailbound\"]"), "{last}");

    let _machine = machine();
    // Its words, with a second instead of ten minutes, and its folder here.
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().display().to_string();
    let words = container["args"].as_array().unwrap().iter().map(|w| match w.as_str().unwrap() {
        "10m" => "1s".to_owned(),
        word => word.replace("/data", &here),
    });
    let words: Vec<String> = words.collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert!(words.contains(&"1s"), "{words:?}");
    let out = tailbound().args(&words).current_dir(folder.path()).output().unwrap();
    // Whatever this machine is: it understood them.
    assert!([0, 1, 3, 5].contains(&status(&out)), "{}: {}", status(&out), stderr(&out));
    if status(&out) != 3 {
        assert!(folder.path().join("node.tailbound.jsonl").exists());
    }
}

/// Words of a container, with its variables as Kubernetes puts them in.
fn words_of(container: &Value, variables: &[(&str, &str)]) -> Vec<String> {
    let own: Vec<(&str, &str)> = container["env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| (v["name"].as_str().unwrap(), v["value"].as_str().unwrap()))
        .collect();
    let value = |name: &str| {
        let all = variables.iter().chain(&own);
        all.clone().find(|(n, _)| *n == name).map(|(_, value)| *value)
    };
    let put_in = |word: &Value| {
        let word = word.as_str().unwrap();
        let Some((before, rest)) = word.split_once("$(") else { return word.to_owned() };
        let (name, after) = rest.split_once(')').unwrap();
        format!("{before}{}{after}", value(name).unwrap_or_else(|| panic!("no {name}")))
    };
    container["args"].as_array().unwrap().iter().map(put_in).collect()
}

#[test]
fn the_latency_tests_of_openshift_are_made_in_turn_and_each_is_judged_by_its_own_variable() {
    let Some(job) = parsed("kubernetes/latency-tests.yaml") else { return };
    assert_eq!(job["spec"]["backoffLimit"].as_i64(), Some(0));
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["restartPolicy"].as_str(), Some("Never"));
    let of = |key: &str| pod[key].as_array().unwrap().clone();
    let tests = [of("initContainers"), of("containers")].concat();
    let names: Vec<&str> = tests.iter().map(|c| c["name"].as_str().unwrap()).collect();
    let runtime =
        words_of(&tests[0], &[]).into_iter().find_map(|w| w.strip_suffix('s')?.parse().ok());
    let longest: i64 = runtime.unwrap();
    assert!(job["spec"]["activeDeadlineSeconds"].as_i64() > Some(3 * longest + 120));
    assert_eq!(names, ["hwlat", "cyclic", "busy"]);
    let _machine = machine();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().display().to_string();
    for (test, limit) in tests.iter().zip(["HWLATDETECT", "CYCLICTEST", "OSLAT"]) {
        let limit = format!("{limit}_MAXIMUM_LATENCY");
        let words = words_of(test, &[("LATENCY_TEST_RUNTIME", "1"), (&limit, "31000000")]);
        assert!(words.contains(&"31000000us".to_owned()), "{words:?}");
        let words = words.iter().map(|word| word.replace("/data", &here));
        let out = tailbound().args(words).current_dir(folder.path()).output().unwrap();
        // Whatever this machine is: it understood them.
        assert!([0, 1, 3, 5].contains(&status(&out)), "{}: {}", status(&out), stderr(&out));
        let file =
            folder.path().join(format!("{}.tailbound.jsonl", test["name"].as_str().unwrap()));
        assert!(status(&out) == 3 || file.exists(), "{}", file.display());
    }
}

/// A device of LAVA: its own helper is a program that notes what it is told.
struct Device(tempfile::TempDir);

impl Device {
    fn new(has_tailbound: bool) -> Self {
        let device = Self(tempfile::tempdir().unwrap());
        let bin = device.0.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let helper = bin.join("lava-test-case");
        let notes = "#!/bin/sh\necho \"$*\" >>\"${0%/bin/*}/cases\"\n";
        tailbound_testing::write_script(&helper, notes);
        if has_tailbound {
            let program = env!("CARGO_BIN_EXE_tailbound");
            std::os::unix::fs::symlink(program, bin.join("tailbound")).unwrap();
        }
        let script = examples().join("lava/tailbound.sh");
        fs::copy(script, device.0.path().join("tailbound.sh")).unwrap();
        device
    }

    /// Cases that a step makes: each with its result.
    fn cases(&self, parameters: &[(&str, &str)], step: &str) -> Vec<(String, String)> {
        let bin = self.0.path().join("bin");
        drop(fs::remove_file(self.0.path().join("cases")));
        let mut sh = Command::new("sh");
        sh.args(["-ec", step]).current_dir(self.0.path());
        sh.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        let out = sh.envs(parameters.iter().copied()).output().unwrap();
        assert!(out.status.success(), "{}", stderr(&out));
        let text = fs::read_to_string(self.0.path().join("cases")).unwrap();
        let one = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(words[1], "--result", "{line}");
            (words[0].to_owned(), words[2].to_owned())
        };
        text.lines().map(one).collect()
    }
}

#[test]
fn the_test_of_lava_makes_each_case_one_of_its_and_nothing_missing_passes() {
    let _machine = machine();
    let Some(test) = parsed("lava/tailbound.yaml") else { return };
    let format = test["metadata"]["format"].as_str();
    assert_eq!(format, Some("Lava-Test Test Definition 1.0"));
    for known in ["name", "description"] {
        assert!(test["metadata"][known].as_str().is_some_and(|t| !t.is_empty()), "{known}");
    }
    let steps = test["run"]["steps"].as_array().unwrap();
    let [step] = steps.as_slice() else { panic!("{steps:?}") };
    let step = step.as_str().unwrap();
    // LAVA sets its parameters as variables of the shell.
    let names = test["params"].as_object().unwrap().keys().map(String::as_str);
    let names: Vec<&str> = names.collect();
    assert!(names.iter().all(|n| step.contains(&format!("\"${n}\""))), "{names:?}: {step}");

    let short = [("DEADLINE", "1h"), ("DURATION", "300ms"), ("LOAD", "none")];
    let device = Device::new(true);
    let of = |cases: &[(String, String)], name: &str| {
        cases.iter().find(|(n, _)| n == name).map(|(_, r)| r.clone())
    };
    let cases = device.cases(&short, step);
    // An ordinary user may not have real-time priority: then it is no pass.
    let made = of(&cases, "tailbound").unwrap();
    if tailbound_sys::process::is_root() {
        assert!(made == "pass" || made == "unknown", "{cases:?}");
        assert!(
            cases.iter().any(|(n, r)| n.starts_with("cyclic-CPU-") && r == "pass"),
            "{cases:?}"
        );
    }
    let quick = "./tailbound.sh --policy other --duration 300ms --load none";
    let late = device.cases(&[], &format!("{quick} --deadline 1us"));
    assert_eq!(of(&late, "tailbound").unwrap(), "fail", "{late:?}");
    assert_eq!(of(&late, "latest").unwrap(), "fail", "{late:?}");
    assert!(late.iter().all(|(_, result)| result != "pass"), "{late:?}");
    let unjudged = device.cases(&[], quick);
    assert_eq!(of(&unjudged, "tailbound").unwrap(), "unknown", "{unjudged:?}");
    // A run that is not made has no cases of an earlier one.
    let none = device.cases(&[], &format!("{quick} --cpus 4095"));
    assert_eq!(none, [("tailbound".to_owned(), "fail".to_owned())]);
    let missing = Device::new(false).cases(&short, step);
    assert_eq!(missing, [("tailbound".to_owned(), "fail".to_owned())]);
}

#[test]
fn without_lavas_helper_the_same_is_told_in_ktap_and_only_met_passes() {
    let _machine = machine();
    let script = examples().join("lava/tailbound.sh").display().to_string();
    let told = |has_tailbound: bool, options: &[&str]| {
        let device = Device::new(has_tailbound);
        let bin = device.0.path().join("bin");
        fs::remove_file(bin.join("lava-test-case")).unwrap();
        let mut sh = Command::new("sh");
        sh.arg(&script).args(["--policy", "other", "--duration", "300ms", "--load", "none"]);
        sh.args(options).current_dir(device.0.path());
        let out = sh.env("PATH", format!("{}:/usr/bin:/bin", bin.display())).output().unwrap();
        let text = stdout(&out);
        assert!(text.starts_with("KTAP version 1\n1.."), "{text}{}", stderr(&out));
        let passed = text.lines().filter(|l| l.starts_with("ok ") && !l.contains("# SKIP")).count();
        (status(&out), passed, text)
    };
    let (code, passed, text) = told(true, &["--deadline", "1us"]);
    assert_eq!((code, passed), (1, 0), "{text}");
    let (code, passed, text) = told(true, &["--deadline", "1h"]);
    // Met; or in doubt for what this machine is.
    assert!(code == 1 || code == 0 && passed > 0, "{code}: {text}");
    for (has_tailbound, options) in
        [(true, &["--cpus", "4095"][..]), (true, &[]), (false, &["--deadline", "1h"])]
    {
        let (code, passed, text) = told(has_tailbound, options);
        assert_eq!((code, passed), (1, 0), "{text}");
    }
}
