// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `mqueue`: a POSIX message queue.
//!
//! Context: SETUP. Not here: the medium (`tailbound_sys::handover`), the engine ([`super`]).

use super::begin;
use crate::kind::ProbeKind;

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "mqueue",
    about: "hand-over by a POSIX message queue",
    from: "just before mq_send(3) of eight bytes",
    to: "the receiver's clock read after mq_receive(3) returned",
    replaces: &["pmqtest"],
    ..begin::HAND_OVER
};
