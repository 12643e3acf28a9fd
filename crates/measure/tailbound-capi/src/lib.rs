// SPDX-License-Identifier: MIT OR Apache-2.0
//! `libtailbound`: the recorder and its figures for control loops written in C and C++.
//!
//! Context: HOT in `hot` and `slots` (what a loop calls in each cycle), COLD elsewhere.
//! Units: ns. The interface is `include/tailbound.h`, which documents it; the functions here are
//! its other half, and a test compares the two.
//! Rules of the border: no panic crosses it (cold calls catch, hot ones cannot); a handle is a
//! number that is looked up and never a pointer that is followed, so a null, foreign or closed
//! one is refused; every answer is a status, and a cold call that fails says why in words.
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
