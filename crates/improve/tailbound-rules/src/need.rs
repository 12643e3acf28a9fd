// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a check needs of the machine or of the question.

/// What a check needs; without it the check does not apply, or cannot know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// CPUs for real-time work were named or found.
    RtCpus,
    /// An x86 machine.
    X86,
    /// A guest of a hypervisor.
    Guest,
    /// No guest of a hypervisor.
    Metal,
    /// A program was named with --pid.
    Target,
    /// A program that never sleeps.
    Polling,
    /// Two looks at the machine, some seconds apart.
    Sample,
    /// More than one memory node.
    Numa,
}
