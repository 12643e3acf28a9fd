// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `io-uring`: a pipe that is written and read through io_uring.
//!
//! Context: SETUP. Not here: the medium (`tailbound_sys::handover`), the engine ([`super`]).

use super::begin;
use crate::kind::ProbeKind;

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "io-uring",
    about: "hand-over by a pipe that is written and read through io_uring",
    from: "just before io_uring_enter(2) that submits the write",
    to: "the receiver's clock read after its io_uring_enter(2) returned with the read done",
    ..begin::HAND_OVER
};
