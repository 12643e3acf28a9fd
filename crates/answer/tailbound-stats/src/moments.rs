// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mean, standard deviation, skewness and kurtosis: exact from integer power sums, and a
//! floating accumulator for figures that are not whole ns.
//!
//! Units: ns, ns² for the variance, none for skewness and kurtosis.
//! Definitions: variance and sd divide by n-1; g1 = m3/m2^1.5 and g2 = m4/m2² - 3 with the
//! central moments over n; G1 = g1·√(n(n-1))/(n-2) and G2 = (n-1)/((n-2)(n-3))·((n+1)g2+6)
//! are the ones that spreadsheets and SAS print. A moment that the count or the spread does
//! not define is `None`.
//! Values above 2.1 s are clamped in the sums: of a distribution with such values, mean and spread
//! come from its histogram.
//! Not here: the sums themselves (`tailbound_rt::sums`).
//! Source: Pébay, "Formulas for robust, one-pass parallel computation of covariances and
//! arbitrary-order statistical moments" (SAND2008-6212); Joanes and Gill 1998.

use serde::Serialize;
use tailbound_core::binned::Binned;
use tailbound_core::number::Real as _;
use tailbound_core::{Distribution, Sums};

use crate::int256::Int256;

/// The moments of a set of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Moments {
    /// Number of values.
    pub n: u64,
    /// Mean.
    pub mean_ns: Option<f64>,
    /// Variance over n-1, ns².
    pub variance: Option<f64>,
    /// Standard deviation over n-1.
    pub sd_ns: Option<f64>,
    /// g1.
    pub skewness: Option<f64>,
    /// g2, the excess over a normal distribution.
    pub kurtosis: Option<f64>,
    /// G1.
    pub skewness_adjusted: Option<f64>,
    /// G2.
    pub kurtosis_adjusted: Option<f64>,
}

impl Moments {
    /// The moments that `sums` define, each rounded once.
    ///
    /// With A = n·S2 - S1², B = n²·S3 - 3n·S1·S2 + 2·S1³ and
    /// C = n³·S4 - 4n²·S1·S3 + 6n·S1²·S2 - 3·S1⁴, all exact: variance = A/(n(n-1)),
    /// g1 = B/A^1.5, g2 = (C - 3A²)/A².
    #[must_use]
    pub fn of(sums: &Sums) -> Self {
        if sums.n == 0 {
            return Self::default();
        }
        let count = sums.n.real();
        let mean_ns = Some(Int256::from(sums.s1).to_f64() / count);
        let Some((a, b, c)) = central(sums) else {
            return Self { n: sums.n, mean_ns, ..Self::default() };
        };
        let a_float = a.to_f64();
        // Sums that no set of values has (a negative variance) come only from a damaged file.
        let variance = (sums.n > 1 && a_float >= 0.0).then(|| a_float / count / (count - 1.0));
        let (skewness, kurtosis) = if a_float > 0.0 {
            let square = a.times(a);
            let excess = square.and_then(|s| s.times(3u64.into())).and_then(|s| c.minus(s));
            (
                Some(b.to_f64() / a_float / a_float.sqrt()),
                square.zip(excess).map(|(square, excess)| excess.to_f64() / square.to_f64()),
            )
        } else {
            (None, None)
        };
        Self::assemble(sums.n, mean_ns, variance, skewness, kurtosis)
    }

    /// The moments of `d`: exact from its sums; where a value was longer than they hold, mean and
    /// spread from the histogram, and no other moment; nothing where its sums are of other values.
    #[must_use]
    pub fn of_distribution(d: &Distribution) -> Self {
        // Sums that leave out unbinned values are not the sums of this distribution.
        match d.sums.filter(|s| d.unbinned == 0 || s.n == d.n) {
            Some(sums) if sums.clamped == 0 => Self::of(&sums),
            Some(_) => Binned::of(d).map_or_else(Self::default, |b| {
                Self::assemble(b.n, Some(b.mean_ns), b.variance, None, None)
            }),
            None => Self::default(),
        }
    }

    fn assemble(
        n: u64,
        mean_ns: Option<f64>,
        variance: Option<f64>,
        skewness: Option<f64>,
        kurtosis: Option<f64>,
    ) -> Self {
        let count = n.real();
        Self {
            n,
            mean_ns,
            variance,
            sd_ns: variance.map(f64::sqrt),
            skewness,
            kurtosis,
            skewness_adjusted: skewness
                .filter(|_| n > 2)
                .map(|g1| g1 * (count * (count - 1.0)).sqrt() / (count - 2.0)),
            kurtosis_adjusted: kurtosis.filter(|_| n > 3).map(|g2| {
                (count - 1.0) / ((count - 2.0) * (count - 3.0)) * ((count + 1.0) * g2 + 6.0)
            }),
        }
    }
}

/// n·M2·n, n²·M3·n and n³·M4·n as whole numbers: A, B and C of [`Moments::of`].
fn central(sums: &Sums) -> Option<(Int256, Int256, Int256)> {
    let n = Int256::from(sums.n);
    let (s1, s2, s3) = (Int256::from(sums.s1), Int256::from(sums.s2), Int256::from(sums.s3));
    let s4 = Int256::from_parts(sums.s4_low, sums.s4_high);
    let product = |factors: &[Int256]| {
        factors.iter().try_fold(Int256::from(1u64), |product, f| product.times(*f))
    };
    let whole = |k: u64| Int256::from(k);
    let a = product(&[n, s2])?.minus(product(&[s1, s1])?)?;
    let b = product(&[n, n, s3])?.minus(product(&[whole(3), n, s1, s2])?)?.plus(product(&[
        whole(2),
        s1,
        s1,
        s1,
    ])?)?;
    let c = product(&[n, n, n, s4])?
        .minus(product(&[whole(4), n, n, s1, s3])?)?
        .plus(product(&[whole(6), n, s1, s1, s2])?)?
        .minus(product(&[whole(3), s1, s1, s1, s1])?)?;
    Some((a, b, c))
}

/// Moments of floats, one at a time or merged; errors stay near 1e-12 relative for 4e8 values.
/// Plain memory, laid out for C as it stands here.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Accumulator {
    n: u64,
    mean: f64,
    m2: f64,
    m3: f64,
    m4: f64,
}

impl Accumulator {
    /// Adds one value. The order of the updates matters: M4 before M3 before M2.
    pub fn add(&mut self, x: f64) {
        let before = self.n.real();
        self.n += 1;
        let n = self.n.real();
        let delta = x - self.mean;
        let delta_n = delta / n;
        let delta_n2 = delta_n * delta_n;
        let term = delta * delta_n * before;
        self.mean += delta_n;
        self.m4 += term * delta_n2 * (n * n - 3.0 * n + 3.0) + 6.0 * delta_n2 * self.m2
            - 4.0 * delta_n * self.m3;
        self.m3 += term * delta_n * (n - 2.0) - 3.0 * delta_n * self.m2;
        self.m2 += term;
    }

    /// Adds all that `other` holds.
    pub fn merge(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        if self.n == 0 {
            *self = *other;
            return;
        }
        let (a, b) = (self.n.real(), other.n.real());
        let n = a + b;
        let delta = other.mean - self.mean;
        let d_n = delta / n;
        let m4 = self.m4
            + other.m4
            + delta * d_n * d_n * d_n * a * b * (a * a - a * b + b * b)
            + 6.0 * d_n * d_n * (a * a * other.m2 + b * b * self.m2)
            + 4.0 * d_n * (a * other.m3 - b * self.m3);
        let m3 = self.m3
            + other.m3
            + delta * d_n * d_n * a * b * (a - b)
            + 3.0 * d_n * (a * other.m2 - b * self.m2);
        self.m2 += other.m2 + delta * d_n * a * b;
        (self.m3, self.m4) = (m3, m4);
        self.mean += d_n * b;
        self.n += other.n;
    }

    /// The moments of what was added.
    #[must_use]
    pub fn moments(&self) -> Moments {
        if self.n == 0 {
            return Moments::default();
        }
        let n = self.n.real();
        let spread = self.m2 > 0.0;
        Moments::assemble(
            self.n,
            Some(self.mean),
            (self.n > 1).then(|| self.m2 / (n - 1.0)),
            spread.then(|| n.sqrt() * self.m3 / self.m2.powf(1.5)),
            spread.then(|| n * self.m4 / (self.m2 * self.m2) - 3.0),
        )
    }
}
