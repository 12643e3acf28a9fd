// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engines: where a campaign can run, over one trait.
//!
//! Context: COLD.
