// SPDX-License-Identifier: MIT OR Apache-2.0
//! What others have placed or sent: links where results go, files that name commands.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::{call, folder, is_root, skip, small, status, stderr};

const SHORT: [&str; 9] = ["run", "-l", "300", "-q", "--warm-up", "10ms", "-p", "other", "--load"];

fn run(folder: &Path, more: &[&str]) -> std::process::Output {
    call(folder, &[&SHORT[..], &["none"], more].concat())
}

/// Every verb that writes a file, its name taken by a link to something precious.
#[test]
fn no_result_is_written_through_a_link() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let first = run(folder.path(), &["-o", "a.tailbound.jsonl"]);
    assert!([0, 1, 5].contains(&status(&first)), "{}", stderr(&first));
    std::fs::write(at("precious"), "precious").unwrap();
    symlink(at("precious"), at("x.html")).unwrap();
    symlink(at("precious"), at("x.tailbound.jsonl")).unwrap();
    symlink(at("nowhere"), at("y.html")).unwrap();
    let a = "a.tailbound.jsonl";
    let cases: [&[&str]; 7] = [
        &["report", a, "-o", "x.html"],
        &["report", a, "-o", "x.html", "--force"],
        &["report", a, "-o", "y.html", "--force"],
        &["compare", a, a, "-o", "x.html", "--force"],
        &["import", a, "-o", "x.tailbound.jsonl", "--force"],
        &["measure", "cyclic", "-l", "10", "-q", "-o", "x.tailbound.jsonl", "--force"],
        &["measure", "work", "syscall", "-q", "-o", "x.tailbound.jsonl", "--force"],
    ];
    for words in cases {
        let out = call(folder.path(), words);
        assert_eq!(status(&out), 2, "{words:?}: {}", stderr(&out));
        let hint = if words.contains(&"--force") { "symbolic link" } else { "exists already" };
        assert!(stderr(&out).contains(hint), "{words:?}: {}", stderr(&out));
    }
    for more in [
        &["-o", "x.tailbound.jsonl", "--force"][..],
        &["-o", "b.tailbound.jsonl", "--report", "x.html", "--force"],
    ] {
        let out = run(folder.path(), more);
        assert_eq!(status(&out), 2, "{more:?}: {}", stderr(&out));
        assert!(stderr(&out).contains("symbolic link"), "{more:?}: {}", stderr(&out));
    }
    assert!(!at("b.tailbound.jsonl").exists(), "found before anything is started");
    assert_eq!(std::fs::read_to_string(at("precious")).unwrap(), "precious");
    assert!(!at("nowhere").exists() && at("x.html").is_symlink(), "links stay as they are");
    let hidden = std::fs::read_dir(folder.path()).unwrap().flatten();
    let hidden: Vec<_> =
        hidden.filter(|e| e.file_name().to_string_lossy().starts_with('.')).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[test]
fn a_campaigns_page_and_folders_are_no_links() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let quick = "loops = 50\npolicy = \"other\"\nload = [\"none\"]\nwarm-up = \"0s\"";
    std::fs::write(at("c.toml"), small::head("[]") + &small::step("one", quick)).unwrap();
    let words = ["campaign", "run", "c.toml", "--out", "f", "--system", "s", "--quiet"];
    std::fs::write(at("precious"), "precious").unwrap();
    std::fs::create_dir_all(at("f")).unwrap();
    std::fs::copy(at("c.toml"), at("f/campaign.toml")).unwrap();
    symlink(at("precious"), at("f/campaign.html")).unwrap();
    let out = call(folder.path(), &words);
    assert_eq!(status(&out), 2, "{}", stderr(&out));
    assert!(stderr(&out).contains("symbolic link"), "{}", stderr(&out));
    std::fs::remove_file(at("f/campaign.html")).unwrap();
    std::fs::create_dir(at("elsewhere")).unwrap();
    symlink(at("elsewhere"), at("f/s")).unwrap();
    let out = call(folder.path(), &words);
    assert_eq!(status(&out), 2, "{}", stderr(&out));
    assert!(stderr(&out).contains("symbolic link"), "{}", stderr(&out));
    std::fs::remove_file(at("f/s")).unwrap();
    let out = call(folder.path(), &words);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    assert!(at("f/s/one.tailbound.jsonl").is_file() && at("f/campaign.html").is_file());
    assert_eq!(std::fs::read_to_string(at("precious")).unwrap(), "precious");
    assert_eq!(std::fs::read_dir(at("elsewhere")).unwrap().count(), 0);
}

#[test]
fn root_is_asked_before_a_files_commands_are_run() {
    if !is_root() {
        return skip("root", "only root is asked");
    }
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let made = at("made");
    let touch = format!("touch {}; sleep 60", made.display());
    let short = "loops = 50\nwarm-up = \"300ms\"\npolicy = \"other\"\n";
    for (name, text) in [
        ("cmd", format!("{short}load-cmd = \"{touch}\"\n")),
        ("load", format!("{short}load = [\"cmd:line={touch}\"]\n")),
        ("work", format!("{short}load = [\"none\"]\nwork = [\"cmd:touch {}\"]\n", made.display())),
    ] {
        std::fs::write(at("c.toml"), text).unwrap();
        let words = ["run", "-c", "c.toml", "-q", "--force", "-o", "r.tailbound.jsonl"];
        let out = call(folder.path(), &words);
        assert_eq!(status(&out), 2, "{name}: {}", stderr(&out));
        let said = stderr(&out);
        assert!(said.contains("touch") && said.contains("--yes"), "{name}: {said}");
        assert!(!made.exists() && !at("r.tailbound.jsonl").exists(), "{name}");
        let out = call(folder.path(), &[&words[..], &["--yes"]].concat());
        assert!([0, 1, 5].contains(&status(&out)), "{name}: {}", stderr(&out));
        assert!(made.exists(), "{name}");
        std::fs::remove_file(&made).unwrap();
        std::fs::remove_file(at("r.tailbound.jsonl")).unwrap();
    }
    // What was typed is not asked for, nor what a file asks of loads of our own.
    let typed = run(folder.path(), &["-o", "t.tailbound.jsonl", "--load-cmd", "sleep 60"]);
    assert!([0, 1, 5].contains(&status(&typed)), "{}", stderr(&typed));
    std::fs::write(at("c.toml"), format!("{short}load = [\"cpu\"]\n")).unwrap();
    let own = call(folder.path(), &["run", "-c", "c.toml", "-q", "-o", "o.tailbound.jsonl"]);
    assert!([0, 1, 5].contains(&status(&own)), "{}", stderr(&own));
    // Variants of a series pass their own words on without being asked again.
    let words = [&SHORT[..], &["none", "--rounds", "6", "--out", "r", "--load-cmd", "sleep 60"]];
    let out = call(folder.path(), &[&words.concat()[..], &["--", "a:", "b: -i 2ms"]].concat());
    assert!(at("r/001-a.tailbound.jsonl").exists(), "{}", stderr(&out));
    // Control characters of a file are shown as such.
    std::fs::write(at("c.toml"), "load-cmd = \"touch \\u001b[2Jx\"\n").unwrap();
    let out = call(folder.path(), &["run", "-c", "c.toml", "-o", "z.tailbound.jsonl"]);
    assert!(!stderr(&out).contains('\u{1b}'), "{}", stderr(&out));
    // A campaign's file is asked for once, before its folder is made.
    let commanded =
        format!("loops = 50\npolicy = \"other\"\nload-cmd = \"{touch}\"\nwarm-up = \"300ms\"");
    std::fs::write(at("k.toml"), small::head("[]") + &small::step("one", &commanded)).unwrap();
    let words = ["campaign", "run", "k.toml", "--out", "k", "--system", "s", "--quiet"];
    let out = call(folder.path(), &words);
    assert_eq!(
        (status(&out), at("k").exists(), made.exists()),
        (2, false, false),
        "{}",
        stderr(&out)
    );
    let out = call(folder.path(), &[&words[..], &["--yes"]].concat());
    assert!(made.exists(), "{}", stderr(&out));
}
