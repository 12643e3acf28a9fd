// SPDX-License-Identifier: MIT OR Apache-2.0
//! The firmware and its PIO program in emulators.

mod board;
mod firmware;
mod host;
mod line;
mod second;
