// SPDX-License-Identifier: MIT OR Apache-2.0
//! `libtailbound`: the recorder and its figures for control loops written in C and C++.
//!
//! For whoever has a loop of their own and wants it measured as Tailbound measures: how late each cycle starts, how late it is
//! done, and a run file at the end. The interface is `include/tailbound.h` (C++17: `tailbound.hpp`), which documents it; the
//! functions here are its other half, and a test compares the two. `cargo build --release` gives `libtailbound_capi.a` and
//! `.so`; `make install-lib` of the project installs them as `libtailbound`, with pkg-config and CMake files.
//!
//! ```c
//! tb_config config;
//! tb_config_init(&config, sizeof config);
//! config.period_ns = 1000000;
//! config.completion_late_ns = 500000;
//! tb_recorder *rec = tb_open(&config);
//! for (int64_t due = tb_next_due(rec); running; due = tb_next_due(rec)) {
//!     sleep_until(due);
//!     tb_cycle_start(rec, due);
//!     work();
//!     tb_cycle_end(rec);
//! }
//! tb_finish(rec);
//! tb_write_run(rec, "loop.tailbound.jsonl");
//! tb_close(rec);
//! ```
//!
//! The same calls from Rust, on times that were taken elsewhere:
//!
//! ```
//! use tailbound_capi::*;
//!
//! // SAFETY: all-zero bytes are a valid tb_config, which the call fills.
//! let mut config: tb_config = unsafe { std::mem::zeroed() };
//! // SAFETY: a live struct of that size.
//! assert_eq!(unsafe { tb_config_init(&raw mut config, size_of::<tb_config>()) }, TB_OK);
//! config.period_ns = 1_000_000;
//! // SAFETY: filled above.
//! let recorder = unsafe { tb_open(&config) };
//! assert!(!recorder.is_null());
//! for k in 0..100 {
//!     let due = 5_000_000_000 + k * 1_000_000;
//!     assert_eq!(tb_cycle_start_at(recorder, due, due + 2_000), TB_OK);
//!     assert_eq!(tb_cycle_end_at(recorder, due + 52_000), TB_OK);
//! }
//! assert_eq!(tb_finish(recorder), TB_OK);
//! // SAFETY: all-zero bytes are valid figures, and the struct is live.
//! let figures = unsafe {
//!     let mut figures: tb_figures = std::mem::zeroed();
//!     assert_eq!(tb_snapshot(recorder, &raw mut figures, size_of::<tb_figures>()), TB_OK);
//!     figures
//! };
//! assert_eq!(figures.start.max_ns, 2_000);
//! assert_eq!(tb_close(recorder), TB_OK);
//! ```
//!
//! # Units, errors, features
//!
//! Times are ns, signed: early is negative. Every answer is a status (`TB_OK`, `TB_ERR_…`), and a cold call that fails
//! says why in words ([`tb_last_error`]). There are no features.
//!
//! # Compatibility
//!
//! Rust 1.90. The interface follows semantic versions: before 1.0 a minor version may change it. Programs that were compiled against one version run with every later one of the same minor version: the shared
//! library is called `libtailbound.so.MAJOR.MINOR`.
//!
//! Context: HOT in `hot` and `slots` (what a loop calls in each cycle), COLD elsewhere.
//! Rules of the border: no panic crosses it (cold calls catch, hot ones cannot); a handle is a
//! number that is looked up and never a pointer that is followed, so a null, foreign or closed
//! one is refused.
//! Not here: recording (`tailbound-rt`), figures and verdict (`tailbound-stats`).
#![expect(unsafe_code, reason = "the border to C: raw pointers come in")]
#![deny(missing_docs)]

mod codes;
mod collected;
mod figures;
mod file;
mod hot;
mod numbers;
mod open;
mod run;
mod slots;
mod status;

/// The clock the hot calls read.
mod clock {
    pub(crate) use tailbound_sys::clock::now_ns;
}

pub use codes::*;
pub use figures::{tb_figures, tb_quantile, tb_snapshot, tb_summary};
pub use file::{tb_json, tb_write_json, tb_write_run};
pub use hot::{
    tb_cycle_end, tb_cycle_end_at, tb_cycle_start, tb_cycle_start_at, tb_finish, tb_next_due,
    tb_now,
};
pub use numbers::{
    tb_moments_add, tb_moments_init, tb_moments_kurtosis, tb_moments_mean, tb_moments_merge,
    tb_moments_sd, tb_moments_skewness, tb_p2_add, tb_p2_init, tb_p2_value,
};
pub use open::{tb_close, tb_config, tb_config_init, tb_open, tb_poll};
pub use slots::tb_recorder;
pub use status::{tb_error_text, tb_last_error, tb_version};
