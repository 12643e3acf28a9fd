// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `signal`: a signal to a waiting thread, once or around a ring of threads.
//!
//! Context: SETUP. Not here: the medium (`tailbound_sys::handover`), the engine ([`super`]).

use super::begin;
use crate::kind::ProbeKind;

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "signal",
    about: "hand-over by a signal to a waiting thread, once or around a ring of threads",
    from: "just before tgkill(2) of the sender",
    to: "the receiver's clock read after sigwaitinfo(2) returned",
    replaces: &["signaltest", "sigwaittest", "LTP pthread_kill_latency"],
    ..begin::HAND_OVER
};
