// SPDX-License-Identifier: MIT OR Apache-2.0
//! Error messages, and the boundary that no panic crosses.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::codes::*;

/// A call that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: i32,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(status: i32, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }
    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self::new(TB_ERR_ARGUMENT, text)
    }
    pub(crate) fn handle() -> Self {
        Self::new(TB_ERR_HANDLE, "this recorder is null, was never opened, or was closed")
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Runs a cold call; keeps what went wrong for [`tb_last_error`].
pub(crate) fn guarded(work: impl FnOnce() -> Result<(), Failure>) -> i32 {
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return TB_OK,
        Ok(Err(failure)) => failure,
        Err(_) => {
            Failure::new(TB_ERR_BUG, "a bug of libtailbound; the message is on standard error")
        }
    };
    let text = CString::new(failure.text.replace('\0', " ")).unwrap_or_default();
    // Fails only while the thread is being torn down: then nobody asks.
    drop(LAST.try_with(|last| last.replace(text)));
    failure.status
}

/// What the last failed cold call of this thread was about; valid until its next one.
#[unsafe(no_mangle)]
pub extern "C" fn tb_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The meaning of a status.
#[unsafe(no_mangle)]
pub extern "C" fn tb_error_text(status: i32) -> *const c_char {
    text(status).as_ptr()
}

fn text(status: i32) -> &'static CStr {
    match status {
        TB_OK => c"done",
        TB_ERR_HANDLE => c"the recorder is null, was never opened, or was closed",
        TB_ERR_ARGUMENT => c"an argument is null, out of range or not a number",
        TB_ERR_ORDER => c"a due time not after the one before, or an end without a start",
        TB_ERR_BUSY => c"another thread is in a call of the same loop",
        TB_ERR_FULL => c"as many recorders are open as there can be; close one",
        TB_ERR_MEMORY => c"no memory, or not allowed to lock more",
        TB_ERR_IO => c"the file could not be written",
        TB_ERR_SIZE => c"the buffer is too small",
        TB_ERR_NO_DATA => c"there is no data for an answer yet",
        TB_ERR_BUG => c"a bug of libtailbound",
        _ => c"not a status of libtailbound",
    }
}

/// The version of the library that is running: `0.2.0`.
#[unsafe(no_mangle)]
pub extern "C" fn tb_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
