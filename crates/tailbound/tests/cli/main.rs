// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program as its users run it: arguments in, files and exit statuses out. No test
//! asserts a latency of this machine; counts, invariants and verdicts that hold anywhere.
//!
//! ```text
//! usage.rs    what is refused, and how          ends.rs     Ctrl-C, kill, full disks
//! measure.rs  what a measurement must hold      omission.rs coordinated omission
//! files.rs    show, report, compare, import     ground.rs   other users, namespaces
//! cyclictest.rs the verb and the name `cyclictest`
//! rounds.rs   variants in turn, and compared
//! decide.rs   benchmarks, and the choice between two systems
//! loads.rs    loads with phases, benchmarks and their rates
//! lab.rs      what the lab refuses           bounds.rs from files to a statement
//! interruptions.rs what takes time from chosen CPUs
//! observe.rs  the kernel's tracing beside a run; blame.rs what it says of late wake-ups
//! probes.rs   what holds for every probe; probe_*.rs what holds for some; probes_page.rs docs/probes.md
//! remains.rs what a killed process may leave behind (used by ../faults too); killed_starts.rs kills while verbs start to trace
//! judged.rs   one context is judged by every command
//! promised.rs keys of answers, and figures of earlier files, that stay
//! campaign.rs published measurements done again, kills, and their pages
//! export.rs   formats of other tools, packed files
//! tune_show.rs threads and interrupts, looked at only; tune_live.rs in the interactive view
//! check.rs    what is wrong with a machine: looked at only, and captured
//! tune.rs     changes: made, looked after, undone, refused; apart.rs and journals.rs keep them apart
//! tune_for_now.rs changes for a while: of a run, an experiment, `--keep`
//! hot.rs      samples of busy CPUs; stacks.rs programs in the kernel beside --blame
//! monitor.rs  the wake-ups of all real-time threads of the machine
//! watch.rs    the cycles of another program's threads
//! serve.rs    a store over HTTP: kills, tokens, refusals
//! store.rs    many runs, kept, asked and pruned
//! fleet.rs    a campaign on several machines; machine.rs whose turn it is on one
//! box_run.rs  pulses from outside, by a simulated box
//! hostile.rs  files that mean harm: escape sequences, pipes; signals.rs what never ends, ended by a signal
//! ```
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "children and pauses of tests")]

#[path = "../../../measure/tailbound-import/tests/import/altered.rs"]
mod altered;
mod apart;
mod bisect;
mod blame;
mod blame_trace;
mod bounds;
mod box_run;
mod campaign;
mod check;
mod container;
mod cyclictest;
mod decide;
mod duration;
mod ends;
mod export;
mod files;
mod fleet;
mod hostile;
mod hot;
mod hunt;
mod integrity;
mod interruptions;
mod journals;
mod judged;
mod killed_starts;
mod lab;
mod loads;
mod machine;
mod measure;
mod monitor;
mod monitor_dashboard;
mod observe;
mod omission;
mod ordinary_user;
mod probe_answer;
mod probe_clocks;
mod probe_handover;
mod probe_noise;
mod probe_periodic;
mod probe_scheduling;
mod probes;
mod probes_page;
mod promised;
#[path = "../../../measure/tailbound-stimulus/tests/port/pty_box.rs"]
mod pty_box;
mod remains;
mod rounds;
mod serve;
mod sibling;
mod signals;
#[path = "../../../measure/tailbound-box/tests/pico/simulated_box.rs"]
mod simulated_box;
mod small;
#[path = "../../../keep/tailbound-fleet/tests/sshd/mod.rs"]
mod sshd;
mod stacks;
mod store;
mod tasks;
mod threshold;
mod tune;
mod tune_for_now;
mod tune_live;
mod tune_show;
mod usage;
mod walls;
mod watch;

use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tailbound_core::Run;
use tailbound_core::runfile::read_run;
use tailbound_sys::process::is_root;
use tailbound_testing::skip;

/// How long a test waits for what must come: no statement about this machine, however busy it is.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(180);

/// Held by each test that starts `periodic-load` with its usual set: two of them at a time are more real-time work than
/// the CPUs have, and starve whoever is to hear Ctrl-C.
fn real_time_work() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program under test.
fn tailbound() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailbound"));
    command.env("NO_COLOR", "1");
    // Tests measure beside each other: there is no lock of the machine but in those about it (machine.rs, fleet.rs).
    command.env(LOCK_FOLDER, "/nonexistent");
    command
}

/// Names the folder of the machine's lock.
const LOCK_FOLDER: &str = "TAILBOUND_LOCK_FOLDER";

/// Runs it with these arguments in `folder`.
fn call(folder: &Path, words: &[&str]) -> Output {
    tailbound().args(words).current_dir(folder).output().unwrap()
}

/// A folder that everybody may write to, and a copy of the program in it: the build folder may be
/// closed to other users.
fn folder_for_everybody() -> (tempfile::TempDir, std::path::PathBuf) {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let exe = folder.path().join("tailbound");
    tailbound_testing::copy_program(Path::new(env!("CARGO_BIN_EXE_tailbound")), &exe);
    (folder, exe)
}

/// As [`call`]; deadline threads of tests beside this one may have what the kernel admits of
/// the CPUs: then once more.
fn call_admitted(folder: &Path, words: &[&str]) -> Output {
    let begun = std::time::Instant::now();
    loop {
        let out = call(folder, words);
        let busy = status(&out) == 3 && stderr(&out).contains("other deadline tasks have");
        if !busy || begun.elapsed() > PATIENCE {
            return out;
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

/// Sends a signal. By the call: not every machine has kill(1).
fn send(pid: u32, signal: &str) {
    let number = match signal {
        "HUP" => 1,
        "INT" => 2,
        "KILL" => 9,
        "TERM" => 15,
        other => panic!("which signal is {other}?"),
    };
    let pid = tailbound_sys::process::Pid(pid.try_into().unwrap());
    tailbound_sys::process::kill(pid, number).unwrap();
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn read(path: &Path) -> Run {
    let file = std::fs::File::open(path).unwrap();
    read_run(std::io::BufReader::new(file)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}
