// SPDX-License-Identifier: MIT OR Apache-2.0
//! Only its tests: the firmware in an emulator.
