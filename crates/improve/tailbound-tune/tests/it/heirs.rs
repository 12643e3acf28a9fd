// SPDX-License-Identifier: MIT OR Apache-2.0
//! What began while a change was applied: put back where it is known from whom it inherited.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use tailbound_core::{CpuSet, Policy};
use tailbound_host::Root;
use tailbound_host::threads::{self, Switches, Thread};
use tailbound_tune::journal::{Entry, Places};
use tailbound_tune::{
    HeirOutcome, InterruptId, Lineage, Machine, Mode, Moment, Plan, Step, System as _, Target,
    ThreadId, UndoReport, apply, find, heir_sentence, undo,
};

use crate::played::{Played, plan};

/// The change is made at this tick.
const MOMENT: u64 = 1000;

fn thread(pid: u32, parent: u32, start_ticks: u64) -> Thread {
    Thread {
        pid,
        parent,
        tid: pid,
        start_ticks,
        name: format!("p{pid}"),
        kernel: false,
        fixed: false,
        policy: Policy::Other,
        nice: 0,
        last_cpu: 0,
        allowed: Ok(CpuSet::default()),
        switches: Ok(Switches::default()),
    }
}

fn cpus(of: &Thread) -> Target {
    Target::Affinity(ThreadId::from(of))
}

fn policy(of: &Thread) -> Target {
    Target::Policy(ThreadId::from(of))
}

fn interrupt(number: u32) -> InterruptId {
    InterruptId { number, chip: "PCI-MSI".to_owned(), actions: vec!["eth0".to_owned()] }
}

fn step(target: Target, old: &str, new: &str) -> Step {
    let (old, new) = (Some(old.to_owned()), Some(new.to_owned()));
    Step { target, old, new, setting: "s".to_owned(), may_fail: false }
}

/// A machine whose init (1) and shell (40) were narrowed to CPU 0, and what began afterwards.
struct Scene {
    machine: Played,
    places: Places,
    _room: tempfile::TempDir,
}

impl Scene {
    fn new(plan: &Plan) -> Self {
        let room = tempfile::tempdir().expect("a folder");
        let places = Places::below(room.path());
        let mut machine = Played {
            moment: Moment { ticks: MOMENT, interrupts: vec![interrupt(5)] },
            ..Played::default()
        };
        for step in &plan.steps {
            machine.states.insert(step.target.to_string(), step.old.clone());
        }
        apply(&mut machine, &places, plan, "t", &mut |_, _| ()).expect("applied");
        Self { machine, places, _room: room }
    }

    fn begins(&mut self, thread: Thread, cpus_now: &str, policy_now: &str) {
        self.machine.set(&cpus(&thread).to_string(), cpus_now);
        self.machine.set(&policy(&thread).to_string(), policy_now);
        self.machine.threads.push(thread);
    }

    fn undone(&mut self, mode: Mode) -> UndoReport {
        let transaction = find(&self.places, 1).expect("readable").expect("there");
        undo(&mut self.machine, &self.places, &transaction, mode, "t").expect("writable")
    }

    fn cpus_of(&self, pid: u32) -> &str {
        self.machine.get(&format!("CPUs of thread {pid} (p{pid})"))
    }

    fn entries(&self) -> Vec<Entry> {
        find(&self.places, 1).expect("readable").expect("there").entries
    }
}

fn narrowed() -> (Plan, Thread, Thread) {
    let (init, shell) = (thread(1, 0, 0), thread(40, 1, 500));
    let plan = plan(vec![step(cpus(&init), "0-3", "0"), step(cpus(&shell), "0-2", "0")]);
    (plan, init, shell)
}

#[test]
fn what_was_forked_meanwhile_gets_what_its_parent_had_and_the_rest_is_left() {
    let (plan, init, shell) = narrowed();
    let mut scene = Scene::new(&plan);
    scene.begins(init, "0", "other");
    scene.begins(shell.clone(), "0", "other");
    // A daemon that init took over; a child of the shell, and its child; another thread of the shell.
    scene.begins(thread(50, 1, MOMENT + 5), "0", "other");
    scene.begins(thread(51, 40, MOMENT + 6), "0", "other");
    scene.begins(thread(52, 51, MOMENT + 7), "0", "other");
    scene.begins(Thread { tid: 41, ..thread(40, 1, MOMENT + 8) }, "0", "other");
    // Given CPUs of its own since; there before the change; a thread of the kernel.
    scene.begins(thread(53, 40, MOMENT + 9), "1", "other");
    scene.begins(thread(39, 1, 400), "0", "other");
    scene.begins(Thread { kernel: true, ..thread(60, 1, MOMENT + 9) }, "0", "other");
    let report = scene.undone(Mode::default());
    assert_eq!((report.left(), report.heirs.len()), (0, 4), "{report:?}");
    let all = [(50, "0-3"), (51, "0-2"), (52, "0-2"), (53, "1"), (39, "0"), (60, "0"), (40, "0-2")];
    for (pid, want) in all {
        assert_eq!(scene.cpus_of(pid), want, "{pid}");
    }
    assert_eq!(scene.machine.get("CPUs of thread 41 (p40)"), "0-2");
    let told = report.heirs.iter().map(heir_sentence).collect::<Vec<_>>().join("\n");
    assert!(
        told.contains(
            "CPUs of thread 50 (p50): began meanwhile and inherited 0 from 1 (p1): set to 0-3"
        ),
        "{told}"
    );
    // Each is in the journal before it is written.
    let heirs = scene.entries().iter().filter(|e| matches!(e, Entry::Heir { .. })).count();
    assert_eq!(heirs, 4);
}

#[test]
fn one_whose_parent_has_ended_is_told_and_put_back_only_by_force() {
    let shell = thread(40, 1, 500);
    let orphan = || thread(70, 1, MOMENT + 1);
    let of = |mode: Mode| {
        let mut scene = Scene::new(&plan(vec![step(cpus(&shell), "0-3", "0")]));
        scene.begins(thread(1, 0, 0), "0-3", "other");
        scene.machine.gone.insert(cpus(&shell).to_string());
        scene.begins(orphan(), "0", "other");
        let report = scene.undone(mode);
        (report.heirs, scene.cpus_of(70).to_owned(), report.outcomes.len())
    };
    let (heirs, now, _) = of(Mode::default());
    let [HeirOutcome { heir, outcome: None }] = heirs.as_slice() else { panic!("{heirs:?}") };
    assert_eq!((&heir.lineage, now.as_str()), (&Lineage::Unknown, "0"));
    let told = heir_sentence(&heirs[0]);
    assert!(told.contains("taskset --pid --cpu-list 0-3 70"), "{told}");
    assert_eq!(of(Mode { force: true, rebooted: false }).1, "0-3");
}

#[test]
fn a_real_time_policy_that_was_handed_on_ends_and_an_ordinary_one_proves_nothing() {
    let (server, shell) = (thread(30, 1, 10), thread(40, 1, 500));
    let plan = plan(vec![
        step(policy(&server), "other", "fifo:80"),
        step(policy(&shell), "fifo:5", "other"),
    ]);
    let mut scene = Scene::new(&plan);
    scene.begins(server, "0-3", "fifo:80");
    scene.begins(shell, "0-3", "other");
    scene.begins(thread(31, 30, MOMENT + 1), "0-3", "fifo:80");
    scene.begins(thread(90, 40, MOMENT + 1), "0-3", "other");
    let report = scene.undone(Mode::default());
    assert_eq!(report.heirs.len(), 1, "{report:?}");
    assert_eq!(scene.machine.get("policy of thread 31 (p31)"), "other");
}

#[test]
fn an_interrupt_that_was_set_up_meanwhile_gets_the_default_of_before() {
    let default = Target::setting("/proc/irq/default_smp_affinity", tailbound_tune::Codec::Mask);
    let mut scene = Scene::new(&plan(vec![step(default, "0-3", "0")]));
    scene.machine.moment.interrupts.extend([interrupt(6), interrupt(7)]);
    for (number, now) in [(5, "0"), (6, "0"), (7, "2")] {
        scene.machine.set(&Target::Interrupt(interrupt(number)).to_string(), now);
    }
    let report = scene.undone(Mode::default());
    assert_eq!(report.heirs.len(), 1, "{report:?}");
    for (number, want) in [(5, "0"), (6, "0-3"), (7, "2")] {
        let name = format!("CPUs of interrupt {number} (eth0)");
        assert_eq!(scene.machine.get(&name), want, "{number}");
    }
}

#[test]
fn a_journal_without_the_moment_says_that_heirs_are_not_known() {
    let (plan, ..) = narrowed();
    let mut scene = Scene::new(&plan);
    let mut transaction = find(&scene.places, 1).expect("readable").expect("there");
    for entry in &mut transaction.entries {
        if let Entry::Begin { moment, .. } = entry {
            *moment = None;
        }
    }
    let report = undo(&mut scene.machine, &scene.places, &transaction, Mode::default(), "t");
    let report = report.expect("writable");
    assert_eq!((report.left(), report.heirs.len()), (0, 0));
    assert!(report.heirs_unknown.expect("a reason").contains("at which moment"));
}

/// A shell on this machine, ended with the test.
struct Shell(std::process::Child);

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[expect(clippy::disallowed_methods, reason = "a shell of the test's own, ended with it")]
#[test]
fn a_process_that_a_shell_began_on_fewer_cpus_gets_those_of_the_shell_before() {
    let root = Root::real();
    let first = |text: &str| text.parse::<CpuSet>().ok().and_then(|c| c.iter().next());
    let mut shell = Shell(
        Command::new("sh")
            .args(["-c", "read go; sleep 60 <&- >&- 2>&- & echo $!; read go; kill $!"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh"),
    );
    let mut machine = Machine::new(root.clone());
    let id = |pid| ThreadId::from(&threads::thread(&root, pid).expect("it is there"));
    let target = Target::Affinity(id(shell.0.id()));
    let old = machine.read(&target).expect("readable");
    let one = first(old.as_deref().unwrap_or_default()).expect("a CPU").to_string();
    if Some(&one) == old.as_ref() {
        return tailbound_testing::skip("cpus", "this test may use one CPU only");
    }
    let room = tempfile::tempdir().expect("a folder");
    let places = Places::below(room.path());
    let narrow = plan(vec![step(target, old.as_deref().unwrap_or_default(), &one)]);
    apply(&mut machine, &places, &narrow, "t", &mut |_, _| ()).expect("applied");
    let mut input = shell.0.stdin.take().expect("a pipe");
    input.write_all(b"\n").expect("it reads");
    let mut said = String::new();
    BufReader::new(shell.0.stdout.take().expect("a pipe")).read_line(&mut said).expect("it says");
    let child = Target::Affinity(id(said.trim().parse().expect("a number")));
    assert_eq!(machine.read(&child), Ok(Some(one)), "inherited");
    let transaction = find(&places, 1).expect("readable").expect("there");
    let report = undo(&mut machine, &places, &transaction, Mode::default(), "t").expect("undone");
    assert_eq!(machine.read(&child), Ok(old), "{report:?}");
    assert_eq!((report.left(), report.heirs_unknown.as_deref()), (0, None));
    // The shell ends its child before it ends itself.
    input.write_all(b"\n").expect("it reads");
    drop(shell.0.wait());
}
