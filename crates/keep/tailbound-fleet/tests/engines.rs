// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engines for real: this machine, and a server of ssh on loopback with keys and configuration of its own.
//!
//! The machine's own lock is taken, so the tests are one.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "children and pauses of tests")]

mod sshd;

use std::fs;
use std::path::Path;
use std::time::Duration;

use tailbound_fleet::engine::target::Reach;
use tailbound_fleet::engine::{EngineError, Lease, Load, Target, Task, of};

fn target(name: &str, reach: Reach) -> Target {
    Target { name: name.to_owned(), reach, tags: Vec::new(), cpus: None, folder: None, seed: None }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

#[test]
fn one_machine_is_held_once_by_whatever_way_and_a_lost_lease_is_said() {
    let folder = tempfile::tempdir().unwrap();
    // By ssh nothing of our environment comes along: both ways are to have one lock.
    let lock = std::env::var("TAILBOUND_LOCK_FOLDER");
    let lock = lock.map(|at| format!("SetEnv TAILBOUND_LOCK_FOLDER={at}\n")).unwrap_or_default();
    let Some((_server, config)) = sshd::begin(folder.path(), &lock) else { return };
    let here = of(&target("here", Reach::Local));
    let config = Some(config);
    let there = of(&target("there", Reach::Ssh { host: "board".to_owned(), config }));

    // Another test of this machine may have it for a while.
    let taken = (0..1800).find_map(|_| match there.reserve(&mut |_| {}) {
        Err(EngineError::Held(_)) => {
            std::thread::sleep(Duration::from_millis(100));
            None
        }
        other => Some(other.unwrap()),
    });
    let Some(Lease::Shell(mut lease)) = taken else { panic!("it has no shell, or is never free") };
    // The same machine by another way.
    assert!(matches!(here.reserve(&mut |_| {}), Err(EngineError::Held(_))));
    let facts = there.list(None).unwrap();
    assert!(facts.held.is_some() && facts.cpus > 0, "{facts:?}");

    let mut said = Vec::new();
    // Its status comes by another way than what it says, and is told when all is said.
    let many = "for i in 1 2 3 4 5 6 7 8 9; do echo; done >&2; printf \"it's $1\" >&2; exit 7";
    for _ in 0..20 {
        said.clear();
        let told = words(&["sh", "-c", many, "sh", "a b"]);
        let status = lease.run(&told, &mut |l| said.push(l.to_owned())).unwrap();
        assert_eq!((status, said.len(), said.last().unwrap().as_str()), (7, 10, "it's a b"));
    }

    // What is put is run there, with the words of a campaign.
    let own = folder.path().join("program");
    fs::write(&own, "#!/bin/sh\n[ \"$1\" = --version ] || echo \"$@\" >\"$5/run\"\n").unwrap();
    let results = folder.path().join("results");
    let load = Load {
        own: &own,
        programs: &[],
        campaign: "text\n",
        identity: "0123456789abcdef",
        folder: &results,
        notes: folder.path(),
    };
    let mut held = Lease::Shell(lease);
    let placed = there.put(&held, &facts, &load).unwrap();
    assert_eq!(fs::read_to_string(&placed.campaign).unwrap(), "text\n");
    let task = Task {
        placed: &placed,
        load: &load,
        part: "one",
        at: 1,
        of: 1,
        scale: 0.5,
        begin_at_ns: Some(1_500_000_000),
    };
    assert_eq!(there.run(&mut held, &task, &mut |_| {}).unwrap(), 0);
    there.get(&held, &placed, &load).unwrap();
    let said = fs::read_to_string(results.join("run")).unwrap();
    assert!(said.starts_with("campaign run ") && said.contains("--only one"), "{said}");
    assert!(said.ends_with("--system there --scale 0.5 --begin-at 1.500000000\n"), "{said}");
    // What is here is removed there, and nothing that is not the same.
    let run = results.join("run");
    fs::write(&run, "other").unwrap();
    let kept = there.forget(&held, &placed, &load).unwrap_err().to_string();
    assert!(kept.contains("./run") && kept.contains("nothing was removed"), "{kept}");
    assert!(Path::new(&placed.folder).join("run").exists());
    there.get(&held, &placed, &load).unwrap();
    there.forget(&held, &placed, &load).unwrap();
    assert!(!Path::new(&placed.folder).parent().unwrap().exists() && run.exists());

    let Lease::Shell(mut lease) = held else { panic!("it has no shell") };

    // The connection is cut while something runs.
    let holder = i32::try_from(lease.holder()).unwrap();
    let cut = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        tailbound_sys::process::kill(tailbound_sys::process::Pid(holder), 9).unwrap();
    });
    let lost = lease.run(&words(&["sleep", "30"]), &mut |_| {});
    cut.join().unwrap();
    assert!(matches!(lost, Err(EngineError::Lost(_))), "{lost:?}");
    drop(lease);
    // What ran was ended, and then the machine is free.
    let freed = (0..100).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        here.reserve(&mut |_| {}).ok()
    });
    here.release(freed.unwrap());
}
