// SPDX-License-Identifier: MIT OR Apache-2.0
//! `check` and `capture`: every check answers, a capture says the same as the machine and holds nothing else,
//! and nothing is ever written.
//!
//! What this machine is like is not asserted: which checks answer, that they say why, and what follows.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;
use tailbound_sys::sched;

use crate::apart::{on_read_only_mounts, tried_to_write, under_the_filter};
use crate::journals::{entries, own_mounts_lack};
use crate::{call, folder, is_root, skip, status, stderr, stdout};

/// The last CPU that this test may use: on most machines not CPU 0.
fn last_cpu() -> String {
    sched::affinity(0).unwrap().last().unwrap().to_string()
}

fn checked(folder: &Path, words: &[&str]) -> (Value, i32) {
    let all: Vec<&str> = ["check", "--json"].iter().chain(words).copied().collect();
    let out = call(folder, &all);
    assert!([0, 1].contains(&status(&out)), "{words:?}: {}", stderr(&out));
    (serde_json::from_str(&stdout(&out)).unwrap(), status(&out))
}

/// What each check came to.
fn results(answer: &Value) -> BTreeMap<String, String> {
    let word = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = answer["checks"].as_array().unwrap();
    rows.iter().map(|r| (word(r, "id"), word(r, "result"))).collect()
}

fn captured(folder: &Path, words: &[&str]) {
    let all: Vec<&str> = ["capture", "-o", "machine.tar.gz"].iter().chain(words).copied().collect();
    let out = call(folder, &all);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    assert!(stdout(&out).contains("tailbound check --root machine.tar.gz"), "{}", stdout(&out));
}

#[test]
fn its_colours_reach_the_terminal() {
    let folder = folder();
    let text = stdout(&call(folder.path(), &["check", "--all", "--color", "always"]));
    assert!(text.contains("\u{1b}[") && !text.contains('\u{fffd}'), "{text:?}");
}

#[test]
fn every_check_answers_says_why_and_the_exit_status_follows() {
    let folder = folder();
    let known: BTreeSet<&str> = tailbound_rules::catalogue().iter().map(|c| c.id).collect();
    let (cpu, own) = (last_cpu(), std::process::id().to_string());
    for words in [
        &[][..],
        &["--rt-cpus", &cpu],
        &["--rt-cpus", &cpu, "--workload", "polling", "--pid", &own, "--sample", "50ms"],
        &[&own],
    ] {
        let (answer, exit) = checked(folder.path(), words);
        let rows = answer["checks"].as_array().unwrap();
        let ids: BTreeSet<&str> = rows.iter().map(|r| r["id"].as_str().unwrap()).collect();
        assert_eq!(ids, known, "{words:?}");
        assert_eq!(rows.len(), known.len(), "{words:?}: each once");
        for row in rows {
            for key in ["found", "why", "group", "source"] {
                assert!(row[key].as_str().is_some_and(|t| !t.is_empty()), "{key} of {row}");
            }
            for key in ["fix_now", "fix_for_good", "undo"] {
                let text = row[key].as_str().unwrap();
                let gap = ["{rt}", "{hk}", "{mask}"].iter().any(|gap| text.contains(gap));
                assert!(!gap, "a gap was not filled in: {row}");
            }
        }
        let results = results(&answer);
        let count = |level: &str| results.values().filter(|r| *r == level).count();
        for level in ["bad", "warn", "needs-reboot", "unknown", "ok", "not-applicable"] {
            assert_eq!(answer["counts"][level.replace('-', "_")], count(level), "{level}");
        }
        let bad = i32::from(count("bad") > 0);
        assert_eq!(exit, bad, "{words:?}");
        assert_eq!(answer["machine"]["captured"], false);
        let preconditions = answer["preconditions"].as_array().unwrap();
        assert_eq!(preconditions.len(), 6, "{preconditions:?}");
        for p in preconditions {
            assert!(p["holds"].is_boolean() || p["holds"].is_null(), "{p}");
            assert!(p["evidence"].as_str().is_some_and(|t| !t.is_empty()), "{p}");
        }
    }
    // The text says the same: each check that is not well, with the reason.
    let out = call(folder.path(), &["check", "--all", "--rt-cpus", &cpu]);
    let text = stdout(&out);
    assert!(known.iter().all(|id| text.contains(*id)), "{text}");
    assert!(text.contains(&format!("{} checks: ", known.len())), "{text}");
}

#[test]
fn a_captured_machine_answers_as_the_machine_and_as_its_folder() {
    let folder = folder();
    let here = folder.path();
    let cpu = last_cpu();
    captured(here, &["--rt-cpus", &cpu]);
    let archive = GzDecoder::new(std::fs::File::open(here.join("machine.tar.gz")).unwrap());
    tar::Archive::new(archive).unpack(here.join("tree")).unwrap();
    let machine = checked(here, &["--rt-cpus", &cpu]).0;
    for words in [&["--rt-cpus", &cpu][..], &["--rt-cpus", &cpu, "--workload", "polling"], &[]] {
        let at = |root: &str| checked(here, &[&["--root", root], words].concat());
        let (file, tree) = (at("machine.tar.gz"), at("tree"));
        assert_eq!(file, tree, "{words:?}");
        assert_eq!(file.0["machine"]["captured"], true);
    }
    // What only a system call tells is unknown there; what changes by itself is not compared.
    let file = checked(here, &["--root", "machine.tar.gz", "--rt-cpus", &cpu]).0;
    assert_eq!(file["machine"]["kernel"], machine["machine"]["kernel"]);
    let (live, kept) = (results(&machine), results(&file));
    let same = live.iter().filter(|(id, result)| kept.get(*id) == Some(result)).count();
    let other: Vec<_> = live.iter().filter(|(id, r)| kept.get(*id) != Some(r)).collect();
    assert!(same * 10 >= live.len() * 9, "{other:?} {kept:?}");
    assert!(
        other.iter().all(|(id, _)| kept.contains_key(*id)) && live.len() == kept.len(),
        "{other:?}"
    );
}

#[test]
fn a_capture_is_not_replaced_unless_asked() {
    let folder = folder();
    let here = folder.path();
    captured(here, &[]);
    std::fs::write(here.join("precious"), "p").unwrap();
    for name in ["machine.tar.gz", "precious"] {
        let out = call(here, &["capture", "-o", name]);
        assert!(status(&out) == 2 && stderr(&out).contains("--force"), "{}", stderr(&out));
    }
    captured(here, &["--force"]);
    assert_eq!(std::fs::read(here.join("precious")).unwrap(), b"p");
    let out = call(here, &["capture", "-o", "-"]);
    assert!(status(&out) == 2 && stdout(&out).is_empty(), "{}", stderr(&out));
    let out = call(here, &["capture", "-o", "no/such/m.tar.gz"]);
    assert!(status(&out) == 3 && stderr(&out).contains("no/such"), "{}", stderr(&out));
}

/// Words that nobody else says.
const TOLD: &str = "tailbound-told-nobody-7f3a";

#[test]
fn a_capture_holds_no_arguments_environments_names_addresses_or_serial_numbers() {
    use std::os::unix::process::CommandExt as _;
    let folder = folder();
    let here = folder.path();
    let mut child = Command::new("sleep")
        .args(["600"])
        .env(format!("{TOLD}-name"), format!("{TOLD}-value"))
        .arg0(TOLD)
        .spawn()
        .unwrap();
    let pid = child.id().to_string();
    captured(here, &["--pid", &pid]);
    child.kill().unwrap();
    child.wait().unwrap();
    let held = entries(&here.join("machine.tar.gz"));
    assert!(held.keys().any(|p| p.starts_with(&format!("proc/{pid}/task"))), "its threads are");
    for path in held.keys() {
        let last = path.rsplit('/').next().unwrap();
        let private = ["environ", "maps", "fd", "cwd", "exe", "address", "hostname", "machine-id"];
        let of_first = path == "proc/1/environ";
        assert!(!private.contains(&last) || of_first || held[path].is_empty(), "{path}");
        assert!(last != "cmdline" || path == "proc/cmdline", "{path}");
        assert!(!path.starts_with('/') && !path.contains(".."), "{path}");
    }
    no_word_of(&held, &[TOLD.to_owned()]);
    no_word_of(&held, &private_words());
    // The first process of a container often has secrets in its environment.
    if let Some(why) = own_mounts_lack() {
        return skip("root", why);
    }
    let script = r#""$@"; exit $?"#;
    let out = Command::new("unshare")
        .args(["-m", "-p", "-f", "--mount-proc", "sh", "-c", script, "sh"])
        .args([env!("CARGO_BIN_EXE_tailbound"), "capture", "-o", "inside.tar.gz"])
        .env("DATABASE_URL", TOLD)
        .env("container", "podman")
        .current_dir(here)
        .output()
        .unwrap();
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let held = entries(&here.join("inside.tar.gz"));
    no_word_of(&held, &[TOLD.to_owned(), "DATABASE_URL".to_owned()]);
    if let Some(first) = held.get("proc/1/environ") {
        assert_eq!(String::from_utf8_lossy(first), "container=podman\0");
    }
}

/// Hardware addresses, serial numbers, names of this machine, as far as this user may read them.
fn private_words() -> Vec<String> {
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let below = |folder: &str, name: &str| -> Vec<String> {
        let all = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        all.map(|e| read(&e.path().join(name))).collect()
    };
    let mut words = below("/sys/class/net", "address");
    words.retain(|a| a.replace(['0', ':'], "").len() > 2 && a != "ff:ff:ff:ff:ff:ff");
    for name in ["product_serial", "product_uuid", "board_serial", "chassis_serial"] {
        words.push(read(&Path::new("/sys/class/dmi/id").join(name)));
    }
    words.extend(below("/sys/block", "device/serial"));
    words.push(read(Path::new("/etc/machine-id")));
    words.push(read(Path::new("/proc/sys/kernel/hostname")));
    // What is short or stands for nothing is a part of other words.
    words.retain(|w| w.len() >= 8 && !["localhost", "Not Specified"].contains(&w.as_str()));
    words.retain(|w| !w.starts_with("localhost"));
    words
}

fn no_word_of(held: &BTreeMap<String, Vec<u8>>, words: &[String]) {
    for (path, bytes) in held {
        let text = String::from_utf8_lossy(bytes);
        for word in words {
            assert!(!text.contains(word.as_str()) && !path.contains(word.as_str()), "{path}");
        }
    }
}

/// Commands that promise to look only.
fn commands_that_look(cpu: &str, own: &str) -> Vec<Vec<String>> {
    [
        "check --json",
        "check --all",
        &format!("check --json --rt-cpus {cpu} --workload polling --pid {own} --sample 20ms"),
        "tune show --json -i0",
        "tune show -i 10ms",
        "tune plan --profile cyclic --rt-cpus CPU --json",
        "tune plan --profile cyclic --rt-cpus CPU --boot --all",
        "tune plan --profile low-latency-desktop --script",
        "tune plan --set stat-interval=7 --undo-script",
        "tune apply --set stat-interval=7 --dry-run",
        "tune isolate CPU --dry-run",
        "tune status",
        "tune status --json",
        "tune verify",
        "tune history",
        "tune history --json",
        "tune profiles",
        "tune profiles cyclic",
        "tune settings --json",
    ]
    .iter()
    .map(|line| line.replace("CPU", cpu).split(' ').map(str::to_owned).collect())
    .collect()
}

/// What can be compared of two answers some seconds apart.
fn lasting(words: &[&str], out: &Output) -> String {
    let text = stdout(out);
    match (words, serde_json::from_str::<Value>(&text)) {
        // What was watched for some milliseconds is of these.
        (["check", ..], Ok(answer)) if words.contains(&"--sample") => {
            results(&answer).into_keys().collect()
        }
        (["check", ..], Ok(answer)) => results(&answer)
            .into_iter()
            // Counts of the machine since boot, and threads that come and go.
            .filter(|(id, _)| {
                !["virt.steal", "iso.foreign-tasks", "iso.kthreads"].contains(&id.as_str())
            })
            .map(|(id, result)| format!("{id} {result}\n"))
            .collect(),
        (["tune", "show", ..], Ok(answer)) => {
            answer.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
        }
        (["tune", "plan", ..], Ok(plan)) => {
            // Threads come and go.
            let lasting = |s: &&Value| s["target"]["kind"] == "setting";
            let steps = plan["steps"].as_array().unwrap().iter().filter(lasting);
            steps.map(|s| format!("{s}\n")).collect()
        }
        (["tune", "profiles" | "settings" | "status" | "history" | "verify", ..], _) => text,
        _ => String::new(),
    }
}

#[test]
fn looking_opens_nothing_for_writing_and_changes_nothing() {
    let folder = folder();
    let here = folder.path();
    // The filter does see a program that writes: a capture is a file, so is a saved plan.
    for words in [
        &["capture", "-o", "x.tar.gz"][..],
        &["tune", "plan", "--set", "stat-interval=7", "-o", "x.json"],
    ] {
        let Some(out) = under_the_filter(here, words) else { return };
        assert!(tried_to_write(&out), "{words:?}: {:?} {}", out.status, stderr(&out));
    }
    // Nothing of a capture reaches a disk, so nothing of it can be executed there.
    captured(here, &[]);
    let Some(out) = under_the_filter(here, &["check", "--root", "machine.tar.gz"]) else { return };
    assert!(!tried_to_write(&out) && stdout(&out).contains("checks: "), "{}", stderr(&out));
    std::fs::remove_file(here.join("machine.tar.gz")).unwrap();
    let (cpu, own) = (last_cpu(), std::process::id().to_string());
    for words in commands_that_look(&cpu, &own) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let Some(out) = under_the_filter(here, &words) else { return };
        assert!(!tried_to_write(&out), "{words:?} tried to change something");
        let plain = call(here, &words);
        assert_eq!(status(&out), status(&plain), "{words:?}: {}", stderr(&out));
        assert_eq!(lasting(&words, &out), lasting(&words, &plain), "{words:?}");
    }
    assert_eq!(std::fs::read_dir(here).unwrap().count(), 0, "no file is left");
}

#[test]
fn looking_needs_nothing_that_can_be_written_to() {
    if let Some(why) = own_mounts_lack() {
        return skip("root", why);
    }
    let folder = folder();
    let here = folder.path();
    let out = on_read_only_mounts(here, &["capture", "-o", "x.tar.gz"]);
    assert!(status(&out) == 3 || status(&out) == 2, "a capture is a file: {}", stderr(&out));
    let (cpu, own) = (last_cpu(), std::process::id().to_string());
    for words in commands_that_look(&cpu, &own) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let out = on_read_only_mounts(here, &words);
        let plain = call(here, &words);
        assert_eq!(status(&out), status(&plain), "{words:?}: {}", stderr(&out));
        assert_eq!(lasting(&words, &out), lasting(&words, &plain), "{words:?}");
    }
}

/// A gzipped archive of entries: name, kind, link, bytes.
fn packed(all: &[(&str, tar::EntryType, &str, &[u8])]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    for (name, kind, link, bytes) in all {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        // Names as they are: the writer of archives would refuse some of them.
        let raw = header.as_old_mut();
        raw.name[..name.len()].copy_from_slice(name.as_bytes());
        raw.linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        out.write_all(header.as_bytes()).unwrap();
        out.write_all(bytes).unwrap();
        out.write_all(&vec![0; bytes.len().next_multiple_of(512) - bytes.len()]).unwrap();
    }
    out.write_all(&[0; 1024]).unwrap();
    out.finish().unwrap()
}

/// An archive with one file of so many zeros.
fn giant(mib: usize) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    let mut header = tar::Header::new_gnu();
    header.set_size((mib as u64) << 20);
    header.set_path("proc/stat").unwrap();
    header.set_cksum();
    out.write_all(header.as_bytes()).unwrap();
    for _ in 0..mib {
        out.write_all(&vec![0; 1 << 20]).unwrap();
    }
    out.write_all(&[0; 1024]).unwrap();
    out.finish().unwrap()
}

/// An archive of so many folders.
fn many(n: usize) -> Vec<u8> {
    let names: Vec<String> = (0..n).map(|i| format!("proc/{i}/")).collect();
    let kind = tar::EntryType::Directory;
    packed(&names.iter().map(|name| (name.as_str(), kind, "", &[][..])).collect::<Vec<_>>())
}

/// Folders within folders: some hundred bytes, packed twice.
fn deep(n: usize) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for depth in 1..n {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_size(0);
        builder.append_data(&mut header, "d/".repeat(depth), std::io::empty()).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

/// A name said to have a TiB.
fn long_name() -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::GNULongName);
    header.set_size(1 << 40);
    header.set_path("././@LongLink").unwrap();
    header.set_cksum();
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(header.as_bytes()).unwrap();
    out.finish().unwrap()
}

#[test]
fn captures_that_mean_harm_are_refused_by_name_and_nothing_gets_out() {
    use tar::EntryType as Kind;
    let folder = folder();
    let here = folder.path();
    captured(here, &[]);
    let whole = std::fs::read(here.join("machine.tar.gz")).unwrap();
    let outside = here.join("outside");
    std::fs::create_dir(&outside).unwrap();
    let away = outside.display().to_string();
    let up = format!("{}{away}/up", "../".repeat(12));
    let absolute = format!("{away}/absolute");
    let none: &[u8] = b"";
    let cases: Vec<(&str, Vec<u8>, i32, &str)> = vec![
        ("cut", whole[..whole.len() / 2].to_vec(), 2, "not a file of tailbound check capture"),
        ("text", b"it is a text\n".to_vec(), 2, "not a file of tailbound check capture"),
        ("no-bytes", Vec::new(), 2, "not a file of tailbound check capture"),
        ("no-entries", packed(&[]), 3, "CPUs"),
        ("noise", packed(&[])[..18].iter().map(|b| b ^ 0x55).collect(), 2, "not a file"),
        (
            "link",
            packed(&[("proc", Kind::Symlink, &away, none), ("proc/x", Kind::Regular, "", b"x")]),
            2,
            "links",
        ),
        ("hard-link", packed(&[("proc", Kind::Link, "/etc/passwd", none)]), 2, "links"),
        ("device", packed(&[("null", Kind::Char, "", none)]), 2, "devices"),
        ("pipe", packed(&[("pipe", Kind::Fifo, "", none)]), 2, "devices"),
        ("up", packed(&[(&up, Kind::Regular, "", b"x")]), 2, "leads out"),
        ("up-folder", packed(&[("proc/../../up/", Kind::Directory, "", none)]), 2, "leads out"),
        ("absolute", packed(&[(&absolute, Kind::Regular, "", b"x")]), 2, "leads out"),
        ("giant", giant(257), 2, "8 MiB are the most for one file"),
        ("large", packed(&vec![("a", Kind::Regular, "", &[0; 1 << 22][..]); 33]), 2, "twice"),
        ("many", many(100_001), 2, "more than 100000 files"),
        ("deep", deep(1900), 2, "folders deep; 64 are the most"),
        ("long-name", long_name(), 2, "4096 are the most"),
        (
            "file-and-folder",
            packed(&[("a", Kind::Regular, "", b"x"), ("a/b", Kind::Regular, "", b"x")]),
            2,
            "not a file of tailbound check capture",
        ),
    ];
    let temporary = here.join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    for (name, bytes, exit, told) in cases {
        std::fs::write(here.join(name), bytes).unwrap();
        for words in [&["check", "--root", name][..], &["check", "--json", "--root", name]] {
            let out = crate::tailbound()
                .args(words)
                .current_dir(here)
                .env("TMPDIR", &temporary)
                .output()
                .unwrap();
            let said = stderr(&out);
            assert_eq!(status(&out), exit, "{name}: {said}");
            assert!(said.contains(&format!("--root {name}: ")) && said.contains(told), "{said}");
            assert!(!said.contains("panicked") && stdout(&out).is_empty(), "{name}: {said}");
            assert!(!said.contains("temporary"), "it names the file that was given: {said}");
            let left = |folder: &Path| std::fs::read_dir(folder).unwrap().count();
            assert_eq!((left(&outside), left(&temporary)), (0, 0), "{name}");
        }
        std::fs::remove_file(here.join(name)).unwrap();
    }
}

#[test]
fn what_is_no_capture_at_all_is_told() {
    let folder = folder();
    let here = folder.path();
    std::fs::create_dir(here.join("empty")).unwrap();
    let made = Command::new("mkfifo").arg(here.join("pipe")).status().unwrap();
    assert!(made.success());
    for (name, exit, told) in [
        ("missing", 2, "no such file or folder"),
        ("pipe", 2, "it is a named pipe"),
        ("/dev/zero", 2, "it is a device"),
        ("empty", 3, "CPUs"),
    ] {
        let out = call(here, &["check", "--root", name]);
        let said = stderr(&out);
        assert_eq!(status(&out), exit, "{name}: {said}");
        assert!(said.contains(&format!("--root {name}: ")) && said.contains(told), "{said}");
    }
    if !is_root() {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::write(here.join("closed"), "x").unwrap();
        let closed = std::fs::Permissions::from_mode(0o000);
        std::fs::set_permissions(here.join("closed"), closed).unwrap();
        let out = call(here, &["check", "--root", "closed"]);
        assert!(status(&out) == 2 && stderr(&out).contains("closed"), "{}", stderr(&out));
    }
}

#[test]
fn wrong_words_are_refused_with_the_option() {
    let folder = folder();
    captured(folder.path(), &[]);
    for (words, told) in [
        (&["check", "--rt-cpus", "999"][..], "--rt-cpus: CPUs 999 are not online"),
        (&["check", "--rt-cpus", "99999999"], "--rt-cpus"),
        (&["check", "--rt-cpus", "x"], "--rt-cpus"),
        (&["check", "--rt-cpus", "3-1"], "backwards"),
        (&["check", "--rt-cpus", "999", "--root", "machine.tar.gz"], "--rt-cpus"),
        (&["check", "--workload", "lazy"], "polling"),
        (&["check", "--sample", "5"], "--sample"),
        (&["check", "--sample", "soon"], "--sample"),
        (&["check", "--sample", "1s", "--root", "machine.tar.gz"], "cannot be used with"),
        (&["check", "--pid", "-1"], "-1"),
        (&["check", "more"], "more"),
        (&["capture", "--rt-cpus", "x", "-o", "y.tar.gz"], "--rt-cpus"),
        (&["capture", "--rt-cpus", "999", "-o", "y.tar.gz"], "--rt-cpus: CPUs 999 are not online"),
    ] {
        let out = call(folder.path(), words);
        assert_eq!(status(&out), 2, "{words:?}: {}", stderr(&out));
        assert!(stderr(&out).contains(told), "{words:?}: {}", stderr(&out));
        assert!(!stderr(&out).contains("panicked") && stdout(&out).is_empty(), "{words:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no other file is made");
}
