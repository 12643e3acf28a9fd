// SPDX-License-Identifier: MIT OR Apache-2.0
//! A real make on a makefile of three lines: errors found, progress counted, ends obeyed.

use std::cell::Cell;
use std::time::Instant;

use super::*;

const MAKEFILE: &str = "good:\n\t@echo '  CC      a.o'; echo '  LD      b'; test \"$(LOCALVERSION)\" = -tailbound\n\
bad:\n\t@echo '  CC      bad.o'; cd $(O) && gcc -c bad.c\n\
slow:\n\t@echo $$$$ > $(O)/pid; sleep 1000\n";

fn make(folder: &Path) -> Option<Make> {
    if ["make", "gcc"].iter().any(|name| program::find(name).is_err()) {
        tailbound_testing::skip("make", "there is no make or no gcc");
        return None;
    }
    fs::write(folder.join("Makefile"), MAKEFILE).expect("written");
    fs::write(folder.join("bad.c"), "int main(void)\n{\n\treturn missing;\n}\n").expect("written");
    Some(Make {
        source: folder.to_owned(),
        out: folder.to_owned(),
        arch: Arch::of_host(),
        toolchain: Toolchain { cross: "", compiler: String::new(), ccache: false },
        base: folder.to_owned(),
    })
}

#[test]
fn errors_are_found_and_objects_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(make) = make(folder.path()) else { return };
    let log = folder.path().join("log");
    let built = make.build(&["good"], 1, &log, &mut |_| {}, &|| false).expect("built");
    assert_eq!(built.objects, 2);
    let e = make.build(&["bad"], 1, &log, &mut |_| {}, &|| false).unwrap_err();
    let text = e.to_string();
    assert!(
        e.kind() == tailbound_core::FailureKind::Cannot && text.contains("bad.c:3:16: error:"),
        "{text}"
    );
    assert!(text.contains("missing") && text.contains(&log.display().to_string()), "{text}");
    let e = make.ask(&["none"], &[]).unwrap_err().to_string();
    assert!(e.contains("No rule to make target"), "{e}");
}

#[test]
fn a_build_ends_when_asked_to_and_leaves_nothing_running() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(make) = make(folder.path()) else { return };
    let log = folder.path().join("log");
    let begun = Instant::now();
    let pid = folder.path().join("pid");
    let looks = Cell::new(0);
    let stop = || {
        looks.set(looks.get() + 1);
        pid.exists() && looks.get() > 5
    };
    let e = make.build(&["slow"], 1, &log, &mut |_| {}, &stop).unwrap_err();
    assert!(matches!(e, LabError::Interrupted), "{e}");
    assert!(begun.elapsed() < Duration::from_secs(100), "{:?}", begun.elapsed());
    let shell = fs::read_to_string(&pid).expect("its shell's number");
    assert!(!Path::new("/proc").join(shell.trim()).exists(), "the shell is still there");
}

#[test]
fn the_first_error_is_found_among_the_noise() {
    let log = "  CC      a.o\nIn file included from b.c:1:\n../kernel/b.c:12:5: error: 'x' undeclared\n   12 |     x = 1;\n      |     ^\n\
               make[3]: *** [scripts/Makefile.build:243: b.o] Error 1\n";
    let text = reason(log);
    assert!(text.starts_with("../kernel/b.c:12:5: error: 'x' undeclared\n"), "{text}");
    assert!(text.contains("12 |     x = 1;") && !text.contains("make["), "{text}");
    assert_eq!(
        reason("ld: a.o: undefined reference to `y'\nmake: *** [x] Error 1"),
        "ld: a.o: undefined reference to `y'"
    );
    assert!(reason("***\n*** The source tree is not clean\n").contains("***"));
    assert_eq!(reason(""), "without a word");
}
