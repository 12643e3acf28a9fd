// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `semaphore`: a POSIX semaphore of the C library.
//!
//! Context: SETUP. Not here: the medium (`tailbound_sys::handover`), the engine ([`super`]).

use super::begin;
use crate::kind::ProbeKind;

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "semaphore",
    about: "hand-over by a POSIX semaphore of the C library",
    from: "just before sem_post(3)",
    to: "the receiver's clock read after sem_wait(3) returned",
    replaces: &["ptsematest"],
    ..begin::HAND_OVER
};
