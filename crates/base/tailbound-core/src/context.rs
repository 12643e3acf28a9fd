// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where in the system a latency was recorded, and which of several is judged.

use crate::words::open_words;

open_words! {
    /// Where in the system a thread record was made, and of what.
    #[derive(Default)]
    Context {
        /// From a pulse at the machine to its answer, timed by another clock outside.
        External = "external",
        /// A thread in user space: what is judged.
        #[default]
        User = "user",
        /// A kernel thread.
        Thread = "thread",
        /// An interrupt's handler.
        Irq = "irq",
        /// A soft interrupt.
        Softirq = "softirq",
        /// A non-maskable interrupt.
        Nmi = "nmi",
        /// From the due time to the start of a cycle, of a program's own loop.
        Start = "start",
        /// From the due time to the end of a cycle, of a program's own loop.
        Completion = "completion",
        /// All of the kernel's timerlat together, in user space in the end.
        IrqThreadUser = "irq+thread+user",
        /// Time taken away, as the osnoise tracer noticed.
        Osnoise = "osnoise",
        /// Time taken away with interrupts off, as the hwlat tracer noticed.
        Hwlat = "hwlat",
        /// A hand-over's sender.
        Send = "send",
        /// A hand-over as its ring's reader saw it.
        Ring = "ring",
        /// A hand-over there and back.
        RoundTrip = "round-trip",
        /// The way back alone.
        Return = "return",
        /// A task's work, without its start.
        Work = "work",
        /// From a job's release to its end.
        Response = "response",
        /// How long a lock was waited for.
        Wait = "wait",
        /// From the release of a lock to its next owner.
        HandOver = "hand-over",
        /// The wait for a lock without priority inheritance.
        NoInheritance = "no-inheritance",
        /// The wait for a lock whose owner died.
        OwnerDeath = "owner-death",
        /// From a wake-up until the thread has a CPU, as the scheduler sees it.
        RunQueue = "run-queue",
        /// A gap that a polling thread saw.
        Gap = "gap",
        /// A gap between two looks of a polling thread.
        Outside = "outside",
        /// From a handler back to the thread.
        Back = "back",
        /// The second task of a set.
        Task2 = "task-2",
        /// The third.
        Task3 = "task-3",
        /// The fourth.
        Task4 = "task-4",
        /// The fifth.
        Task5 = "task-5",
        /// The sixth.
        Task6 = "task-6",
    }
}

impl Context {
    /// The reaction of the whole machine; those in which a program could be, or that it waits for: the outermost first.
    const JUDGED: [Self; 7] = [
        Self::External,
        Self::User,
        Self::Completion,
        Self::Start,
        Self::IrqThreadUser,
        Self::Thread,
        Self::Irq,
    ];

    /// Which of `contexts` is judged, compared, bound and shown as *the* latency of a run: the
    /// outermost, because that is where a program would be late; of words that are all of
    /// other kinds, the first. There is no other rule anywhere.
    #[must_use]
    pub fn judged(contexts: &[Self]) -> Option<Self> {
        Self::JUDGED.into_iter().find(|c| contexts.contains(c)).or(contexts.first().copied())
    }

    /// Whether a program's own code ran there: what is judged elsewhere comes before that.
    #[must_use]
    pub fn is_outermost(self) -> bool {
        matches!(
            self,
            Self::External | Self::User | Self::Completion | Self::Start | Self::IrqThreadUser
        )
    }
}

impl From<&str> for Context {
    fn from(word: &str) -> Self {
        Self::of(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_is_judged_in_whatever_order_they_stand() {
        for (contexts, judged) in [
            (&["irq", "thread"][..], Some("thread")),
            (&["thread", "irq"], Some("thread")),
            (&["irq", "thread", "user"], Some("user")),
            (&["start", "completion"], Some("completion")),
            (&["user", "external"], Some("external")),
            (&["user", "send", "round-trip"], Some("user")),
            (&["hwlat", "from-later"], Some("hwlat")),
            (&["from-later", "irq"], Some("irq")),
            (&[], None),
        ] {
            let contexts: Vec<Context> = contexts.iter().map(|c| Context::of(c)).collect();
            assert_eq!(Context::judged(&contexts), judged.map(Context::of), "{contexts:?}");
        }
    }
}
