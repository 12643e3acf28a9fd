// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opening a recorder, emptying its rings, closing it.
//!
//! Context: SETUP, COLD. Units: ns.
//! What the loop will touch is touched here: memory is mapped and faulted in, and a scratch
//! loop runs through every path of the recorder, which also measures what a cycle costs.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tailbound_core::Context;
use tailbound_core::plan::{INTERVAL_MAX_NS, INTERVAL_MIN_NS};
use tailbound_core::record::SelfCost;
use tailbound_core::units::exact;
use tailbound_rt::jobs::{Counts, Jobs};
use tailbound_rt::recorder::Recorder;
use tailbound_sys::clock::{
    CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_TAI, now_ns, resolution_ns,
};
use tailbound_sys::mem::{Prefaulted, Zeroed};

use crate::codes::*;
use crate::collected::{Collected, Limits, Setup, Side};
use crate::slots::{self, tb_recorder};
use crate::status::{Failure, guarded};

/// What a loop is; `struct tb_config` of the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tb_config {
    /// Bytes of this struct as the program knows it; set by [`tb_config_init`].
    pub size: usize,
    /// Name for people; null: `loop`.
    pub name: *const c_char,
    /// Scheduling policy of the loop's thread as declared, `fifo:80`; null: not known.
    pub policy: *const c_char,
    /// From one due time to the next.
    pub period_ns: i64,
    /// Latest acceptable start after the due time, or `TB_NONE`.
    pub start_late_ns: i64,
    /// Earliest acceptable start, as a time before the due time, or `TB_NONE`.
    pub start_early_ns: i64,
    /// Latest acceptable completion after the due time, or `TB_NONE`.
    pub completion_late_ns: i64,
    /// Earliest acceptable completion, as a time before the due time, or `TB_NONE`.
    pub completion_early_ns: i64,
    /// Starts later than this are kept one by one; `TB_NONE`: later than `start_late_ns`.
    pub start_threshold_ns: i64,
    /// Completions later than this are kept one by one; `TB_NONE`: than `completion_late_ns`.
    pub completion_threshold_ns: i64,
    /// Confidence of statements about rates.
    pub confidence: f64,
    /// Clock of the due times: CLOCK_MONOTONIC, CLOCK_TAI, CLOCK_BOOTTIME or CLOCK_REALTIME.
    pub clock: i32,
    /// CPU the loop's thread is pinned to as declared; -1: not pinned or not known.
    pub cpu: i32,
}

const DEFAULTS: tb_config = tb_config {
    size: size_of::<tb_config>(),
    name: std::ptr::null(),
    policy: std::ptr::null(),
    period_ns: 0,
    start_late_ns: TB_NONE,
    start_early_ns: TB_NONE,
    completion_late_ns: TB_NONE,
    completion_early_ns: TB_NONE,
    start_threshold_ns: TB_NONE,
    completion_threshold_ns: TB_NONE,
    confidence: 0.95,
    clock: CLOCK_MONOTONIC,
    cpu: -1,
};

/// The recorders that are open. The lock is held to look one up, not to work with it.
static OPEN: Mutex<BTreeMap<usize, Arc<Mutex<Collected>>>> = Mutex::new(BTreeMap::new());

fn open_ones() -> MutexGuard<'static, BTreeMap<usize, Arc<Mutex<Collected>>>> {
    // A panic while it was held left a map that is whole: it only inserts and removes.
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Works with what is kept of an open recorder; one thread at a time.
pub(crate) fn with_kept<R>(
    recorder: *const tb_recorder,
    work: impl FnOnce(&mut Collected) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let handle = recorder.addr();
    if !slots::is_open(handle) {
        return Err(Failure::handle());
    }
    let kept = open_ones().get(&handle).cloned().ok_or_else(Failure::handle)?;
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    work(&mut kept)
}

/// Fills `config` with the defaults; `size` is `sizeof *config`.
///
/// # Safety
/// `config` is null or points to `size` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tb_config_init(config: *mut tb_config, size: usize) -> i32 {
    guarded(|| {
        let known = size.min(size_of::<tb_config>());
        if config.is_null() || size < size_of::<usize>() {
            return Err(Failure::argument("tb_config_init: config is null, or size is too small"));
        }
        // SAFETY: the caller's promise; at most `size` bytes are written, as bytes. What a newer
        // header has beyond our struct is zero.
        unsafe {
            std::ptr::write_bytes(config.cast::<u8>(), 0, size);
            let defaults = tb_config { size, ..DEFAULTS };
            std::ptr::copy_nonoverlapping(
                (&raw const defaults).cast::<u8>(),
                config.cast::<u8>(),
                known,
            );
        }
        Ok(())
    })
}

/// Opens a recorder for one loop. Null when it fails: [`crate::tb_last_error`] says why.
///
/// # Safety
/// `config` is null or was filled by [`tb_config_init`]; its texts are null or end in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tb_open(config: *const tb_config) -> *mut tb_recorder {
    let mut handle = 0;
    guarded(|| {
        // SAFETY: the caller's promise.
        let (setup, start, completion) = unsafe { read(config) }?;
        handle = open(setup, start, completion)?;
        Ok(())
    });
    std::ptr::without_provenance_mut(handle)
}

/// The set-up that `config` describes, checked.
///
/// # Safety
/// As for [`tb_open`].
unsafe fn read(config: *const tb_config) -> Result<(Setup, Limits, Limits), Failure> {
    if config.is_null() {
        return Err(Failure::argument("tb_open: config is null"));
    }
    // SAFETY: the caller's promise; `size` is its first member.
    let size = unsafe { config.cast::<usize>().read_unaligned() };
    if !(size_of::<usize>()..=4096).contains(&size) {
        return Err(Failure::argument("tb_open: config.size is not a size: call tb_config_init"));
    }
    let mut c = DEFAULTS;
    let known = size.min(size_of::<tb_config>());
    // SAFETY: the caller's promise; not more than both sides hold.
    unsafe {
        let to = (&raw mut c).cast::<u8>();
        std::ptr::copy_nonoverlapping(config.cast::<u8>(), to, known);
    }
    // SAFETY: the caller's promise.
    let (name, policy) = unsafe { (text(c.name, "name")?, text(c.policy, "policy")?) };
    if !(INTERVAL_MIN_NS..=INTERVAL_MAX_NS).contains(&c.period_ns) {
        return Err(Failure::argument(format!(
            "tb_open: period_ns is {}; it must be {} to {}",
            c.period_ns,
            exact(INTERVAL_MIN_NS),
            exact(INTERVAL_MAX_NS)
        )));
    }
    let clocks = [CLOCK_MONOTONIC, CLOCK_TAI, CLOCK_BOOTTIME, CLOCK_REALTIME];
    if !clocks.contains(&c.clock) {
        return Err(Failure::argument(format!(
            "tb_open: clock is {}; write CLOCK_MONOTONIC, CLOCK_TAI, CLOCK_BOOTTIME or CLOCK_REALTIME",
            c.clock
        )));
    }
    resolution_ns(c.clock).map_err(|e| Failure::argument(format!("tb_open: clock: {e}")))?;
    if !(c.confidence > 0.0 && c.confidence < 1.0) {
        return Err(Failure::argument(format!(
            "tb_open: confidence is {}; it must be between 0 and 1, such as 0.95",
            c.confidence
        )));
    }
    let policy = policy.map(|p| p.parse()).transpose();
    let policy = policy.map_err(|e| Failure::argument(format!("tb_open: policy: {e}")))?;
    let setup = Setup {
        name: name.unwrap_or_else(|| "loop".to_owned()),
        period_ns: c.period_ns,
        clock: c.clock,
        policy,
        cpu: u32::try_from(c.cpu).ok(),
        confidence: c.confidence,
        opened_realtime_ns: now_ns(CLOCK_REALTIME),
        self_cost: SelfCost::new(),
    };
    let limits = |late: i64, early: i64, threshold: i64, what: &str| {
        let set = |v: i64| (v != TB_NONE).then_some(v);
        if set(late).is_some_and(|v| v < 0) || set(early).is_some_and(|v| v < 0) {
            return Err(Failure::argument(format!(
                "tb_open: the limits of {what} are times after and before the due time, not negative; TB_NONE for none"
            )));
        }
        Ok(Limits { late_ns: set(late), early_ns: set(early), threshold_ns: set(threshold) })
    };
    let start = limits(c.start_late_ns, c.start_early_ns, c.start_threshold_ns, "start")?;
    let completion = limits(
        c.completion_late_ns,
        c.completion_early_ns,
        c.completion_threshold_ns,
        "completion",
    )?;
    Ok((setup, start, completion))
}

/// A text of the program's; `None`: null.
///
/// # Safety
/// `at` is null or ends in a zero byte.
unsafe fn text(at: *const c_char, what: &str) -> Result<Option<String>, Failure> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(at) }.to_str();
    let text = text.map_err(|_| Failure::argument(format!("tb_open: {what} is not UTF-8")))?;
    Ok(Some(text.chars().take(200).collect()))
}

fn prefaulted<T: Zeroed>() -> Result<Prefaulted<T>, Failure> {
    Prefaulted::new().map_err(|e| Failure::new(TB_ERR_MEMORY, format!("tb_open: {e}")))
}

fn open(mut setup: Setup, start: Limits, completion: Limits) -> Result<usize, Failure> {
    setup.self_cost = rehearse(setup.clock)?;
    let (period_ns, clock) = (setup.period_ns, setup.clock);
    let kept = Collected {
        setup,
        counts: prefaulted()?,
        start: Side::new(0, Context::Start, start, prefaulted()?),
        completion: Side::new(1, Context::Completion, completion, prefaulted()?),
        events: Vec::new(),
    };
    // SAFETY: three mappings, which stay where they are and are dropped with `kept`; that is kept
    // in `OPEN` until `release` has taken the last user of these references away. Mappings, not
    // boxes: a box that is moved is taken to be the only way to what it holds.
    let (s, c, counts) = unsafe {
        (
            &*std::ptr::from_ref::<Recorder>(&kept.start.recorder),
            &*std::ptr::from_ref::<Recorder>(&kept.completion.recorder),
            &*std::ptr::from_ref::<Counts>(&kept.counts),
        )
    };
    let mut open = open_ones();
    let handle = slots::claim(Jobs::new(s, c, counts, period_ns), clock).ok_or_else(|| {
        let text = format!("tb_open: {TB_RECORDERS_MAX} recorders are open; close one");
        Failure::new(TB_ERR_FULL, text)
    })?;
    open.insert(handle, Arc::new(Mutex::new(kept)));
    Ok(handle)
}

/// Runs a scratch loop through every path, and measures: `clock_read_ns`, `cycle_ns` (both
/// calls of a cycle, without their clock reads).
#[expect(clippy::cast_precision_loss, reason = "below a second")]
fn rehearse(clock: i32) -> Result<SelfCost, Failure> {
    // Miri takes ten thousand times as long.
    const ROUNDS: usize = if cfg!(miri) { 1 } else { 5 };
    const CYCLES: i64 = if cfg!(miri) { 10 } else { 1000 };
    let (start, completion) = (prefaulted::<Recorder>()?, prefaulted::<Recorder>()?);
    let counts = Counts::new();
    start.set_threshold_ns(0);
    completion.set_threshold_ns(0);
    let mut jobs = Jobs::new(&start, &completion, &counts, 1_000_000);
    let mut due = 0i64;
    // Refused, over range, left out, early, abandoned, the end of a second.
    for (step, late) in [(0, 20_000_000_000), (5_000_000, -10), (1_000_000, 5), (2_000_000_000, 5)]
    {
        due += step;
        let _ = jobs.start(due, due + late);
        let _ = jobs.start(due, due + late);
        let _ = jobs.end(due + late + 10);
    }
    let (mut reads, mut cycles) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begin = now_ns(clock);
        for _ in 1..CYCLES {
            std::hint::black_box(now_ns(clock));
        }
        reads.push((now_ns(clock) - begin) as f64 / CYCLES as f64);
        let begin = now_ns(clock);
        for i in 0..CYCLES {
            due += 1_000_000;
            let now = due + 3000 + i % 64 * 97;
            let _ = jobs.start(due, now);
            let _ = jobs.end(now + 20_000);
        }
        cycles.push((now_ns(clock) - begin) as f64 / CYCLES as f64);
    }
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all.get(ROUNDS / 2).copied().unwrap_or(f64::NAN)
    };
    Ok([("clock_read_ns".to_owned(), median(reads)), ("cycle_ns".to_owned(), median(cycles))]
        .into())
}

/// Empties the rings; any thread but the loop's, at least every quarter of an hour.
#[unsafe(no_mangle)]
pub extern "C" fn tb_poll(recorder: *mut tb_recorder) -> i32 {
    guarded(|| {
        with_kept(recorder, |kept| {
            kept.collect();
            Ok(())
        })
    })
}

/// Closes a recorder: what it recorded is gone, and its handle is refused from here on.
#[unsafe(no_mangle)]
pub extern "C" fn tb_close(recorder: *mut tb_recorder) -> i32 {
    guarded(|| {
        let handle = recorder.addr();
        let mut open = open_ones();
        match slots::release(handle) {
            TB_OK => {
                // Dropped when the last cold call that is under way with it is done.
                drop(open.remove(&handle));
                Ok(())
            }
            TB_ERR_BUSY => {
                Err(Failure::new(TB_ERR_BUSY, "tb_close: its loop is in a call right now"))
            }
            _ => Err(Failure::handle()),
        }
    })
}
