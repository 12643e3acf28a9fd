// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose files stay, whose go, and which names are refused.

use super::*;

use std::os::unix::fs::{PermissionsExt as _, symlink};

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file")
}

/// Everything in a folder, hidden names too.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> =
        entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Opens a file as this file system does it, or as one does that has no nameless files.
fn open(to: &Path, existing: Existing, named: bool) -> io::Result<NewFile> {
    if !named {
        return NewFile::open(to, existing);
    }
    assert!(in_place(to, existing)?.is_none());
    let (folder, name) = Folder::of(to)?;
    let (file, beside) = folder.make_named()?;
    Ok(NewFile { file, way: WriteStage::Pending { folder, name, beside: Some(beside), existing } })
}

#[test]
fn a_file_appears_whole_and_an_old_one_stays_or_goes_as_asked() {
    for named in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().join("r");
        let mut new = open(&to, Existing::Keep, named).expect("nothing is there");
        new.file().write_all(b"one").expect("written");
        assert!(!to.exists(), "a name never stands for half a file");
        new.place().expect("placed");
        new.file().write_all(b" two").expect("written on");
        new.place().expect("once is enough");
        new.finish().expect("on the disk");
        assert_eq!(text(&to), "one two");

        let kept = open(&to, Existing::Keep, named).expect_err("it is there");
        assert_eq!(kept.kind(), io::ErrorKind::AlreadyExists);
        std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o600)).expect("set");
        let held = File::open(&to).expect("open");
        let new = open(&to, Existing::Replace, named).expect("may be replaced");
        new.file().write_all(b"three").expect("written");
        assert_eq!(text(&to), "one two", "until the new one is placed");
        drop(new);
        assert_eq!((text(&to).as_str(), names(folder.path()).len()), ("one two", 1), "given up");
        let new = open(&to, Existing::Replace, named).expect("may be replaced");
        new.keep_permissions(&to);
        new.file().write_all(b"three").expect("written");
        new.finish().expect("replaced");
        assert_eq!(text(&to), "three");
        assert_eq!(to.metadata().expect("there").mode() & 0o777, 0o600, "closed stays closed");
        assert_eq!(io::read_to_string(held).expect("read"), "one two", "never truncated");
        assert_eq!(names(folder.path()), ["r"]);
    }
}

#[test]
fn a_name_that_was_taken_meanwhile_is_not_overwritten() {
    for named in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().join("r");
        let new = open(&to, Existing::Keep, named).expect("nothing is there");
        std::fs::write(&to, "theirs").expect("written");
        let late = new.finish().expect_err("somebody was faster");
        assert_eq!(late.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!((text(&to).as_str(), names(folder.path()).len()), ("theirs", 1));
    }
}

#[test]
fn links_are_neither_followed_nor_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let (precious, to) = (folder.path().join("precious"), folder.path().join("r"));
    std::fs::write(&precious, "precious").expect("written");
    symlink(&precious, &to).expect("linked");
    for existing in [Existing::Keep, Existing::Replace] {
        let e = write(&to, existing, b"new").expect_err("a link");
        let said = e.to_string();
        assert_eq!(
            existing == Existing::Replace,
            said.contains("symbolic link") && said.contains("precious"),
            "{said}"
        );
        assert_eq!(text(&precious), "precious");
    }
    // One that comes while the file is being written.
    std::fs::remove_file(&to).expect("removed");
    for existing in [Existing::Keep, Existing::Replace] {
        let new = NewFile::open(&to, existing).expect("nothing is there");
        symlink(&precious, &to).expect("linked");
        new.finish().expect_err("a link by now");
        assert_eq!(text(&precious), "precious");
        std::fs::remove_file(&to).expect("removed");
    }
    assert_eq!(names(folder.path()), ["precious"]);
    // Links among the folders are the caller's business.
    symlink(folder.path(), folder.path().join("way")).expect("linked");
    write(&folder.path().join("way/r"), Existing::Keep, b"new").expect("written");
    assert_eq!(text(&to), "new");
    // A second name of somebody's file: the name is replaced, the file is not written.
    std::fs::hard_link(&precious, folder.path().join("second")).expect("linked");
    write(&folder.path().join("second"), Existing::Replace, b"new").expect("replaced");
    assert_eq!(text(&precious), "precious");
}

#[test]
fn what_is_no_file_is_refused_or_written_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    for path in [folder.path(), Path::new("/"), Path::new(".."), &folder.path().join("r/")] {
        assert!(write(path, Existing::Replace, b"x").is_err(), "{}", path.display());
    }
    write(Path::new("/dev/null"), Existing::Replace, b"x").expect("a device takes it");
    assert!(
        Path::new("/dev/null").symlink_metadata().is_ok_and(|m| m.file_type().is_char_device())
    );
    let full = write(Path::new("/dev/full"), Existing::Replace, b"x").expect_err("full");
    assert_eq!(full.raw_os_error(), Some(libc::ENOSPC));
    let (reader, writer) = io::pipe().expect("a pipe");
    let name = format!("/dev/fd/{}", writer.as_raw_fd());
    write(Path::new(&name), Existing::Replace, b"x").expect("a pipe of our own");
    drop(writer);
    assert_eq!(io::read_to_string(reader).expect("read"), "x");
    let pipe = folder.path().join("pipe");
    let name = CString::new(pipe.as_os_str().as_bytes()).expect("a name");
    // SAFETY: a NUL-terminated name and a number.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let alone = write(&pipe, Existing::Replace, b"x").expect_err("nobody reads: no waiting");
    assert_eq!(alone.raw_os_error(), Some(libc::ENXIO));
}

#[test]
fn a_lock_is_opened_and_nothing_in_it_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (lock, precious) = (folder.path().join("lock"), folder.path().join("precious"));
    open_lock(&lock).expect("made");
    std::fs::write(&lock, "kept").expect("written");
    open_lock(&lock).expect("opened").try_lock().expect("locked");
    assert_eq!(text(&lock), "kept");
    std::fs::write(&precious, "precious").expect("written");
    symlink(&precious, folder.path().join("link")).expect("linked");
    let e = open_lock(&folder.path().join("link")).expect_err("a link");
    assert_eq!((e.raw_os_error(), text(&precious).as_str()), (Some(libc::ELOOP), "precious"));
    assert!(remove(&folder.path().join("link")).is_ok() && precious.exists());
    remove(&folder.path().join("link")).expect("it is gone already");
}

#[test]
fn a_file_given_up_takes_no_other_along() {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("r");
    let mut new = NewFile::open(&to, Existing::Keep).expect("open");
    new.place().expect("placed");
    std::fs::remove_file(&to).expect("removed");
    std::fs::write(&to, "theirs").expect("written");
    new.discard();
    assert_eq!(text(&to), "theirs");
    let mut new = NewFile::open(&to, Existing::Replace).expect("open");
    new.place().expect("placed");
    new.discard();
    assert!(!to.exists());
}

#[test]
fn a_folder_that_takes_nothing_is_told_before_the_work() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o555)).expect("mode");
    let at = folder.path().to_owned();
    // Rights are a thread's to the kernel: as another user in one of its own, for root may write everywhere.
    let other = std::thread::spawn(move || {
        const NOBODY: u32 = 65_534;
        if crate::process::is_root() {
            // SAFETY: integers only; the raw call changes this thread alone.
            let changed = unsafe { libc::syscall(libc::SYS_setresuid, -1, NOBODY, -1) };
            assert_eq!(changed, 0);
        }
        let may = |name: &str| may_write(&at.join(name), Existing::Keep).map_err(|e| e.kind());
        assert_eq!(may("run"), Err(io::ErrorKind::PermissionDenied));
        assert_eq!(may("new/folder/run"), Err(io::ErrorKind::PermissionDenied));
        assert_eq!(
            may_write(&std::env::temp_dir().join("tailbound-none"), Existing::Keep).ok(),
            Some(())
        );
    });
    other.join().expect("no panic");
}
