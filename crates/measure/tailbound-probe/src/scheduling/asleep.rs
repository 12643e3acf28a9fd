// SPDX-License-Identifier: MIT OR Apache-2.0
//! Does a thread sleep by now? What a controller must know before it lets go of what the
//! thread is to wait for.
//!
//! Context: SETUP in `of`, HOT in `is` (one system call, no allocation).
//! A player says that it is about to wait, and then does: only the kernel knows when it really
//! does. Source: proc(5), /proc/PID/task/TID/stat, third field.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use tailbound_sys::error::SysError;

/// The kernel's word on one thread of this process.
#[derive(Debug)]
pub(super) struct Asleep(File);

impl Asleep {
    /// Of the thread `tid`.
    ///
    /// # Errors
    /// No such thread, or no /proc.
    pub(super) fn of(tid: i32) -> Result<Self, SysError> {
        let path = format!("/proc/self/task/{tid}/stat");
        File::open(&path)
            .map(Self)
            .map_err(|e| SysError::code("open", path, e.raw_os_error().unwrap_or(0)))
    }

    /// Does it sleep now?
    pub(super) fn is(&self) -> bool {
        let mut text = [0u8; 128];
        let Ok(n) = self.0.read_at(&mut text, 0) else { return false };
        // The name may hold parentheses and blanks: count from the last one.
        let text = text.get(..n).unwrap_or(&[]);
        let Some(at) = text.iter().rposition(|b| *b == b')') else { return false };
        text.get(at + 2) == Some(&b'S')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use tailbound_sys::sched::gettid;

    #[test]
    fn a_thread_that_waits_sleeps_and_the_one_that_asks_does_not() {
        let (send, receive) = channel::<()>();
        let (tell, told) = channel();
        let thread = std::thread::spawn(move || {
            tell.send(gettid()).expect("someone listens");
            receive.recv()
        });
        let asleep = Asleep::of(told.recv().expect("its id")).expect("it lives");
        while !asleep.is() {
            std::thread::yield_now();
        }
        assert!(!Asleep::of(gettid()).expect("it lives").is());
        drop(send);
        assert!(thread.join().is_ok());
    }
}
