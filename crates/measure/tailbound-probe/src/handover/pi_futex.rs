// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `pi-futex`: a lock with priority inheritance that is released to its waiter.
//!
//! Context: SETUP. Not here: the medium (`tailbound_sys::handover`), the engine ([`super`]).

use super::begin;
use crate::kind::ProbeKind;

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "pi-futex",
    about: "hand-over by a lock with priority inheritance that is released to its waiter",
    from: "just before FUTEX_UNLOCK_PI of the owner",
    to: "the waiter's clock read after FUTEX_LOCK_PI returned with the lock",
    replaces: &["ptsematest"],
    ..begin::HAND_OVER
};
