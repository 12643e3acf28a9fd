// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `futex`: a wait on a word in memory: FUTEX_WAKE to FUTEX_WAIT.
//!
//! Context: SETUP. Not here: the medium (`tailbound_sys::handover`), the engine ([`super`]).

use super::begin;
use crate::kind::ProbeKind;

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "futex",
    about: "hand-over by a wait on a word in memory: FUTEX_WAKE to FUTEX_WAIT",
    from: "just before the sender adds one to the word and calls FUTEX_WAKE",
    to: "the receiver's clock read after its wait was over",
    replaces: &["ptsematest"],
    ..begin::HAND_OVER
};
