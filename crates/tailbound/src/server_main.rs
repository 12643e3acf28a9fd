// SPDX-License-Identifier: MIT OR Apache-2.0
//! The binary `tailbound-server`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    tailbound::server_main()
}
