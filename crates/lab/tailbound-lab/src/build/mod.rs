// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels built from source: patched, configured, checked, compiled, kept.
//!
//! Not here: booting them.

mod commits;
mod configure;
mod fragment;
mod git;
mod kconfig;
mod make;
mod product;
mod request;
pub mod script;
mod series;
mod source;
mod suite;
mod toolchain;
mod work;

pub use self::commits::{Commit, Commits};
pub use self::fragment::{FRAGMENTS, Fragment};
pub use self::make::Compiling;
pub use self::product::{BuildManifest, builds, kernel};
pub use self::request::{BuildTest, Request, Source};
pub use self::series::PatchRecord;
pub use self::source::SourceRecord;
pub use self::suite::{TestResult, table};
pub use self::work::Workshop;
