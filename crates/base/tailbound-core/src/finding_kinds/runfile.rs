// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings about the run file itself.

use super::FindingKind;

pub(super) const KINDS: &[FindingKind] = &[
    FindingKind::new("file-verdict", "The verdict in the file is not the one that its records give.")
        .meaning("The verdict or the records were changed, or another version judged differently. The verdict shown is computed from the records.")
        .remedy("Use the file as the run wrote it, and the version that wrote it."),
    FindingKind::new("file-altered", "The file was changed after it was written.")
        .meaning("Its contents are not what was measured, or not all of it.")
        .remedy("Use the file as the run wrote it."),
    FindingKind::new("file-second-header", "The file holds two runs.")
        .meaning("Only the lines before it were read.")
        .remedy("Keep each run in a file of its own."),
    FindingKind::new("file-lines", "The file does not have as many lines as it states.")
        .meaning("Lines are missing or were added after the file was written.")
        .remedy("Use the file as the run wrote it."),
    FindingKind::new("file-after-end", "Lines follow the end of the run.")
        .meaning("They were not read; nothing of them is in the figures.")
        .remedy("Keep each run in a file of its own."),
    FindingKind::new("file-repeated", "A record of which a run has one stands twice."),
    FindingKind::new("file-taken-back", "A record of a thread holds less than an earlier one."),
    FindingKind::new("file-counts", "Records of the run contradict each other."),
    FindingKind::new("file-order", "Records are not in the order in which they were written."),
    FindingKind::new("file-threads", "The record of a thread is missing."),
    FindingKind::new("file-partial", "The file ends within the run: what came last is known in part only."),
    FindingKind::new("file-cut-after-verdict", "The file was cut off after the measurement and its verdict.")
        .meaning("The measurement is whole; benchmarks, if there were to be any, are not."),
    FindingKind::new("byte-order-mark", "The file begins with a byte-order mark.")
        .meaning("Another program, such as an editor, has written the file since."),
    FindingKind::new("disk-filling", "The disk of the run file is nearly full.")
        .meaning("If the disk is full before the run ends, its result is saved elsewhere.")
        .remedy("Free some space on the file system of the run file."),
    FindingKind::new("records-elsewhere", "The run file could not be written completely.")
        .meaning("Moving statistics, stretches, exceedances, load rates and raw samples from before that are in the first file alone; this one has the rest."),
    FindingKind::new("not-read-back", "The run file cannot be read back.")
        .meaning("The results shown lack moving statistics, stretches, exceedances, load rates and raw samples, and there is no file that documents the run.")
        .remedy("Check the disk and what else writes there, and measure again."),
    FindingKind::new("measured-in-pieces", "The measurement was cut off and went on later.")
        .meaning("It was cut off and went on later. Nothing is known of the time between the pieces: seconds of the schedule leave it out."),
];
