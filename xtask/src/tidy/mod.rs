// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules of the workspace that no compiler checks.
//!
//! Each file owns one kind of rule and tests it; a finding says where, which
//! rule, why it exists and what to do.

mod calls;
mod claims;
mod documents;
mod edges;
mod files;
mod finding;
mod findings;
mod hall;
mod headers;
mod names;
mod promises;
mod published;
mod purity;
mod run;
mod text;
mod times;
mod unpacking;
mod versions;
mod writing;

pub(crate) use run::{check, command};
