// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the ring buffer of one CPU counted: `per_cpu/cpuN/stats`.
//!
//! Source: Documentation/trace/ftrace.rst, "per_cpu/cpu0/stats".

/// Events of one CPU that are not in what was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Overwritten by newer ones before anybody read them.
    pub overrun: u64,
    /// Lost because an interrupt filled the buffer while it was being written.
    pub commit_overrun: u64,
    /// Refused because the buffer was full.
    pub dropped: u64,
}

impl Counts {
    /// Reads the text; a line that is not there counts nothing.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let find = |key: &str| {
            text.lines()
                .find_map(|l| l.strip_prefix(key)?.trim().strip_prefix(':')?.trim().parse().ok())
                .unwrap_or(0)
        };
        Self {
            overrun: find("overrun"),
            commit_overrun: find("commit overrun"),
            dropped: find("dropped events"),
        }
    }

    /// All that is lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_text() {
        // Linux 6.18.
        let text = "entries: 0\noverrun: 3\ncommit overrun: 4\nbytes: 0\noldest event ts:     \
                    0.000000\nnow ts: 11805.773435\ndropped events: 5\nread events: 9\n";
        let counts = Counts::parse(text);
        assert_eq!(counts, Counts { overrun: 3, commit_overrun: 4, dropped: 5 });
        assert_eq!(counts.lost(), 12);
        assert_eq!(Counts::parse("nonsense").lost(), 0);
    }
}
