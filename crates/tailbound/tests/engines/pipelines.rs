// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps for GitHub, GitLab and Jenkins (`packaging/ci`): their files are read as those systems read them, and what they
//! start is run here, with stand-ins for the systems' variables.
//!
//! What none of them may do is to pass where nothing was met: no program, another package, no deadline, a job that was cancelled.
//! Not here: the complete pipelines of `docs/examples/ci` (stage `commands`).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tailbound_testing::{skip, write_script};

use crate::{PATIENCE, machine, send, status, stderr, stdout};

/// The script that each of the steps runs.
const MEASURE: &str = "resources/tailbound/measure.sh";

fn steps() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/ci").canonicalize().unwrap()
}

fn text(file: &str) -> String {
    fs::read_to_string(steps().join(file)).unwrap()
}

/// The documents of a file, read by Python's YAML; `None` where that is not there.
pub(crate) fn documents(path: &Path) -> Option<Vec<Value>> {
    let read = "import json, sys, yaml; json.dump(list(yaml.safe_load_all(open(sys.argv[1]))), sys.stdout)";
    let python = |words: &[&str]| Command::new("python3").args(words).output();
    if !python(&["-c", "import yaml"]).is_ok_and(|o| o.status.success()) {
        skip("yaml", "python3 has no module yaml (Debian: python3-yaml)");
        return None;
    }
    let out = python(&["-c", read, &path.display().to_string()]).unwrap();
    assert!(out.status.success(), "{}: {}", path.display(), stderr(&out));
    Some(serde_json::from_slice(&out.stdout).unwrap())
}

/// Variables of a job, by name.
type Variables = BTreeMap<String, String>;

fn variables(all: &[(&str, &str)]) -> Variables {
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A machine of a CI system: a workspace, and a path with or without a program `tailbound`.
struct Runner(tempfile::TempDir);

impl Runner {
    fn new() -> Self {
        let runner = Self::without_tailbound();
        symlink(env!("CARGO_BIN_EXE_tailbound"), runner.path().join("bin/tailbound")).unwrap();
        runner
    }

    fn without_tailbound() -> Self {
        let runner = Self(tempfile::tempdir().unwrap());
        fs::create_dir(runner.path().join("bin")).unwrap();
        runner
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path().join(file)).unwrap_or_default()
    }

    /// `sh` with these words in the workspace: an environment with what a job has, and no more.
    fn shell(&self, words: &[&str], variables: &Variables) -> Command {
        let mut sh = Command::new("sh");
        sh.args(words).current_dir(self.path()).env_clear().envs(variables);
        sh.env("PATH", format!("{}:/usr/bin:/bin", self.path().join("bin").display()));
        for kept in ["TAILBOUND_LOCK_FOLDER", "HOME"] {
            sh.envs(std::env::var_os(kept).map(|value| (kept, value)));
        }
        sh
    }

    /// What the script makes of these variables.
    fn measured(&self, variables: &Variables) -> Output {
        let script = steps().join(MEASURE).display().to_string();
        self.shell(&[&script], variables).output().unwrap()
    }

    /// Errors and failures of the test report.
    fn test_report(&self) -> (usize, usize) {
        let text = self.read("latency/run.junit.xml");
        let document = roxmltree::Document::parse(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        let of = |name| document.descendants().filter(|n| n.has_tag_name(name)).count();
        (of("error"), of("failure"))
    }
}

/// A second of this machine, judged by `deadline`.
fn second(deadline: &str) -> Variables {
    variables(&[
        ("LATENCY_DEADLINE", deadline),
        ("LATENCY_DURATION", "300ms"),
        ("LATENCY_LOAD", "none"),
        ("LATENCY_POLICY", "other"),
        ("LATENCY_RESULTS", "latency"),
    ])
}

fn with(mut all: Variables, name: &str, value: &str) -> Variables {
    all.insert(name.to_owned(), value.to_owned());
    all
}

/// It refused with this status and these words, and its test report is an error.
fn refused(runner: &Runner, out: &Output, code: i32, words: &str) {
    assert_eq!(status(out), code, "{}{}", stdout(out), stderr(out));
    assert!(stderr(out).contains(words), "{words}: {}", stderr(out));
    assert_eq!(runner.test_report(), (1, 0));
    assert!(runner.read("latency/verdict.env").contains(&format!("LATENCY_STATUS={code}\n")));
    assert!(!runner.path().join("latency/run.tailbound.jsonl").exists());
}

#[test]
fn what_is_missing_or_wrong_is_no_success() {
    let _machine = machine();
    let runner = Runner::without_tailbound();
    // Results of an earlier job of the same workspace.
    fs::create_dir(runner.path().join("latency")).unwrap();
    for old in ["run.tailbound.jsonl", "verdict.env"] {
        fs::write(runner.path().join("latency").join(old), "LATENCY_VERDICT=met\n").unwrap();
    }
    refused(&runner, &runner.measured(&second("1h")), 3, "there is no tailbound");

    let runner = Runner::new();
    let refuses = |variables: &Variables, code, words: &str| {
        refused(&runner, &runner.measured(variables), code, words);
    };
    refuses(&second(" \r\n"), 2, "no deadline");
    refuses(&with(second("1h"), "LATENCY_PROGRAM", "/nowhere/tailbound"), 3, "does not start here");
    let other = runner.path().join("bin/other");
    fs::write(&other, b"\x7fELF of another machine").unwrap();
    write_script(&runner.path().join("bin/older"), "#!/bin/sh\necho tailbound 0.0.1\n");
    refuses(&with(second("1h"), "LATENCY_PROGRAM", "bin/older"), 3, "left no run file");
    refuses(&with(second("1h"), "LATENCY_PROGRAM", "bin/other"), 3, "does not start here");
    refuses(&with(second("1h"), "LATENCY_VERSION", "v99.0"), 3, "not version 99.0");
    refuses(&with(second("1h"), "LATENCY_OPTIONS", "cpus 0"), 2, "an option begins with '-'");
    // Text of an input is no part of a script.
    for wild in
        ["$(touch planted)", "`touch planted`", "'; touch planted; '", "\"; touch planted; \""]
    {
        let out = runner.measured(&second(wild));
        assert_eq!(status(&out), 2, "{wild}: {}", stderr(&out));
        assert!(!runner.path().join("planted").exists(), "{wild}");
    }
    // Refused by tailbound: an option that does not exist.
    let out = runner.measured(&with(second("1h"), "LATENCY_OPTIONS", "--nosuch"));
    assert_eq!((status(&out), runner.test_report()), (2, (1, 0)), "{}", stderr(&out));
}

#[test]
fn what_was_measured_is_judged_and_kept() {
    let _machine = machine();
    let runner = Runner::new();
    // As a file from Windows has it: each line with a CR, and spaces in values.
    let late = with(second("1us\r"), "LATENCY_OPTIONS", "--title two  words\r\n\r\n  --cpus 0\r\n");
    let out = runner.measured(&late);
    assert_eq!(status(&out), 1, "{}{}", stdout(&out), stderr(&out));
    assert!(stdout(&out).contains("Not met: "), "{}", stdout(&out));
    let (errors, failures) = runner.test_report();
    assert!(errors == 0 && failures > 0, "{errors} {failures}");
    let run = runner.read("latency/run.tailbound.jsonl");
    assert!(run.contains("two  words"), "{run}");
    assert!(runner.read("latency/run.html").contains("</html>"));
    let told = runner.read("latency/verdict.env");
    assert!(
        told.starts_with("LATENCY_VERDICT=not-met\nLATENCY_STATUS=1\nLATENCY_LATEST="),
        "{told}"
    );

    // In the same workspace: nothing of the first is left.
    let out = runner.measured(&with(second("1h"), "LATENCY_LOAD", "nosuch"));
    assert_eq!(status(&out), 2, "{}", stderr(&out));
    assert!(!runner.path().join("latency/run.html").exists());

    // Ordinary threads: met, or in doubt as they are not real-time. Never a failure of the steps.
    let out = runner.measured(&second("1h"));
    let (errors, failures) = runner.test_report();
    match status(&out) {
        0 => assert_eq!((errors, failures), (0, 0)),
        5 => assert!(errors > 0),
        other => panic!("{other}: {}{}", stdout(&out), stderr(&out)),
    }
}

/// Ends the child where a test fails before it.
struct Job(Child);

impl Drop for Job {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_cancelled_job_is_undecided_and_its_files_are_whole() {
    let _machine = machine();
    let runner = Runner::new();
    let script = steps().join(MEASURE).display().to_string();
    let long = with(second("1h"), "LATENCY_DURATION", "10m");
    let mut sh = runner.shell(&[&script], &long);
    let mut job = Job(sh.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let begun = Instant::now();
    let folder = runner.path().join("latency");
    // It writes its answer's file just before it starts tailbound, which has two seconds of warm-up at most.
    while !folder.join("answer.txt").exists() {
        assert!(begun.elapsed() < PATIENCE, "it does not begin");
        sleep(Duration::from_millis(50));
    }
    sleep(Duration::from_secs(3));
    send(job.0.id(), "TERM");
    let ended = job.0.wait().unwrap();
    assert_eq!(ended.code(), Some(5), "{}", runner.read("latency/verdict.env"));
    assert!(runner.read("latency/verdict.env").starts_with("LATENCY_VERDICT=undecided\n"));
    assert!(runner.test_report().0 > 0);
}

/// A release's package with a program in it, which notes that it was started.
fn package(runner: &Runner, name: &str) -> Option<(PathBuf, String)> {
    let folder = runner.path().join(format!("{name}.tree"));
    let program =
        if name.ends_with(".deb") { "usr/bin/tailbound" } else { "tailbound-9-x/tailbound" };
    fs::create_dir_all(folder.join(program).parent().unwrap()).unwrap();
    let real = env!("CARGO_BIN_EXE_tailbound");
    let script = format!("#!/bin/sh\n: >started\nexec {real} \"$@\"\n");
    write_script(&folder.join(program), &script);
    let file = runner.path().join(name);
    let mut pack = if name.ends_with(".deb") {
        fs::create_dir(folder.join("DEBIAN")).unwrap();
        let control = "Package: tailbound\nVersion: 9\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: a test\n";
        fs::write(folder.join("DEBIAN/control"), control).unwrap();
        let mut deb = Command::new("dpkg-deb");
        deb.args(["--root-owner-group", "-b"]).arg(&folder).arg(&file);
        deb
    } else {
        let mut tar = Command::new("tar");
        tar.arg("-czf").arg(&file).arg("-C").arg(&folder).arg("tailbound-9-x");
        tar
    };
    match pack.output() {
        Ok(out) => assert!(out.status.success(), "{}", stderr(&out)),
        Err(_) => {
            skip("dpkg-deb", "there is no dpkg-deb");
            return None;
        }
    }
    let sum = Command::new("sha256sum").arg(&file).output().unwrap();
    Some((file, stdout(&sum).split(' ').next().unwrap().to_owned()))
}

#[test]
fn a_package_is_used_only_with_the_checksum_that_was_named() {
    let _machine = machine();
    for name in ["a release.tar.gz", "tailbound_9_all.deb"] {
        let runner = Runner::without_tailbound();
        let Some((file, sum)) = package(&runner, name) else { continue };
        let of = |sum: &str| {
            let all = with(second("1us"), "LATENCY_PACKAGE", &file.display().to_string());
            runner.measured(&with(all, "LATENCY_SHA256", sum))
        };
        refused(&runner, &of(""), 2, "sha256 must be the 64 hexadecimal digits");
        refused(&runner, &of(&sum[1..]), 2, "63 digits");
        refused(&runner, &of(&"0".repeat(64)), 3, "it is not used");
        assert!(!runner.path().join("started").exists(), "{name}");
        let out = of(&sum.to_uppercase());
        assert_eq!(status(&out), 1, "{name}: {}{}", stdout(&out), stderr(&out));
        assert!(runner.path().join("started").exists(), "{name}");
    }
}

/// The one step of the action that runs a script.
fn step_of(action: &Value) -> &Value {
    let steps = action["runs"]["steps"].as_array().unwrap();
    let scripts: Vec<&Value> = steps.iter().filter(|s| s["run"].is_string()).collect();
    let [step] = scripts.as_slice() else { panic!("{scripts:?}") };
    step
}

#[test]
fn the_action_of_github_gives_inputs_as_variables_and_returns_what_it_promises() {
    let Some(files) = documents(&steps().join("action.yml")) else { return };
    let [action] = files.as_slice() else { panic!("{files:?}") };
    assert_eq!(action["runs"]["using"].as_str(), Some("composite"));
    let inputs = action["inputs"].as_object().unwrap();
    let described = |of: &Value| of["description"].as_str().is_some_and(|d| !d.is_empty());
    assert!(inputs.values().all(described), "{inputs:?}");
    assert_eq!(inputs["deadline"]["required"].as_bool(), Some(true));
    let step = step_of(action);
    assert_eq!(step["shell"].as_str(), Some("sh"), "composite steps need a shell");
    let run = step["run"].as_str().unwrap();
    assert!(!run.contains("${{"), "an input would become a part of the script: {run}");
    // `${{ inputs.NAME }}`: each exists, and each is used by one of the steps.
    let all = action["runs"].to_string();
    let used: Vec<&str> =
        all.split("${{ inputs.").skip(1).map(|r| r.split(' ').next().unwrap()).collect();
    assert!(used.iter().all(|name| inputs.contains_key(*name)), "{used:?}");
    assert!(inputs.keys().all(|name| used.contains(&name.as_str())), "{used:?}");
    let last = action["runs"]["steps"].as_array().unwrap().last().unwrap();
    assert_eq!(last["if"].as_str(), Some("always()"), "results of a failure are kept");
    assert_eq!(last["with"]["if-no-files-found"].as_str(), Some("error"));

    let _machine = machine();
    let runner = Runner::new();
    let given = |name: &str| match name {
        "deadline" => "1us".to_owned(),
        "duration" => "300ms".to_owned(),
        "load" => "none".to_owned(),
        "policy" => "other".to_owned(),
        other => inputs[other]["default"].as_str().unwrap().to_owned(),
    };
    let put_in = |value: &Value| {
        let value = value.as_str().unwrap();
        let name = value.strip_prefix("${{ inputs.").and_then(|v| v.strip_suffix(" }}"));
        given(name.unwrap_or_else(|| panic!("{value}")))
    };
    let mut all: Variables =
        step["env"].as_object().unwrap().iter().map(|(k, v)| (k.clone(), put_in(v))).collect();
    all.extend(variables(&[
        ("GITHUB_ACTION_PATH", &steps().display().to_string()),
        ("GITHUB_OUTPUT", "outputs"),
        ("GITHUB_STEP_SUMMARY", "summary"),
    ]));
    let out = runner.shell(&["-e", "-c", run], &all).output().unwrap();
    assert_eq!(status(&out), 1, "{}{}", stdout(&out), stderr(&out));
    let lines = runner.read("outputs");
    let told: BTreeMap<&str, &str> = lines.lines().map(|l| l.split_once('=').unwrap()).collect();
    for (name, output) in action["outputs"].as_object().unwrap() {
        assert!(described(output), "{name}");
        let value = output["value"].as_str().unwrap();
        assert_eq!(value, format!("${{{{ steps.measure.outputs.{name} }}}}"));
        assert!(told.contains_key(name.as_str()), "{name}: {told:?}");
    }
    assert_eq!((told["verdict"], told["status"]), ("not-met", "1"));
    for file in ["report", "run", "junit"] {
        assert!(runner.path().join(told[file]).is_file(), "{file}: {told:?}");
    }
    assert!(runner.read("summary").contains("### Latency: not-met (deadline 1us"));
}

/// A text of GitLab's with the inputs put in.
fn interpolated(text: &str, inputs: &BTreeMap<&str, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("$[[ inputs.") {
        let (name, after) = after.split_once(" ]]").unwrap();
        out += before;
        out += inputs.get(name).unwrap_or_else(|| panic!("there is no input {name}"));
        rest = after;
    }
    out + rest
}

#[test]
fn the_component_of_gitlab_runs_the_same_script_and_keeps_its_reports() {
    let Some(files) = documents(&steps().join("templates/tailbound.yml")) else { return };
    let [spec, jobs] = files.as_slice() else { panic!("a head with inputs, and jobs: {files:?}") };
    let inputs = spec["spec"]["inputs"].as_object().unwrap();
    for (name, input) in inputs {
        assert!(input["description"].as_str().is_some_and(|d| !d.is_empty()), "{name}");
        assert!(name == "deadline" || input.get("default").is_some(), "{name}");
    }
    let (name, job) = jobs.as_object().unwrap().iter().next().unwrap();
    assert_eq!(name, "$[[ inputs.job ]]");
    assert!(job.get("allow_failure").is_none(), "doubt is no success unless a user says so");
    assert_eq!(job["artifacts"]["when"].as_str(), Some("always"));

    let given: BTreeMap<&str, String> = inputs
        .iter()
        .map(|(name, input)| match name.as_str() {
            "deadline" => (name.as_str(), "1us".to_owned()),
            "duration" => (name.as_str(), "300ms".to_owned()),
            "load" => (name.as_str(), "none".to_owned()),
            "policy" => (name.as_str(), "other".to_owned()),
            // A `$` stays one, as `expand: false` promises.
            "options" => (name.as_str(), "--title a $HOME $$ b".to_owned()),
            _ => (name.as_str(), input["default"].as_str().unwrap_or_default().to_owned()),
        })
        .collect();
    let mut all = Variables::new();
    for (name, variable) in job["variables"].as_object().unwrap() {
        let value = match variable.as_str() {
            Some(plain) => plain,
            None => {
                assert_eq!(variable["expand"].as_bool(), Some(false), "{name}");
                variable["value"].as_str().unwrap()
            }
        };
        all.insert(name.clone(), interpolated(value, &given));
    }
    let lines = job["script"].as_array().unwrap().iter().map(|line| line.as_str().unwrap());
    let script: Vec<&str> = lines.collect();
    let (_, within) = script[0].split_once("<<'MEASURE'\n").unwrap();
    assert_eq!(within.trim_end().strip_suffix("MEASURE"), Some(text(MEASURE).as_str()));

    let _machine = machine();
    let runner = Runner::new();
    let out = runner.shell(&["-e", "-c", &script.join("\n")], &all).output().unwrap();
    assert_eq!(status(&out), 1, "{}{}", stdout(&out), stderr(&out));
    for kind in ["junit", "dotenv"] {
        let path = job["artifacts"]["reports"][kind].as_str().unwrap();
        assert!(runner.path().join(path).is_file(), "{path}");
        assert!(path.starts_with(job["artifacts"]["paths"][0].as_str().unwrap()), "{path}");
    }
    assert!(runner.read("latency/run.tailbound.jsonl").contains("a $HOME $$ b"));
    // Variables that GitLab reads from a file: one a line, no spaces in names.
    assert!(runner.read("latency/verdict.env").lines().all(|l| l.starts_with("LATENCY_")));
}

/// Jenkins as its library sees it: steps that note what they were told, and `withEnv`, which puts in variables for `$`.
const JENKINS: &str = r#"
def step = new GroovyShell().parse(new File(args[0], 'vars/tailbound.groovy'))
def told = new File('told')
def env = [:]
step.metaClass.error = { String why -> throw new RuntimeException('error: ' + why) }
step.metaClass.unstable = { String why -> told << "unstable: ${why}\n" }
step.metaClass.archiveArtifacts = { Map m -> told << "archive ${m.artifacts}\n" }
step.metaClass.junit = { Map m -> told << "junit ${m.testResults}\n" }
step.metaClass.libraryResource = { String path -> new File("${args[0]}/resources", path).text }
step.metaClass.withEnv = { List all, Closure body ->
    all.each { String one ->
        def (name, value) = one.split('=', 2)
        env[name] = value.replaceAll(/\$(\$|\w+)/) { whole, key -> key == '$' ? '$' : System.getenv(key) ?: whole }
    }
    body()
}
step.metaClass.sh = { Map m ->
    assert m.returnStatus && m.script.startsWith('#!/bin/sh\n')
    new File('script.sh').text = m.script
    def builder = new ProcessBuilder('sh', 'script.sh').redirectErrorStream(true).redirectOutput(new File('log'))
    builder.environment().putAll(env)
    builder.start().waitFor()
}
def options = args.drop(1).collectEntries { it.split('=', 2) as List }
try {
    told << "returned ${step.call(options)}\n"
} catch (RuntimeException e) {
    told << "${e.message}\n"
}
"#;

#[test]
fn the_step_of_jenkins_fails_where_nothing_was_met() {
    let step = text("vars/tailbound.groovy");
    // What the script reads, the step gives: each of its variables, but for Jenkins' own.
    let script = text(MEASURE);
    let read = script.split("${LATENCY_").skip(1).map(|r| r.split(':').next().unwrap());
    for name in read {
        assert!(step.contains(&format!("'{}'", name.to_lowercase())), "{name}");
    }
    if !Command::new("groovy").arg("--version").output().is_ok_and(|o| o.status.success()) {
        skip("groovy", "there is no groovy (Debian: groovy), so that the step is not run");
        return;
    }
    let _machine = machine();
    let told = |runner: &Runner, options: &[&str]| {
        drop(fs::remove_file(runner.path().join("told")));
        fs::write(runner.path().join("jenkins.groovy"), JENKINS).unwrap();
        let mut groovy = Command::new("groovy");
        groovy.arg("jenkins.groovy").arg(steps()).args(options).current_dir(runner.path());
        let path = std::env::var("PATH").unwrap();
        // Java may live anywhere: its path stays, behind the runner's own.
        groovy.env("PATH", format!("{}:{path}", runner.path().join("bin").display()));
        let out = groovy.output().unwrap();
        assert!(out.status.success(), "{}{}", stdout(&out), stderr(&out));
        runner.read("told")
    };
    let runner = Runner::new();
    let quick = ["duration=300ms", "load=none", "policy=other"];
    let options = [&quick[..], &["deadline=1us", "options=--title a $HOME b"]].concat();
    let late = told(&runner, &options);
    let kept = "archive latency/**\njunit latency/run.junit.xml\n";
    assert_eq!(late, format!("{kept}error: Latency: not-met (exit status 1 of tailbound)\n"));
    assert!(runner.read("latency/run.tailbound.jsonl").contains("a $HOME b"));
    let fine = told(&runner, &[&quick[..], &["deadline=1h"]].concat());
    let met = format!("{kept}returned [verdict:met, status:0, report:latency/run.html, ");
    let doubt = format!(
        "{kept}unstable: Latency: undecided, see the report\nreturned [verdict:undecided, "
    );
    assert!(fine.starts_with(&met) || fine.starts_with(&doubt), "{fine}");
    let missing = told(&runner, &["deadline=1h", "program=/nowhere"]);
    assert!(missing.contains("error: Latency: cannot-measure (exit status 3"), "{missing}");
    let unknown = told(&runner, &["deadlines=1h"]);
    assert!(
        unknown.starts_with("error: tailbound: there is no parameter 'deadlines'"),
        "{unknown}"
    );
}

#[test]
fn the_tutorials_pipelines_name_inputs_that_exist() {
    let page = steps().join("../../docs/tutorials/ci.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks = |kind: &str| -> Vec<String> {
        let begin = format!("```{kind}\n");
        page.split(&begin).skip(1).map(|b| b.split("```").next().unwrap().to_owned()).collect()
    };
    let [jenkins] = blocks("groovy").try_into().unwrap();
    for name in ["deadline", "duration"] {
        assert!(jenkins.contains(&format!("{name}: '")), "{jenkins}");
    }
    let folder = tempfile::tempdir().unwrap();
    let [github, gitlab] = blocks("yaml").try_into().unwrap();
    let read = |text: &str| {
        let file = folder.path().join("pipeline.yml");
        fs::write(&file, text).unwrap();
        documents(&file)
    };
    let (Some(github), Some(gitlab)) = (read(&github), read(&gitlab)) else { return };
    let step = &github[0]["jobs"]["latency"]["steps"][0];
    let include = &gitlab[0]["include"][0];
    // Both name the place in this project at which the files are.
    let uses = step["uses"].as_str().unwrap();
    assert_eq!(uses.split('@').next(), Some("OWNER/tailbound/packaging/ci"));
    assert_eq!(include["file"].as_str(), Some("packaging/ci/templates/tailbound.yml"));
    let of = |file: &str, inputs: &str| {
        documents(&steps().join(file)).unwrap()[0].pointer(inputs).cloned().unwrap()
    };
    for (given, known) in [
        (&step["with"], of("action.yml", "/inputs")),
        (&include["inputs"], of("templates/tailbound.yml", "/spec/inputs")),
    ] {
        let names: Vec<&String> = given.as_object().unwrap().keys().collect();
        assert!(names.iter().all(|name| known.get(name).is_some()), "{names:?}");
        assert!(names.iter().any(|name| *name == "deadline"));
    }
}
