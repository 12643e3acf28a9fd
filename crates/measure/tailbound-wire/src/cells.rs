// SPDX-License-Identifier: MIT OR Apache-2.0
//! A log-linear histogram of ticks in constant memory: exact below 128 ticks, then 64 cells an octave.

/// Cells of a histogram: all of 32 bits.
pub const CELLS: usize = 128 + 25 * 64;

/// How often each value came.
#[derive(Debug, Clone)]
pub struct Cells {
    counts: [u32; CELLS],
}

impl Default for Cells {
    fn default() -> Self {
        Self::new()
    }
}

impl Cells {
    /// Empty.
    #[must_use]
    pub const fn new() -> Self {
        Self { counts: [0; CELLS] }
    }

    /// Counts one value. A cell that is full stays full; `Counters` has the sum in 64 bits.
    pub fn count(&mut self, ticks: u32) {
        if let Some(count) = self.counts.get_mut(Self::cell(ticks)) {
            *count = count.saturating_add(1);
        }
    }

    /// The cell of a value.
    #[must_use]
    pub const fn cell(ticks: u32) -> usize {
        if ticks < 128 {
            return ticks as usize;
        }
        let octave = ticks.ilog2();
        // 7 is the first octave, and has 64 cells of two ticks.
        let within = (ticks >> (octave - 6)) - 64;
        (128 + (octave - 7) * 64 + within) as usize
    }

    /// The least value of a cell.
    #[must_use]
    pub const fn least(cell: usize) -> u64 {
        if cell < 128 {
            return cell as u64;
        }
        let (octave, within) = ((cell - 128) / 64 + 7, (cell - 128) % 64);
        (64 + within as u64) << (octave - 6)
    }

    /// All counts.
    #[must_use]
    pub const fn counts(&self) -> &[u32; CELLS] {
        &self.counts
    }

    /// Forgets all values.
    pub const fn clear(&mut self) {
        self.counts = [0; CELLS];
    }
}

#[cfg(test)]
mod tests {
    use super::{CELLS, Cells};

    #[test]
    fn each_cell_begins_where_the_one_before_ends() {
        for cell in 0..CELLS {
            let least = Cells::least(cell);
            let Ok(ticks) = u32::try_from(least) else { unreachable!("{cell}") };
            assert_eq!(Cells::cell(ticks), cell);
            if ticks > 0 {
                assert_eq!(Cells::cell(ticks - 1), cell - 1);
            }
        }
        assert_eq!(Cells::cell(u32::MAX), CELLS - 1);
    }

    #[test]
    fn a_full_cell_stays_full() {
        let mut cells = Cells::new();
        cells.counts[5] = u32::MAX;
        cells.count(5);
        assert_eq!(cells.counts()[5], u32::MAX);
    }
}
