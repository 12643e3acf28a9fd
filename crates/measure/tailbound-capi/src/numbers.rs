// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moments and P² quantiles of a program's own numbers, in structs that the program owns.
//!
//! Context: HOT (no allocation, lock or system call), COLD as well.
//! Nothing to open or close: `tb_moments` and `tb_p2` are plain memory, copied and forgotten
//! freely, laid out as [`Accumulator`] and [`Estimator`] are.
//! Not here: the arithmetic (`tailbound-stats`).

use tailbound_stats::moments::Accumulator;
use tailbound_stats::p2::Estimator;

use crate::codes::{TB_ERR_ARGUMENT, TB_OK};

/// The place behind a pointer, if it can be one.
///
/// # Safety
/// A pointer that is neither null nor misaligned must be valid for reads and writes, and nobody
/// else may use the place meanwhile.
unsafe fn place<'a, T>(at: *mut T) -> Option<&'a mut T> {
    // SAFETY: handed on.
    if at.is_aligned() { unsafe { at.as_mut() } } else { None }
}

/// The value behind a pointer, if it can be one.
///
/// # Safety
/// A pointer that is neither null nor misaligned must be valid for reads.
unsafe fn value<T: Copy>(at: *const T) -> Option<T> {
    // SAFETY: handed on.
    if at.is_aligned() { unsafe { at.as_ref().copied() } } else { None }
}

macro_rules! status {
    ($done:expr) => {
        if $done.is_some() { TB_OK } else { TB_ERR_ARGUMENT }
    };
}

/// Empties `moments`.
///
/// # Safety
/// `moments` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tb_moments_init(moments: *mut Accumulator) -> i32 {
    // SAFETY: the caller's promise.
    status!(unsafe { place(moments) }.map(|m| *m = Accumulator::default()))
}

/// Adds one value; one that is not finite is refused.
///
/// # Safety
/// `moments` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tb_moments_add(moments: *mut Accumulator, x: f64) -> i32 {
    // SAFETY: the caller's promise.
    status!(unsafe { place(moments) }.filter(|_| x.is_finite()).map(|m| m.add(x)))
}

/// Adds all that `other` holds.
///
/// # Safety
/// Both are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tb_moments_merge(
    moments: *mut Accumulator,
    other: *const Accumulator,
) -> i32 {
    // SAFETY: the caller's promise. The copy comes first: both may be the same.
    let other = unsafe { value(other) };
    // SAFETY: the caller's promise.
    status!(other.zip(unsafe { place(moments) }).map(|(other, m)| m.merge(&other)))
}

/// Mean, NaN before the first value.
///
/// # Safety
/// `moments` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tb_moments_mean(moments: *const Accumulator) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { value(moments) }.and_then(|m| m.moments().mean_ns).unwrap_or(f64::NAN)
}

/// Standard deviation over n-1, NaN before the second value.
///
/// # Safety
/// `moments` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tb_moments_sd(moments: *const Accumulator) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { value(moments) }.and_then(|m| m.moments().sd_ns).unwrap_or(f64::NAN)
}

/// Skewness g1, NaN without spread.
///
/// # Safety
/// `moments` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tb_moments_skewness(moments: *const Accumulator) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { value(moments) }.and_then(|m| m.moments().skewness).unwrap_or(f64::NAN)
}

/// Excess kurtosis g2, NaN without spread.
///
/// # Safety
/// `moments` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tb_moments_kurtosis(moments: *const Accumulator) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { value(moments) }.and_then(|m| m.moments().kurtosis).unwrap_or(f64::NAN)
}

/// Empties `p2` and sets the probability it estimates the quantile of.
///
/// # Safety
/// `p2` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tb_p2_init(p2: *mut Estimator, probability: f64) -> i32 {
    let allowed = (0.0..=1.0).contains(&probability);
    // SAFETY: the caller's promise.
    status!(unsafe { place(p2) }.filter(|_| allowed).map(|e| *e = Estimator::new(probability)))
}

/// Adds one value; one that is not finite is refused.
///
/// # Safety
/// `p2` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tb_p2_add(p2: *mut Estimator, x: f64) -> i32 {
    // SAFETY: the caller's promise.
    status!(unsafe { place(p2) }.filter(|_| x.is_finite()).map(|e| e.add(x)))
}

/// The estimate, NaN before the first value; exact up to five values.
///
/// # Safety
/// `p2` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tb_p2_value(p2: *const Estimator) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { value(p2) }.and_then(|e| e.estimate()).unwrap_or(f64::NAN)
}
