// SPDX-License-Identifier: MIT OR Apache-2.0
//! The policy of the measured threads, by cyclictest's rules: a priority makes it SCHED_FIFO, and without one there is no
//! other than SCHED_OTHER.

/// A name that `--policy` takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PolicyName {
    #[default]
    Other,
    Batch,
    Idle,
    Fifo,
    Rr,
}

/// What the threads get, and what stands in the line of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadPolicy {
    pub(crate) name: PolicyName,
    pub(crate) priority: u8,
}

impl PolicyName {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().as_str() {
            "other" | "normal" => Self::Other,
            "batch" => Self::Batch,
            "idle" => Self::Idle,
            "fifo" => Self::Fifo,
            "rr" => Self::Rr,
            _ => return None,
        })
    }

    fn word(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Batch => "batch",
            Self::Idle => "idle",
            Self::Fifo => "fifo",
            Self::Rr => "rr",
        }
    }

    fn is_realtime(self) -> bool {
        matches!(self, Self::Fifo | Self::Rr)
    }
}

impl ThreadPolicy {
    /// Of `--policy` and `-p`, where `threads` are measured; and what cyclictest says of it.
    pub(crate) fn of(name: PolicyName, priority: u8, threads: usize) -> (Self, Option<String>) {
        if name.is_realtime() && priority == 0 {
            let priority = u8::try_from(threads.saturating_add(1)).unwrap_or(99).min(99);
            let note = format!("defaulting realtime priority to {priority}");
            return (Self { name, priority }, Some(note));
        }
        if priority > 0 && !name.is_realtime() {
            let note = "policy and priority don't match: setting policy to SCHED_FIFO".to_owned();
            return (Self { name: PolicyName::Fifo, priority }, Some(note));
        }
        (Self { name, priority }, None)
    }

    /// As `tailbound run -p` takes it.
    pub(crate) fn option(self) -> String {
        match self.name {
            PolicyName::Fifo => format!("fifo:{}", self.priority),
            PolicyName::Rr => format!("rr:{}", self.priority),
            _ => "other".to_owned(),
        }
    }

    /// As in the line `policy: `.
    pub(crate) fn shown(self) -> String {
        match self.name.is_realtime() {
            true => self.name.word().to_owned(),
            false => format!("{}/other", self.name.word()),
        }
    }
}
