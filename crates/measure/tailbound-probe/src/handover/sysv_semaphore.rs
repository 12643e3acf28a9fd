// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `sysv-semaphore`: a System V semaphore.
//!
//! Context: SETUP. Not here: the medium (`tailbound_sys::handover`), the engine ([`super`]).

use super::begin;
use crate::kind::ProbeKind;

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "sysv-semaphore",
    about: "hand-over by a System V semaphore",
    from: "just before semop(2) that adds one",
    to: "the receiver's clock read after its semop(2) returned",
    replaces: &["svsematest"],
    ..begin::HAND_OVER
};
