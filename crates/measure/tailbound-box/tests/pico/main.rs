// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's side of the box against a simulated box in simulated time.

mod check;
mod session;
mod simulated_box;
