// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many machines: where a campaign runs (`engine`), and the server that keeps and shows what they measured (`serve`).
//!
//! The only crate with an async runtime, and only `serve` uses it: engines start programs and wait.

pub mod changes;
pub mod engine;
pub mod regressions;
pub mod serve;
