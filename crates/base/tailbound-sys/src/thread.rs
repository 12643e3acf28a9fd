// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that are created with their scheduling policy.
//!
//! Context: SETUP. A thread that starts as SCHED_OTHER on a busy CPU and promotes itself
//! may wait a second behind a real-time hog before its first instruction; these are
//! created with policy and priority, move to their CPU as their first action, and touch
//! their stack before they do anything else.
//! Source: pthread_attr_setinheritsched(3), pthread_create(3).

use std::ffi::c_void;
use std::fs::File;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;

use crate::error::SysError;
use crate::sched::{self, Attributes, PolicyTrial};

/// Attributes of a new thread.
#[derive(Clone, Debug)]
pub struct ThreadSpec {
    /// Policy and priority; SCHED_DEADLINE is set by the thread itself, as pthreads cannot.
    pub attributes: Attributes,
    /// The CPUs it moves to first; empty: wherever its creator may run.
    pub cpus: Vec<u32>,
    /// Folder of the threaded control group that it joins before it moves, where CPUs belong to one.
    pub group: Option<PathBuf>,
    /// Stack size.
    pub stack_bytes: usize,
}

type Slot<T> = Arc<Mutex<Option<Result<T, SysError>>>>;

/// A running thread that yields a `T`.
#[derive(Debug)]
pub struct Thread<T> {
    id: libc::pthread_t,
    slot: Slot<T>,
}

struct Start<T> {
    spec: ThreadSpec,
    body: Box<dyn FnOnce() -> T + Send>,
    slot: Slot<T>,
}

/// Creates a thread that runs `body`.
///
/// # Errors
/// EPERM when the policy is not allowed: nothing was started then.
pub fn spawn<T: Send + 'static>(
    spec: ThreadSpec,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<Thread<T>, SysError> {
    let slot: Slot<T> = Arc::new(Mutex::new(None));
    let stack = spec.stack_bytes;
    let explicit = (spec.attributes.policy != sched::SCHED_DEADLINE).then_some(spec.attributes);
    let start = Box::new(Start { spec, body: Box::new(body), slot: Arc::clone(&slot) });
    let raw = Box::into_raw(start);
    match create(stack, explicit, entry::<T>, raw.cast()) {
        Ok(id) => Ok(Thread { id, slot }),
        Err(e) => {
            // SAFETY: the thread was not created, so the box is still ours.
            drop(unsafe { Box::from_raw(raw) });
            Err(e)
        }
    }
}

/// May this process create threads like this? Tries it: the calling thread has the policy for a moment where it can, else another.
///
/// # Errors
/// What the kernel refused, and what it would need.
pub fn try_spec(spec: ThreadSpec) -> Result<(), SysError> {
    match sched::try_policy(&spec.attributes)? {
        PolicyTrial::Had => Ok(()),
        PolicyTrial::NotHere => spawn(spec, || ())?.join(),
    }
}

fn create(
    stack: usize,
    explicit: Option<Attributes>,
    entry: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> Result<libc::pthread_t, SysError> {
    let ok = |code: i32, call| if code == 0 { Ok(()) } else { Err(SysError::code(call, "", code)) };
    // SAFETY: all-zero bytes are a valid place for pthread_attr_init to write to.
    let mut attr: libc::pthread_attr_t = unsafe { std::mem::zeroed() };
    // SAFETY: initialises the live attr.
    ok(unsafe { libc::pthread_attr_init(&raw mut attr) }, "pthread_attr_init")?;
    let made = (|| {
        // SAFETY: writes the initialised attr.
        let sized = unsafe { libc::pthread_attr_setstacksize(&raw mut attr, stack) };
        ok(sized, "pthread_attr_setstacksize")?;
        if let Some(a) = explicit {
            // SAFETY: all-zero bytes are a valid sched_param.
            let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
            param.sched_priority = i32::try_from(a.priority).unwrap_or(0);
            // SAFETY: the three calls write the initialised attr and read a live param.
            unsafe {
                ok(
                    libc::pthread_attr_setinheritsched(&raw mut attr, libc::PTHREAD_EXPLICIT_SCHED),
                    "pthread_attr_setinheritsched",
                )?;
                ok(
                    libc::pthread_attr_setschedpolicy(&raw mut attr, a.policy),
                    "pthread_attr_setschedpolicy",
                )?;
                ok(
                    libc::pthread_attr_setschedparam(&raw mut attr, &raw const param),
                    "pthread_attr_setschedparam",
                )?;
            }
        }
        let mut id = std::mem::MaybeUninit::<libc::pthread_t>::uninit();
        // SAFETY: writes the id on success; `entry` takes ownership of `argument`.
        let code =
            unsafe { libc::pthread_create(id.as_mut_ptr(), &raw const attr, entry, argument) };
        ok(code, "pthread_create")
            .map_err(|e| e.needs("root, CAP_SYS_NICE or RLIMIT_RTPRIO (and a real-time budget where the cgroup has none)"))?;
        // SAFETY: pthread_create succeeded and wrote it.
        Ok(unsafe { id.assume_init() })
    })();
    // SAFETY: destroys the attr initialised above, once.
    unsafe { libc::pthread_attr_destroy(&raw mut attr) };
    made
}

extern "C" fn entry<T: Send + 'static>(argument: *mut c_void) -> *mut c_void {
    // SAFETY: `spawn` leaked exactly this box for exactly this call.
    let Start { spec, body, slot } = *unsafe { Box::from_raw(argument.cast::<Start<T>>()) };
    let result = prepare(&spec).map(|()| {
        catch_unwind(AssertUnwindSafe(body))
            .map_err(|_| SysError::code("thread", "it panicked: a bug of ours", 0))
    });
    if let Ok(mut place) = slot.lock() {
        *place = Some(result.and_then(|r| r));
    }
    std::ptr::null_mut()
}

/// Source: Documentation/admin-guide/cgroup-v2.rst, "Threads".
fn join_group(group: &Path) -> Result<(), SysError> {
    let path = group.join("cgroup.threads");
    let joined = File::options().write(true).open(&path).and_then(|mut f| f.write_all(b"0"));
    joined.map_err(|e| {
        let errno = e.raw_os_error().unwrap_or(0);
        SysError::code("write", path.display().to_string(), errno)
            .needs("to be started in the group of these CPUs: tailbound tune exec -- PROGRAM")
    })
}

fn prepare(spec: &ThreadSpec) -> Result<(), SysError> {
    if let Some(group) = &spec.group {
        join_group(group)?;
    }
    if !spec.cpus.is_empty() {
        sched::set_affinity(0, &spec.cpus)?;
    }
    if spec.attributes.policy == sched::SCHED_DEADLINE || spec.attributes.nice != 0 {
        sched::set(0, &spec.attributes)?;
    }
    touch_stack();
    Ok(())
}

/// Faults in 32 KiB of stack, more than the loop and everything it calls can use.
#[inline(never)]
#[expect(clippy::large_stack_arrays, reason = "a large stack array is the purpose")]
fn touch_stack() {
    let mut page = [0u8; 32 << 10];
    std::hint::black_box(&mut page);
}

impl<T> Thread<T> {
    /// Waits for the thread's end and takes what it yielded.
    ///
    /// # Errors
    /// What kept it from starting its work.
    pub fn join(self) -> Result<T, SysError> {
        // SAFETY: the thread was created joinable and is joined once.
        let code = unsafe { libc::pthread_join(self.id, std::ptr::null_mut()) };
        if code != 0 {
            return Err(SysError::code("pthread_join", "", code));
        }
        let taken = self.slot.lock().ok().and_then(|mut place| place.take());
        taken.unwrap_or_else(|| {
            Err(SysError::code("thread", "it left nothing behind: a bug of ours", 0))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_born_where_and_as_asked() {
        let cpu = *sched::affinity(0).expect("own affinity").last().expect("at least one CPU");
        let spec = |policy, priority| ThreadSpec {
            attributes: Attributes { policy, priority, ..Attributes::default() },
            cpus: vec![cpu],
            group: None,
            stack_bytes: 256 << 10,
        };
        let look =
            || (sched::get(0).expect("own policy"), sched::affinity(0).expect("own affinity"));
        let other = spawn(spec(sched::SCHED_OTHER, 0), look).expect("allowed").join().expect("ran");
        assert_eq!((other.0.policy, other.1), (sched::SCHED_OTHER, vec![cpu]));
        match spawn(spec(sched::SCHED_FIFO, 12), look) {
            Ok(thread) => {
                let fifo = thread.join().expect("ran");
                assert_eq!((fifo.0.policy, fifo.0.priority), (sched::SCHED_FIFO, 12));
            }
            Err(e) => {
                assert!(e.is_permission(), "{e}");
                tailbound_testing::skip("rt", e);
            }
        }
    }
}
