// SPDX-License-Identifier: MIT OR Apache-2.0
//! What may happen outside of the model of the theoretical bound, and by which call it shows.

/// Functions whose call means that something outside of the model happened, and what.
pub const OUTSIDE: [(&str, &str, &str); 3] = [
    (
        "deadline tasks",
        "enqueue_task_dl",
        "a deadline task became ready, which goes before every thread of a fixed priority",
    ),
    (
        "stop machine",
        "cpu_stopper_thread",
        "a stopper thread ran, which goes before every other thread",
    ),
    (
        "fair server",
        "fair_server_pick_task",
        "the fair server let other threads go before those of a fixed priority, as it does when they wait for too long",
    ),
];
