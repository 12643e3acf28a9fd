// SPDX-License-Identifier: MIT OR Apache-2.0
//! The binary: see the library.
fn main() {}
