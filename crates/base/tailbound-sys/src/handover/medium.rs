// SPDX-License-Identifier: MIT OR Apache-2.0
//! By what something is handed over, and its words.
//!
//! Context: SETUP.

use std::str::FromStr;

/// What kind of socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// unix(7), SOCK_STREAM.
    UnixStream,
    /// unix(7), SOCK_DGRAM.
    UnixDatagram,
    /// tcp(7) over loopback, with TCP_NODELAY.
    Tcp,
    /// udp(7) over loopback.
    Udp,
}

/// By what something is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A queued signal to a thread: rt_tgsigqueueinfo(2) and sigwaitinfo(2).
    Signal,
    /// FUTEX_WAKE and FUTEX_WAIT.
    Futex,
    /// FUTEX_UNLOCK_PI and FUTEX_LOCK_PI, two locks in turn.
    PiFutex,
    /// pthread_cond_broadcast(3) and pthread_cond_wait(3).
    Condvar,
    /// sem_post(3) and sem_wait(3).
    Semaphore,
    /// semop(2).
    SysvSemaphore,
    /// mq_send(3) and mq_receive(3).
    Mqueue,
    /// pipe(7).
    Pipe,
    /// socket(7).
    Socket(Carrier),
    /// eventfd(2).
    Eventfd,
    /// An eventfd, waited for by epoll_wait(2).
    Epoll,
    /// A pipe, written and read by io_uring_enter(2).
    IoUring,
    /// pthread_barrier_wait(3).
    Barrier,
}

const WORDS: [(&str, Medium); 16] = [
    ("signal", Medium::Signal),
    ("futex", Medium::Futex),
    ("pi-futex", Medium::PiFutex),
    ("condvar", Medium::Condvar),
    ("semaphore", Medium::Semaphore),
    ("sysv-semaphore", Medium::SysvSemaphore),
    ("mqueue", Medium::Mqueue),
    ("pipe", Medium::Pipe),
    ("unix-stream", Medium::Socket(Carrier::UnixStream)),
    ("unix-dgram", Medium::Socket(Carrier::UnixDatagram)),
    ("tcp", Medium::Socket(Carrier::Tcp)),
    ("udp", Medium::Socket(Carrier::Udp)),
    ("eventfd", Medium::Eventfd),
    ("epoll", Medium::Epoll),
    ("io-uring", Medium::IoUring),
    ("barrier", Medium::Barrier),
];

impl Medium {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        WORDS.iter().find(|(_, m)| *m == self).map_or("", |(word, _)| word)
    }
    /// Can one hand-over wake several receivers?
    #[must_use]
    pub fn broadcasts(self) -> bool {
        matches!(self, Self::Condvar | Self::Barrier)
    }
    /// Do its objects belong to an IPC namespace?
    #[must_use]
    pub fn is_ipc(self) -> bool {
        matches!(self, Self::SysvSemaphore | Self::Mqueue)
    }
    /// Does a signal end its receive call? The others are ended by their sender alone.
    #[must_use]
    pub fn is_interruptible(self) -> bool {
        !matches!(self, Self::Condvar | Self::Barrier | Self::PiFutex)
    }
}

/// A word that names no medium.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` carries no hand-over")]
pub struct NoMedium {
    /// As given.
    pub word: String,
}

impl FromStr for Medium {
    type Err = NoMedium;
    fn from_str(text: &str) -> Result<Self, NoMedium> {
        WORDS
            .iter()
            .find(|(word, _)| *word == text)
            .map(|(_, medium)| *medium)
            .ok_or_else(|| NoMedium { word: text.to_owned() })
    }
}
