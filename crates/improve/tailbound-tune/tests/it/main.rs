// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans, journals, kills and other writers, on machines that are played and on trees of files.

mod coalescing;
mod heirs;
mod killed;
mod mortal;
mod played;
mod random;
mod resctrl;
mod transactions;
