// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exceedances of a run whose period is looked for: those of each thread of the judged context.
