// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures in every format: what is read of good ones, and that bad ones end in an error.

mod formats;
mod hostile;
mod support;
