// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text for terminals and pipes.

pub mod bars;
pub mod ink;
pub(crate) mod lanes;
pub(crate) mod page;
pub(crate) mod report;

pub use page::Style;
pub use report::text;
