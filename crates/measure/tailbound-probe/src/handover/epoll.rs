// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `epoll`: an eventfd that is waited for by epoll.
//!
//! Context: SETUP. Not here: the medium (`tailbound_sys::handover`), the engine ([`super`]).

use super::begin;
use crate::kind::ProbeKind;

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "epoll",
    about: "hand-over by an eventfd that is waited for by epoll",
    from: "just before write(2) of the number one",
    to: "the receiver's clock read after epoll_wait(2) returned; the read(2) comes after it",
    ..begin::HAND_OVER
};
