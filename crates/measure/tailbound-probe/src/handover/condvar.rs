// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `condvar`: a condition variable of the C library, to one or many waiters.
//!
//! Context: SETUP. Not here: the medium (`tailbound_sys::handover`), the engine ([`super`]).

use super::{begin, options};
use crate::kind::ProbeKind;

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "condvar",
    about: "hand-over by a condition variable of the C library, to one or many waiters",
    from: "just before pthread_mutex_lock(3) of the sender, which adds one, broadcasts and unlocks",
    to: "the receiver's clock read after pthread_cond_wait(3) and pthread_mutex_unlock(3)",
    replaces: &["LTP async_handler", "LTP pthread_cond_latency", "LTP pthread_cond_many"],
    options: &[
        options::BETWEEN,
        options::WHERE,
        options::SENDER,
        options::RECEIVERS,
        options::PLANT,
    ],
    ..begin::HAND_OVER
};
