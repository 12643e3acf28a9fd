// SPDX-License-Identifier: MIT OR Apache-2.0
//! The greatest value of a function of one variable, and where one crosses zero: all that
//! the fits here need.
//!
//! Every loop is bounded; a value of minus infinity means "not allowed here".
//! Source: Brent 1973, ch. 5 (golden section with parabolic steps); the Illinois variant of
//! false position.

/// Loops of either search; both need about a dozen.
const STEPS_MAX: u32 = 100;

/// The golden section: the smaller part.
const GOLDEN: f64 = 0.381_966_011_250_105;

/// Where `f` is greatest between `a` and `b`, to `tolerance` in x, and what it is there.
///
/// Of several maxima one is found. `f` may be minus infinity where nothing is allowed.
pub(crate) fn maximise(a: f64, b: f64, tolerance: f64, f: impl Fn(f64) -> f64) -> (f64, f64) {
    let (mut a, mut b) = (a.min(b), a.max(b));
    let mut best = a + GOLDEN * (b - a);
    let (mut second, mut third) = (best, best);
    let mut at_best = f(best);
    let (mut at_second, mut at_third) = (at_best, at_best);
    let (mut step, mut before) = (0.0f64, 0.0f64);
    for _ in 0..STEPS_MAX {
        let middle = f64::midpoint(a, b);
        if (best - middle).abs() <= 2.0 * tolerance - (b - a) / 2.0 {
            break;
        }
        let r = (best - second) * (at_best - at_third);
        let q = (best - third) * (at_best - at_second);
        let p = (best - third) * q - (best - second) * r;
        let q2 = 2.0 * (q - r);
        let (p, q2) = if q2 > 0.0 { (-p, q2) } else { (p, -q2) };
        let parabola = before.abs() > tolerance
            && p.is_finite()
            && q2.is_finite()
            && q2 > 0.0
            && p.abs() < (q2 * before / 2.0).abs()
            && p > q2 * (a - best)
            && p < q2 * (b - best);
        if parabola {
            before = step;
            step = p / q2;
            let x = best + step;
            if x - a < 2.0 * tolerance || b - x < 2.0 * tolerance {
                step = tolerance.copysign(middle - best);
            }
        } else {
            before = if best >= middle { a - best } else { b - best };
            step = GOLDEN * before;
        }
        let x = best + if step.abs() >= tolerance { step } else { tolerance.copysign(step) };
        let at = f(x);
        if at >= at_best {
            if x >= best {
                a = best;
            } else {
                b = best;
            }
            (third, at_third) = (second, at_second);
            (second, at_second) = (best, at_best);
            (best, at_best) = (x, at);
        } else {
            if x < best {
                a = x;
            } else {
                b = x;
            }
            if at >= at_second || second == best {
                (third, at_third) = (second, at_second);
                (second, at_second) = (x, at);
            } else if at >= at_third || third == best || third == second {
                (third, at_third) = (x, at);
            }
        }
    }
    (best, at_best)
}

/// Where `f` changes its sign between `a` and `b`, to `tolerance` in x.
///
/// `f(a)` and `f(b)` must differ in sign; infinite values are allowed and are halved away.
pub(crate) fn root(a: f64, b: f64, tolerance: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut a, mut b) = (a, b);
    let (mut at_a, mut at_b) = (f(a), f(b));
    for _ in 0..STEPS_MAX {
        if (b - a).abs() <= tolerance {
            break;
        }
        let mut x = (a * at_b - b * at_a) / (at_b - at_a);
        if !x.is_finite() || x <= a.min(b) || x >= a.max(b) {
            x = f64::midpoint(a, b);
        }
        let at = f(x);
        if at == 0.0 {
            return x;
        }
        if (at > 0.0) == (at_b > 0.0) {
            // The same end moved twice: the other one's weight is halved.
            (b, at_b) = (x, at);
            at_a /= 2.0;
        } else {
            (a, at_a) = (b, at_b);
            (b, at_b) = (x, at);
        }
        if at_a.is_finite() && (at / (at_b - at_a)).abs() * (b - a).abs() < tolerance / 4.0 {
            break;
        }
    }
    b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greatest_values_and_crossings() {
        let (x, v) = maximise(0.0, 10.0, 1e-9, |x: f64| x.ln() - x / 3.0);
        assert!((x - 3.0).abs() < 1e-6 && (v - (3f64.ln() - 1.0)).abs() < 1e-12, "{x}");
        let (x, _) =
            maximise(-4.0, 4.0, 1e-9, |x: f64| if x < 1.0 { f64::NEG_INFINITY } else { -x });
        assert!((x - 1.0).abs() < 1e-6, "{x}");
        let x = root(0.0, 100.0, 1e-12, |x: f64| x * x - 2.0);
        assert!((x - 2f64.sqrt()).abs() < 1e-9, "{x}");
        let x =
            root(0.0, 5.0, 1e-10, |x: f64| if x < 1.0 { f64::NEG_INFINITY } else { x.ln() + 1e-9 });
        assert!((x - 1.0).abs() < 1e-6, "{x}");
    }
}
