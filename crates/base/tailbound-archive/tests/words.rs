// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the bytes of an archive become in a message: one plain line of bounded length.

use tailbound_archive::{Limits, walk};

#[test]
fn an_archive_that_an_error_quotes_commands_no_terminal() {
    let name: Vec<u8> = b"a\x1b[2J\r\nb".iter().copied().cycle().take(100).collect();
    // A sum that is no number, and one that is wrong.
    for sum in [*b"\x13\x1b]0;t\x07\xff", *b"0000000 "] {
        let mut block = [b'x'; 1024];
        block[..100].copy_from_slice(&name);
        block[148..156].copy_from_slice(&sum);
        let said = walk(block.as_slice(), &Limits::CAPTURE, &mut |_| Ok(()));
        let said = said.expect_err("it is none").to_string();
        assert!(!said.chars().any(char::is_control), "{said:?}");
        assert!(said.chars().count() < 300, "{said}");
    }
}
