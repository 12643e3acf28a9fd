// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the memory of the chip by the target.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=rp2040.x");
    println!("cargo:rerun-if-changed=rp2350.x");
    println!("cargo:rustc-check-cfg=cfg(chip, values(\"rp2040\", \"rp2350\"))");
    let target = env::var("TARGET").expect("cargo sets it");
    let chip = match target.as_str() {
        "thumbv6m-none-eabi" => "rp2040",
        "thumbv8m.main-none-eabihf" => "rp2350",
        _ => panic!(
            "the box is an RP2040 (thumbv6m-none-eabi) or RP2350 (thumbv8m.main-none-eabihf), not {target}"
        ),
    };
    println!("cargo:rustc-cfg=chip=\"{chip}\"");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    fs::copy(format!("{chip}.x"), Path::new(&out).join("memory.x")).expect("memory.x");
    println!("cargo:rustc-link-search={out}");
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    println!("cargo:rustc-link-arg-bins=--nmagic");
}
