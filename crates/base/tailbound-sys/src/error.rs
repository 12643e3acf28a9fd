// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a refused system call looks like to a person: which call, on what, why, and
//! what it would need.
//!
//! Context: SETUP, COLD. Source: errno(3).

use std::io;

/// A system call that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call}{}: {}{}", phrase_what(.what), io::Error::from_raw_os_error(*.errno), phrase_needs(.needs))]
pub struct SysError {
    /// The call.
    pub call: &'static str,
    /// What it was about: a path, a CPU, a policy; may be empty.
    pub what: String,
    /// The error number.
    pub errno: i32,
    /// What would make it work, if that is known: a capability, a limit, a kernel option.
    pub needs: &'static str,
}

fn phrase_what(what: &str) -> String {
    if what.is_empty() { String::new() } else { format!(" ({what})") }
}

fn phrase_needs(needs: &str) -> String {
    if needs.is_empty() { String::new() } else { format!("; needs {needs}") }
}

impl SysError {
    /// An error with the calling thread's errno.
    #[must_use]
    pub fn last(call: &'static str, what: impl Into<String>) -> Self {
        Self::code(call, what, io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }
    /// An error with a given errno.
    #[must_use]
    pub fn code(call: &'static str, what: impl Into<String>, errno: i32) -> Self {
        Self { call, what: what.into(), errno, needs: "" }
    }
    /// Says what would make it work, for permission errors.
    #[must_use]
    pub fn needs(mut self, needs: &'static str) -> Self {
        if matches!(self.errno, libc::EPERM | libc::EACCES | libc::ENOMEM) {
            self.needs = needs;
        }
        self
    }
    /// What the standard library calls it.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        io::Error::from_raw_os_error(self.errno).kind()
    }
    /// Is it there already, or in use?
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.errno == libc::EBUSY
    }
    /// Would it have to wait, which it was asked not to?
    #[must_use]
    pub fn is_would_block(&self) -> bool {
        self.errno == libc::EAGAIN
    }
    /// Was permission refused?
    #[must_use]
    pub fn is_permission(&self) -> bool {
        matches!(self.errno, libc::EPERM | libc::EACCES)
    }
}

/// Turns the `-1` convention into a result.
pub(crate) fn check<T: PartialOrd + Default>(
    result: T,
    call: &'static str,
    what: &str,
) -> Result<T, SysError> {
    if result < T::default() { Err(SysError::last(call, what)) } else { Ok(result) }
}
