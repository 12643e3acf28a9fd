// SPDX-License-Identifier: MIT OR Apache-2.0
//! A disk that becomes full while a run is being written.
//!
//! Units: KiB. The disk is a small tmpfs in a mount namespace of its own.

use std::process::Command;

use tailbound_core::runfile::read_run;
use tailbound_testing::skip;

use crate::alone;
use crate::fault::Instants;

#[test]
fn a_disk_that_becomes_full_loses_nothing() {
    let _alone = alone();
    if !crate::is_root() {
        return skip("root", "mounting a small file system needs root");
    }
    let mut instants = Instants::of("disk");
    for kib in [400, 2000, 8000] {
        let pause = instants.next() * 2.0;
        let place = format!("{kib} KiB, full after {pause:.2} s ({instants})");
        let folder = tempfile::tempdir().unwrap();
        // The disk is gone with the namespace: what it held is copied out first.
        let script = format!(
            "mount -t tmpfs -o size={kib}k none small && cd small || exit 99
             (sleep {pause}; dd if=/dev/zero of=fill bs=4k >/dev/null 2>&1) &
             {0} run -q -D 2s -i 200us --warm-up 100ms --raw --load none -o r.tailbound.jsonl
             status=$?
             wait
             rm -f fill
             cp -r . ../kept
             exit $status",
            env!("CARGO_BIN_EXE_tailbound")
        );
        std::fs::create_dir(folder.path().join("small")).unwrap();
        std::fs::create_dir(folder.path().join("kept")).unwrap();
        let out = Command::new("unshare")
            .args(["-m", "sh", "-c", &script])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        let code = out.status.code();
        assert!(code.is_some_and(|c| [0, 1, 3, 5].contains(&c)), "{place}: {code:?} {said}");
        let kept = folder.path().join("kept/r.tailbound.jsonl");
        let saved = said.split("saved as ").nth(1).map(|p| p.trim().to_owned());
        let read = |path: &std::path::Path| {
            let file = std::fs::File::open(path).unwrap();
            read_run(std::io::BufReader::new(file)).unwrap_or_else(|e| panic!("{place}: {e}"))
        };
        if kept.exists() {
            let run = read(&kept);
            let short = run.end.is_none();
            assert!(!short || saved.is_some(), "{place}: cut off, and nothing saved: {said}");
        } else {
            assert!(code == Some(3) && said.contains("no room"), "{place}: {code:?} {said}");
        }
        if let Some(path) = saved {
            let run = read(path.as_ref());
            std::fs::remove_file(&path).unwrap();
            let measured: u64 = run.threads.iter().map(|t| t.wakeup.n + t.missed.n).sum();
            assert!(run.end.is_some() && measured > 0, "{place}: {said}");
        }
    }
}
