// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything CI runs, in stages that can also be run alone.
//!
//! Each stage says how many of its checks passed, which failed, and which were
//! skipped and why; the last line of all is the sum.

mod background;
mod begin_cost;
mod budget;
mod capi;
mod commands;
mod completed;
pub(crate) mod deadline;
mod disk;
mod examples;
mod extent;
mod firmware;
mod junit;
mod lab;
mod libtest;
mod lints;
mod miri;
mod packages;
mod product;
mod programs;
mod python;
mod registry;
mod run;
mod site;
mod stuck;
pub(crate) mod tally;
mod times;
mod ways;

pub(crate) use run::command;
