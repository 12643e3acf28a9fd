// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is told of cycles: the parts of one.
