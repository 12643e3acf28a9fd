// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `pipe`: a pipe.
//!
//! Context: SETUP. Not here: the medium (`tailbound_sys::handover`), the engine ([`super`]).

use super::begin;
use crate::kind::ProbeKind;

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "pipe",
    about: "hand-over by a pipe",
    from: "just before write(2) of eight bytes",
    to: "the receiver's clock read after read(2) returned",
    ..begin::HAND_OVER
};
