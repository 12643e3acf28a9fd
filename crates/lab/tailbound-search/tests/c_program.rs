// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C program of a sequence of system calls is one that a compiler takes without a warning, and it makes the calls.

use std::fs;
use std::path::Path;
use std::process::Command;

use tailbound_core::calls::{Calls, FORMS};
use tailbound_search::hunt::c_program;
use tailbound_testing::skip;

#[test]
#[expect(clippy::disallowed_methods, reason = "a test starts programs that end by themselves")]
fn the_program_of_every_kind_of_call_compiles_and_makes_them() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join("calls.c"), folder.join("calls"));
    let told = ["a line \\".to_owned(), "two\nlines".to_owned()];
    let calls = Calls::sample();
    assert!(calls.list().len() >= FORMS.len());
    fs::write(&source, c_program(&calls, Some(2), &told)).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]).args([&program, &source]);
    match cc.output() {
        Err(e) => skip("cc", format!("a C compiler makes the program: {e}")),
        Ok(made) => {
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            let ran = Command::new(&program).arg("3").output().unwrap();
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        }
    }
}
