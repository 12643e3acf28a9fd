// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is refused, before anything is started, with a message that helps.

use crate::{call, folder, status, stderr, stdout};

#[test]
fn invalid_arguments_are_refused_with_the_option_and_leave_nothing() {
    let folder = folder();
    let cases: [(&[&str], i32, &str); 28] = [
        (&["run", "-D", "60"], 2, "--duration: `60` has no unit: write for example `60s`"),
        (&["run", "-b", "100"], 2, "--break: `100` has no unit: write for example `100us`"),
        (&["run", "-Smp99", "-D", "60"], 2, "tailbound run -p fifo:99 -D 60s -L none"),
        (&["run", "-m", "-S", "-i", "200"], 2, "tailbound run -p other -i 200us"),
        (&["run", "-Smp99", "-q"], 2, "tailbound cyclictest -Smp99 -q"),
        (&["cyclictest", "-p80", "--tracemark"], 1, "--tracemark is not possible"),
        (&["cyclictest", "-p80", "-D", "soon"], 1, "-D: `soon`"),
        (&["run", "-a", "-t", "-n", "-p99"], 2, "tailbound run -p fifo:99"),
        (&["run", "--interval", "0s"], 2, "--interval"),
        (&["run", "--interval", "5"], 2, "has no unit"),
        (&["run", "--loops", "1000000000000"], 2, "more than a year"),
        (&["run", "--loops", "0"], 2, "--loops"),
        (&["run", "--duration", "-5s"], 2, "-5"),
        (&["run", "--cpus", "999"], 2, "999"),
        (&["run", "--cpus", "3-1"], 2, "backwards"),
        (&["run", "--deadline", "1ns"], 2, "is below the resolution of the monotonic clock"),
        (&["run", "--deadline", "100"], 2, "100us"),
        (&["run", "--policy", "fifo:100"], 2, "1 to 99"),
        (&["run", "--load", "hackbensh"], 2, "hackbensh"),
        (&["run", "--load", "hackbench:gruops=3"], 2, "gruops"),
        (&["run", "--sleep", "prayer"], 2, "nanosleep"),
        (&["run", "--config", "missing.toml"], 2, "missing.toml"),
        (&["run", "--class", "safe", "--deadline", "1ms"], 2, "--rate"),
        (&["run", "--operator", "A.\nNother"], 2, "--operator"),
        (&["run", "--title", ""], 2, "--title"),
        (&["run", "--out", "no/such/folder/x.jsonl"], 3, "no/such/folder"),
        (&["show", "missing.jsonl"], 2, "missing.jsonl"),
        (&["frobnicate"], 2, "frobnicate"),
    ];
    for (words, expected, hint) in cases {
        let out = call(folder.path(), words);
        assert_eq!(status(&out), expected, "{words:?}: {}", stderr(&out));
        assert!(stderr(&out).contains(hint), "{words:?} lacks `{hint}`: {}", stderr(&out));
        assert!(!stderr(&out).contains("panicked"), "{words:?}");
        assert_eq!(stdout(&out), "", "{words:?}: nothing is answered");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no file is left behind");
}

#[test]
fn a_campaign_file_is_obeyed_and_its_mistakes_are_located() {
    let folder = folder();
    let path = folder.path().join("c.toml");
    std::fs::write(
        &path,
        "interval = \"500us\"\nloops = 100\nwarm-up = \"10ms\"\npolicy = \"other\"\n",
    )
    .unwrap();
    let out = call(
        folder.path(),
        &["measure", "cyclic", "-c", "c.toml", "-q", "-o", "-", "--loops", "50"],
    );
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let run = tailbound_core::runfile::read_run(out.stdout.as_slice()).unwrap();
    let plan = &run.header.plan;
    assert_eq!((plan.interval_ns, plan.activations), (500_000, 50), "the command line wins");

    std::fs::write(&path, "interval = \"500us\"\nlops = 100\n").unwrap();
    let out = call(folder.path(), &["measure", "cyclic", "-c", "c.toml"]);
    assert_eq!(status(&out), 2);
    assert!(stderr(&out).contains("line 2") && stderr(&out).contains("lops"), "{}", stderr(&out));
}

#[test]
fn an_existing_file_is_not_overwritten_unless_reported() {
    let folder = folder();
    for name in ["a.tailbound.jsonl", "b.html"] {
        std::fs::write(folder.path().join(name), "precious").unwrap();
    }
    let out = call(folder.path(), &["measure", "cyclic", "-l", "10", "-o", "a.tailbound.jsonl"]);
    assert_eq!(status(&out), 2, "{}", stderr(&out));
    let words = ["run", "-l", "10", "-o", "b.tailbound.jsonl", "--report", "b.html"];
    let out = call(folder.path(), &words);
    assert_eq!(status(&out), 2, "the report would be overwritten: {}", stderr(&out));
    assert!(stderr(&out).contains("--force"));
    for name in ["a.tailbound.jsonl", "b.html"] {
        assert_eq!(std::fs::read_to_string(folder.path().join(name)).unwrap(), "precious");
    }
}

#[test]
fn help_names_every_verb_and_exit_status() {
    let folder = folder();
    let out = call(folder.path(), &["--help"]);
    assert_eq!(status(&out), 0);
    let text = stdout(&out);
    for word in [
        "run",
        "measure",
        "load",
        "report",
        "show",
        "compare",
        "import",
        "completions",
        "Exit status",
        "undecided",
    ] {
        assert!(text.contains(word), "{word}");
    }
    assert!(!text.contains("load-worker"), "the worker is not a public command");
    assert!(!text.contains("trace-guard"), "the guard is not a public command");
    for shell in ["bash", "zsh", "fish"] {
        let out = call(folder.path(), &["completions", shell]);
        assert!(stdout(&out).contains("deadline"), "{shell}");
    }
}

#[test]
fn a_wrong_name_gets_the_one_that_was_meant() {
    let folder = folder();
    let mark = folder.path().join("x.txt");
    std::fs::write(&mark, "1\n2\n").unwrap();
    let cases: [(&[&str], &str); 11] = [
        (&["run", "--load", "hackbnech"], "hackbench"),
        (&["run", "--load", "hackbench:gruops=3"], "groups"),
        (&["run", "--work", "mesages"], "messages"),
        (&["run", "--probe", "signla"], "signal"),
        (&["run", "--probe", "signal:betwen=processes"], "between"),
        (&["run", "--probe", "signal:between=proceses"], "processes"),
        (&["run", "--sleep", "nanosleeep"], "nanosleep"),
        (&["campaign", "show", "mckeney-2009"], "mckenney-2009"),
        (&["import", "--format", "cyclictest-jsn", "x.txt"], "cyclictest-json"),
        (&["lab", "run", "--kernel", "debain:6.12-rt"], "debian"),
        (&["mesure"], "measure"),
    ];
    for (words, meant) in cases {
        let out = call(folder.path(), words);
        assert_eq!(status(&out), 2, "{words:?}: {}", stderr(&out));
        let said = stderr(&out);
        let near = said.contains(&format!("did you mean `{meant}`?"));
        // The words of the command line itself are the parser's, which may name several: `store` is not far from `mesure`.
        let parsers = said.contains("similar") && said.contains(&format!("'{meant}'"));
        assert!(near || parsers, "{words:?}: {said}");
    }
    // What only a file can say is not for asking.
    let out = call(folder.path(), &["run", "--sleep", "polling"]);
    assert!(status(&out) == 2 && stderr(&out).contains("is not one of"), "{}", stderr(&out));
}

#[test]
fn an_option_of_another_verb_is_named_with_it() {
    let folder = folder();
    let told = |words: &[&str]| stderr(&call(folder.path(), words));
    let text = told(&["response", "--workload", "1"]);
    assert!(
        text.contains("--workload is an option of") && text.contains("`tailbound check`"),
        "{text}"
    );
    assert!(!text.contains("as a value"), "{text}");
    // One that nobody has gets no tip, and a similar one is named.
    let text = told(&["response", "-m"]);
    assert!(!text.contains("as a value") && !text.contains("tip"), "{text}");
    let text = told(&["run", "--intervall", "1ms"]);
    assert!(text.contains("'--interval'"), "{text}");
}

#[test]
fn a_process_is_named_alike_to_every_verb_that_looks_at_one() {
    // Above the highest that there can be (proc_sys_kernel(5), pid_max).
    const NOBODY: &str = "4194305";
    let folder = folder();
    for verb in ["blame", "watch", "hot", "check", "response"] {
        for (words, why) in [
            (&[verb, NOBODY][..], "no process 4194305"),
            (&[verb, "--pid", NOBODY], "no process 4194305"),
            (&[verb, "-p", NOBODY, "--comm", "a"], "no process 4194305"),
            (&[verb, "--comm", "no-such", "--comm", "name"], "no thread is named no-such or name"),
            (&[verb, NOBODY, "--pid", "1"], "cannot be used with"),
        ] {
            let out = call(folder.path(), words);
            let said = stderr(&out);
            assert!(status(&out) == 2 && said.contains(why), "{words:?}: {said}");
        }
    }
}
