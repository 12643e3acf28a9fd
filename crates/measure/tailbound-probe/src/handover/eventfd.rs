// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `eventfd`: an eventfd.
//!
//! Context: SETUP. Not here: the medium (`tailbound_sys::handover`), the engine ([`super`]).

use super::begin;
use crate::kind::ProbeKind;

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "eventfd",
    about: "hand-over by an eventfd",
    from: "just before write(2) of the number one",
    to: "the receiver's clock read after read(2) returned",
    ..begin::HAND_OVER
};
