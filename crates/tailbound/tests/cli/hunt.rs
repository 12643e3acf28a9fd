// SPDX-License-Identifier: MIT OR Apache-2.0
//! `hunt`: what is refused before anything starts, and a hunt on this machine, which goes on where it was. Guests are
//! the business of `cargo xtask test lab`.

use super::{call, folder, skip, status, stderr, stdout};

#[test]
fn words_of_two_places_do_not_go_together() {
    let folder = folder();
    for (words, says) in [
        (&["hunt"][..], "--kernel"),
        (&["hunt", "--here", "-k", "debian:6.12"], "--kernel"),
        (&["hunt", "-k", "debian:6.12", "--each", "1s"], "--here"),
        (&["hunt", "--here", "--each", "1ms"], "at least 200ms"),
        (&["hunt", "--here", "--rounds", "0"], "1 to 100"),
        (&["hunt", "--here", "-c", "3-1"], "backwards"),
        (&["hunt", "--resume", "nowhere"], "corpus.jsonl"),
    ] {
        let out = call(folder.path(), words);
        assert_eq!(status(&out), 2, "{words:?}: {}", stderr(&out));
        assert!(stderr(&out).contains(says), "{words:?}: {}", stderr(&out));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "something was left");
}

#[test]
fn a_hunt_on_this_machine_keeps_what_it_tried_and_goes_on() {
    if !tailbound_sys::process::is_root() {
        return skip("root", "a candidate is measured with a real-time policy");
    }
    let folder = folder();
    let hunt = |n: &str| {
        let words = ["hunt", "--here", "--each", "200ms", "--rounds", "1", "-q", "--json"];
        call(folder.path(), &[&words[..], &["-o", "h", "--evaluations", n]].concat())
    };
    for n in ["1", "2"] {
        let out = hunt(n);
        assert_eq!(status(&out), 0, "{}", stderr(&out));
        let json: serde_json::Value = serde_json::from_str(&stdout(&out)).unwrap();
        assert_eq!(json["evaluations"].to_string(), n);
        // What was known is not run again.
        assert_eq!(json["runs"], 1, "{json}");
        let said = json["sentences"][0].as_str().unwrap();
        assert!(said.starts_with("Nothing later than the worst single load"), "{said}");
    }
    let corpus = std::fs::read_to_string(folder.path().join("h/corpus.jsonl")).unwrap();
    assert_eq!(corpus.lines().count(), 3);
    let left: Vec<_> = std::fs::read_dir(folder.path().join("h")).unwrap().flatten().collect();
    assert_eq!(left.len(), 3, "{left:?}");
    let words = ["hunt", "--here", "--each", "300ms", "--rounds", "1", "-q", "-o", "h"];
    let other = call(folder.path(), &words);
    assert!(status(&other) == 2 && stderr(&other).contains("another hunt"), "{}", stderr(&other));
}
