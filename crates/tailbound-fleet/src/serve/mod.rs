// SPDX-License-Identifier: MIT OR Apache-2.0
//! The server: takes run files of agents, keeps them in a store, and shows them.
//!
//! Context: COLD.
