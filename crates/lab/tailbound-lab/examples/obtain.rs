// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fetches a kernel by its name and prints what a boot needs to know.
//!
//! `cargo run -p tailbound-lab --example obtain -- debian:6.12-rt x86_64`
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use tailbound_lab::error::OptionError;
use tailbound_lab::kernel::{self, KernelName};
use tailbound_lab::{Arch, LabError, Store};

fn main() -> Result<(), LabError> {
    let mut words = std::env::args().skip(1);
    let name: KernelName = words.next().unwrap_or_else(|| "debian:6.12-rt".to_owned()).parse()?;
    let arch = words
        .next()
        .map_or(Ok(Arch::of_host()), |a| a.parse())
        .map_err(OptionError::RecordedArch)?;
    let found = kernel::obtain(&name, arch, &Store::of_user()?, &mut |line| eprintln!("{line}"))?;
    println!("{found:#?}");
    if let Some(modules) = &found.modules {
        println!(
            "veth, brd, loop: {:#?}",
            kernel::modules::closure(modules, &["veth", "brd", "loop"])?
        );
    }
    Ok(())
}
