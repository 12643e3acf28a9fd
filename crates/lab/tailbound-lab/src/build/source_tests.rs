// SPDX-License-Identifier: MIT OR Apache-2.0
//! Archives of kernel sources and patches that mean harm: refused, and nothing of them stays.

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Command;

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).expect("packed");
    out.finish().expect("packed")
}

/// What tar(1) makes of `files`, each with set-user-ID, in one folder.
fn archive(folder: &Path, files: &[&str]) -> PathBuf {
    let top = folder.join("linux-1");
    for file in files {
        let path = top.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, "x").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o6755)).expect("set");
    }
    std::os::unix::fs::symlink("/etc", top.join("outside")).expect("a link");
    std::os::unix::fs::symlink("scripts", top.join("inside")).expect("a link");
    let to = folder.join("linux.tar.gz");
    #[expect(clippy::disallowed_methods, reason = "a test waits for it, and nothing is measured")]
    let made =
        Command::new("tar").arg("-czf").arg(&to).arg("-C").arg(folder).arg("linux-1").status();
    assert!(made.is_ok_and(|s| s.success()));
    to
}

/// Everything below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let all = entries.flat_map(|e| {
        let inside =
            if e.file_type().is_ok_and(|t| t.is_dir()) { below(&e.path()) } else { Vec::new() };
        inside.into_iter().chain([e.path()])
    });
    all.collect()
}

#[test]
fn a_source_is_unpacked_without_special_bits_and_links_that_lead_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::at(&folder.path().join("lab"));
    let path = archive(folder.path(), &["Kconfig", "scripts/kconfig/Makefile", "scripts/run"]);
    let mut notes = Vec::new();
    let source =
        of_archive(&path, &store, &mut |text| notes.push(text.to_owned())).expect("unpacked");
    assert!(source.root.join("inside/run").is_file() && !source.root.join("outside").exists());
    assert!(
        notes.iter().any(|n| n.contains("1 links lead out") && n.ends_with("linux-1/outside")),
        "{notes:?}"
    );
    for path in below(store.folder()) {
        let mode = fs::symlink_metadata(&path).expect("there").mode();
        assert_eq!(mode & 0o6000, 0, "{}", path.display());
    }
    let run = fs::metadata(source.root.join("scripts/run")).expect("there");
    assert_eq!(run.mode() & 0o777, 0o755, "a script can be executed");
    assert_eq!(of_archive(&path, &store, &mut |_| {}).expect("kept").root, source.root);
}

#[test]
fn of_a_source_that_is_refused_nothing_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::at(&folder.path().join("lab"));
    let here = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        path
    };
    let fifo = folder.path().join("fifo.tar");
    #[expect(clippy::disallowed_methods, reason = "a test waits for it, and nothing is measured")]
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.is_ok_and(|s| s.success()));
    let large = here("large.tar", b"");
    let sparse = fs::File::options().write(true).open(&large).expect("there");
    sparse.set_len(5 << 30).expect("sparse");
    let zeros = gzip(&vec![0; 8 << 20]);
    for (path, says) in [
        (archive(folder.path(), &["README", "suid"]), "not one kernel source"),
        (fifo, "named pipe"),
        (PathBuf::from("/dev/zero"), "device"),
        (folder.path().join("none.tar"), "no such folder or archive"),
        (large, "more than 4 GiB"),
        (here("text.tar", b"hello"), "block"),
        (here("old.tar.bz2", b"BZh91AY"), "bzip2"),
        (here("behind.tar.gz", &zeros), "behind its end"),
    ] {
        let e = of_archive(&path, &store, &mut |_| {}).expect_err("refused");
        assert!(
            e.to_string().contains(says) && e.kind() == tailbound_core::FailureKind::Usage,
            "{says}: {e}"
        );
        let left: Vec<PathBuf> = below(store.folder());
        let left: Vec<_> = left.iter().filter(|p| p.is_file() && !p.ends_with(".lock")).collect();
        assert!(left.is_empty(), "{says}: {left:?}");
    }
}

#[test]
fn patches_are_plain_files_of_a_bounded_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let plain = b"--- a/a.c\n+++ b/a.c\n@@ -1 +1 @@\n-x\n+y\n";
    // By its bytes, whatever it is called.
    fs::write(path("good.patch"), gzip(plain)).expect("written");
    fs::write(path("bomb.patch.gz"), gzip(&vec![b'\n'; (256 << 20) + 1])).expect("written");
    fs::write(path("large.patch"), b"").expect("written");
    let sparse = fs::File::options().write(true).open(path("large.patch")).expect("there");
    sparse.set_len(1 << 40).expect("sparse");
    #[expect(clippy::disallowed_methods, reason = "a test waits for it, and nothing is measured")]
    let made = Command::new("mkfifo").arg(path("fifo.patch")).status();
    assert!(made.is_ok_and(|s| s.success()));
    std::os::unix::fs::symlink("/dev/zero", path("zero.patch")).expect("a link");
    let to = path("plain");
    let gather = |name: &str| series::gather(&[path(name).display().to_string()], None, &to);
    let good = gather("good.patch").expect("a patch");
    assert_eq!(good.first().and_then(|p| fs::read(&p.file).ok()).as_deref(), Some(&plain[..]));
    fs::remove_dir_all(&to).expect("removed");
    for (name, says) in [
        ("bomb.patch.gz", "more than 256 MiB"),
        ("large.patch", "more than 256 MiB"),
        ("fifo.patch", "named pipe"),
        ("zero.patch", "device"),
    ] {
        let e = gather(name).expect_err("refused");
        assert!(
            e.to_string().contains(says) && e.kind() == tailbound_core::FailureKind::Usage,
            "{name}: {e}"
        );
        assert!(below(&to).is_empty(), "{name}: {:?}", below(&to));
    }
}
