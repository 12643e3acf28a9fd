// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `socket`: a socket: of the unix family, TCP or UDP over loopback.
//!
//! Context: SETUP. Not here: the medium (`tailbound_sys::handover`), the engine ([`super`]).

use super::{begin, options};
use crate::kind::ProbeKind;

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "socket",
    about: "hand-over by a socket: of the unix family, TCP or UDP over loopback",
    from: "just before write(2) of eight bytes",
    to: "the receiver's clock read after read(2) returned",
    options: &[
        options::CARRIER,
        options::BETWEEN,
        options::WHERE,
        options::SENDER,
        options::ROUND_TRIP,
        options::HOPS,
        options::REHEARSE,
        options::PLANT,
    ],
    ..begin::HAND_OVER
};
