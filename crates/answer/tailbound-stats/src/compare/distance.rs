// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wasserstein's distance: by how many ns a wake-up of one system would have to be moved, on
//! average, to make it the other.
//!
//! Units: ns. Values are spread evenly over their bucket.
//! Source: Ramdas, García Trillos and Cuturi 2017: the area between the distribution functions.

use super::matrix::Matrix;

/// The distance between two weightings of one matrix.
pub(super) fn wasserstein_ns(matrix: &Matrix, a: &[f64], b: &[f64]) -> f64 {
    let (na, nb) = (a.iter().sum::<f64>().max(1.0), b.iter().sum::<f64>().max(1.0));
    let (mut gap, mut area, mut end) = (0.0f64, 0.0, None);
    for (i, (ca, cb)) in a.iter().zip(b).enumerate() {
        let (low, width) = matrix.bucket(i);
        // Censored values count as if they were just what they exceed: at least this far.
        let width = if width.is_finite() { width } else { 0.0 };
        // Between buckets nothing changes.
        if let Some(end) = end {
            area += gap.abs() * (low - end);
        }
        let after = gap + ca / na - cb / nb;
        area += if gap * after >= 0.0 {
            width * f64::midpoint(gap.abs(), after.abs())
        } else {
            // The functions cross: two triangles.
            width * gap.mul_add(gap, after * after) / (2.0 * (gap.abs() + after.abs()))
        };
        gap = after;
        end = Some(low + width);
    }
    area
}
