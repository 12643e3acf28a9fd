// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `barrier`: a barrier of the C library, which the sender reaches last.
//!
//! Context: SETUP. Not here: the medium (`tailbound_sys::handover`), the engine ([`super`]).

use super::{begin, options};
use crate::kind::ProbeKind;

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "barrier",
    about: "hand-over by a barrier of the C library, which the sender reaches last",
    from: "just before pthread_barrier_wait(3) of the sender",
    to: "each receiver's clock read after its pthread_barrier_wait(3) returned",
    options: &[
        options::BETWEEN,
        options::WHERE,
        options::SENDER,
        options::RECEIVERS,
        options::PLANT,
    ],
    ..begin::HAND_OVER
};
