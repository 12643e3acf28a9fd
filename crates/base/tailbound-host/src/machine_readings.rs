// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was taken of every CPU from one reading to the next, without measured threads: for whoever looks on seldom.
//!
//! Units: ns. A reading is /proc/stat and the files of /proc/pressure; it interrupts no CPU.
//! Not here: a run's looks (`watch`).

use tailbound_core::CpuSet;
use tailbound_core::disturbance::{DisturbanceKind, DisturbanceRecord};

use crate::disturbances;
use crate::disturbances::readings::Pressures;
use crate::procstat::{self, Ticks};
use crate::root::{Found, Root};

/// See the module.
#[derive(Debug)]
pub struct MachineReadings {
    ticks: Found<Ticks>,
    pressures: Pressures,
}

impl MachineReadings {
    /// The first reading.
    #[must_use]
    pub fn begin(root: &Root) -> Self {
        Self { ticks: procstat::read(root), pressures: Pressures::read(root) }
    }

    /// What was taken since the reading before, `span_ns` and up to `t_ns`.
    pub fn next(&mut self, root: &Root, t_ns: i64, span_ns: i64) -> DisturbanceRecord {
        let before = std::mem::replace(self, Self::begin(root));
        let mut record = DisturbanceRecord { t_ns, span_ns, ..DisturbanceRecord::default() };
        record.unread = before.pressures.passed(&self.pressures, &mut record.machine);
        match (&before.ticks, &self.ticks) {
            (Ok(before), Ok(now)) => {
                let cpus: CpuSet = now.keys().copied().collect();
                record.cpus = disturbances::taken(&cpus, before, now);
            }
            (Err(_), Err(_)) => {}
            _ => record.unread.extend([
                DisturbanceKind::Steal,
                DisturbanceKind::Interrupt,
                DisturbanceKind::Softirq,
            ]),
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use tailbound_core::disturbance::CpuTaken;

    use super::*;

    #[test]
    fn every_cpu_and_the_pressures_are_told_from_one_reading_to_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/stat", "cpu0 1 0 0 9 0 0 0 5\ncpu1 1 0 0 9 0 0 0 5\n");
        write("proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\n");
        let mut readings = MachineReadings::begin(&root);
        write("proc/stat", "cpu0 1 0 0 9 0 0 0 5\ncpu1 1 0 0 9 0 0 0 7\n");
        write("proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=6000\n");
        let taken = readings.next(&root, 9, 4);
        assert_eq!((taken.t_ns, taken.span_ns, taken.machine.io_pressure_ns), (9, 4, 5_000_000));
        let stolen = CpuTaken { cpu: 1, steal_ns: 20_000_000, ..CpuTaken::default() };
        assert_eq!((taken.cpus, taken.unread), (vec![stolen], Vec::new()));
        std::fs::remove_dir_all(folder.path().join("proc")).unwrap();
        let gone = readings.next(&root, 0, 0);
        assert_eq!(gone.unread.len(), 4, "{gone:?}");
        assert!(readings.next(&root, 0, 0).is_nothing());
    }
}
