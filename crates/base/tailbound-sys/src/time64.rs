// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C library's calls that take or give points of time, with 64 bits for the seconds on every machine.
//!
//! Context: HOT. On 64-bit machines they are libc's. On 32-bit machines libc's have 32 bits, which end in January 2038;
//! glibc 2.34 and musl 1.2 have others under names of their own. libc's switch to these (`libc_unstable_time64`) is for a whole
//! program, and others' crates do not compile with it (filetime 0.2.29).
//! Not here: spans, for which 68 years are enough; calls without the C library (`raw_time`).
//! Source: glibc, "64-bit time symbols"; musl 1.2.0's release notes, "time64".

#[cfg(target_pointer_width = "64")]
pub(crate) use libc::{
    clock_gettime, clock_nanosleep, gettimeofday, itimerspec, time, timer_settime, timerfd_settime,
    timespec, timeval,
};

#[cfg(target_pointer_width = "32")]
pub(crate) use self::wide::{
    clock_gettime, clock_nanosleep, gettimeofday, itimerspec, time, timer_settime, timerfd_settime,
    timespec, timeval,
};

const _: () = assert!(size_of::<timespec>() == 16 && size_of::<timeval>() == 16);

#[cfg(target_pointer_width = "32")]
mod wide {
    use libc::{c_int, c_long, c_void, clockid_t, timer_t};

    #[cfg(target_endian = "big")]
    compile_error!(
        "the nanoseconds of a big-endian 32-bit machine lie behind the padding, which nobody has tried"
    );

    #[repr(C)]
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct timespec {
        pub(crate) tv_sec: i64,
        pub(crate) tv_nsec: c_long,
        pub(crate) padding: c_long,
    }

    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct timeval {
        pub(crate) tv_sec: i64,
        pub(crate) tv_usec: i64,
    }

    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct itimerspec {
        pub(crate) it_interval: timespec,
        pub(crate) it_value: timespec,
    }

    unsafe extern "C" {
        #[link_name = "__clock_gettime64"]
        pub(crate) fn clock_gettime(clock: clockid_t, at: *mut timespec) -> c_int;
        #[link_name = "__clock_nanosleep_time64"]
        pub(crate) fn clock_nanosleep(
            clock: clockid_t,
            flags: c_int,
            until: *const timespec,
            left: *mut timespec,
        ) -> c_int;
        #[cfg_attr(target_env = "gnu", link_name = "__gettimeofday64")]
        #[cfg_attr(target_env = "musl", link_name = "__gettimeofday_time64")]
        pub(crate) fn gettimeofday(at: *mut timeval, zone: *mut c_void) -> c_int;
        #[link_name = "__time64"]
        pub(crate) fn time(at: *mut i64) -> i64;
        #[link_name = "__timer_settime64"]
        pub(crate) fn timer_settime(
            timer: timer_t,
            flags: c_int,
            new: *const itimerspec,
            old: *mut itimerspec,
        ) -> c_int;
        #[link_name = "__timerfd_settime64"]
        pub(crate) fn timerfd_settime(
            fd: c_int,
            flags: c_int,
            new: *const itimerspec,
            old: *mut itimerspec,
        ) -> c_int;
    }
}
