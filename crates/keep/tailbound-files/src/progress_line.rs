// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the reading of a long file is, in words.
//!
//! Units: bytes.

use std::time::Duration;

use tailbound_core::number::Real as _;

/// `read 0.80 of 1.73 GB of x.raw, 430 MB/s, 2 s left`
#[must_use]
pub fn progress_line(name: &str, bytes: u64, total: Option<u64>, elapsed: Duration) -> String {
    let (done, total) = (bytes.real(), total.map(|t| t.real()));
    let rate = done / elapsed.as_secs_f64().max(1e-3);
    let of = total.map_or_else(String::new, |t| format!(" of {:.2}", t / 1e9));
    let left = total.map_or_else(String::new, |t| {
        format!(", {:.0} s left", ((t - done) / rate.max(1.0)).max(0.0))
    });
    format!("read {:.2}{of} GB of {name}, {:.0} MB/s{left}", done / 1e9, rate / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_how_fast_and_how_long() {
        let two = Duration::from_secs(2);
        let text = progress_line("x.raw", 800_000_000, Some(1_728_000_000), two);
        assert_eq!(text, "read 0.80 of 1.73 GB of x.raw, 400 MB/s, 2 s left");
        assert_eq!(progress_line("-", 800_000_000, None, two), "read 0.80 GB of -, 400 MB/s");
    }
}
