// SPDX-License-Identifier: MIT OR Apache-2.0
//! One way from a sender to its receivers, and its two ends.
//!
//! Context: SETUP.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::str::FromStr;
use std::sync::Arc;

use tailbound_rt::handover::{Block, Give, Take};

use super::{descriptor, epoll, library, mqueue, signal, sysv, uring, word};
use crate::error::SysError;
use crate::futex::Scope;
use crate::shared::Shared;

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

/// The memory behind a channel, by clones of one pointer.
pub(super) type Memory = Arc<Shared<Block>>;

/// What every end knows of its channel.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) memory: Memory,
    pub(super) hop: usize,
    pub(super) scope: Scope,
}

/// One way from a sender to its receivers.
#[derive(Debug)]
pub struct Channel {
    medium: Medium,
    site: Site,
    /// The sender's and the receiver's, where it has any.
    fds: Option<(Arc<OwnedFd>, Arc<OwnedFd>)>,
    semaphore: Option<sysv::Set>,
}

impl Channel {
    /// Opens a channel of `medium` for `receivers` receivers, in words `hop` of `memory`.
    ///
    /// # Errors
    /// What the kernel refuses: no such facility, or not for this user.
    pub fn open(
        medium: Medium,
        memory: &Arc<Shared<Block>>,
        hop: usize,
        scope: Scope,
        receivers: u32,
    ) -> Result<Self, SysError> {
        let site = Site { memory: Arc::clone(memory), hop, scope };
        let mut semaphore = None;
        let fds = match medium {
            Medium::Signal | Medium::Futex | Medium::PiFutex => None,
            Medium::Condvar => library::Condvar::make(&site).map(|()| None)?,
            Medium::Semaphore => library::Semaphore::make(&site).map(|()| None)?,
            Medium::Barrier => library::Barrier::make(&site, receivers).map(|()| None)?,
            Medium::SysvSemaphore => {
                semaphore = Some(sysv::Set::new()?);
                None
            }
            Medium::Mqueue => Some(mqueue::open()?),
            Medium::Pipe => Some(descriptor::pipe()?),
            Medium::IoUring => {
                // Refused here, before anything runs, where there is none.
                drop(uring::Ring::new()?);
                Some(descriptor::pipe()?)
            }
            Medium::Socket(carrier) => Some(descriptor::socket(carrier)?),
            Medium::Eventfd | Medium::Epoll => Some(descriptor::eventfd()?),
        };
        let fds = fds.map(|(give, take)| (Arc::new(give), Arc::new(take)));
        Ok(Self { medium, site, fds, semaphore })
    }

    /// The channel that another process opened, from what [`Channel::handed_down`] named there.
    ///
    /// # Errors
    /// EBADF when a descriptor is lacking.
    pub fn adopt(
        medium: Medium,
        memory: &Arc<Shared<Block>>,
        hop: usize,
        fds: Vec<OwnedFd>,
        id: i32,
    ) -> Result<Self, SysError> {
        let mut fds = fds.into_iter();
        let fds = match (fds.next(), fds.next()) {
            (Some(give), Some(take)) => Some((Arc::new(give), Arc::new(take))),
            _ => None,
        };
        Ok(Self {
            medium,
            site: Site { memory: Arc::clone(memory), hop, scope: Scope::Shared },
            fds,
            semaphore: (medium == Medium::SysvSemaphore).then(|| sysv::Set::adopt(id)),
        })
    }

    /// The descriptors, if it has any, and the number that another process needs.
    #[must_use]
    pub fn handed_down(&self) -> (Vec<BorrowedFd<'_>>, i32) {
        let fds = self.fds.iter().flat_map(|(give, take)| [give.as_fd(), take.as_fd()]).collect();
        (fds, self.semaphore.as_ref().map_or(0, sysv::Set::id))
    }

    /// A System V semaphore set that would outlive this process if it were killed; `None` where
    /// nothing would.
    #[must_use]
    pub fn left_behind(&self) -> Option<i32> {
        self.semaphore.as_ref().map(sysv::Set::id)
    }

    /// The sender's end.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn giver(&self) -> Result<Box<dyn Give + Send>, SysError> {
        let site = self.site.clone();
        Ok(match self.medium {
            Medium::Signal => Box::new(signal::Sender::new(site)),
            Medium::Futex => Box::new(word::Waker(site)),
            Medium::PiFutex => Box::new(word::Releaser::new(site)),
            Medium::Condvar => Box::new(library::Condvar::new(site)),
            Medium::Semaphore => Box::new(library::Semaphore(site)),
            Medium::Barrier => Box::new(library::Barrier(site)),
            Medium::SysvSemaphore => Box::new(sysv::End(self.id()?)),
            Medium::Mqueue => Box::new(mqueue::End(self.fd(true)?)),
            Medium::Pipe | Medium::Socket(_) | Medium::Eventfd | Medium::Epoll => {
                Box::new(descriptor::End(self.fd(true)?))
            }
            Medium::IoUring => Box::new(uring::Writer::new(self.fd(true)?)?),
        })
    }

    /// The end of a receiver.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn taker(&self) -> Result<Box<dyn Take + Send>, SysError> {
        let site = self.site.clone();
        Ok(match self.medium {
            Medium::Signal => Box::new(signal::Receiver::new(site)),
            Medium::Futex => Box::new(word::Waiter::new(site)),
            Medium::PiFutex => Box::new(word::Locker::new(site)),
            Medium::Condvar => Box::new(library::Condvar::new(site)),
            Medium::Semaphore => Box::new(library::Semaphore(site)),
            Medium::Barrier => Box::new(library::Barrier(site)),
            Medium::SysvSemaphore => Box::new(sysv::End(self.id()?)),
            Medium::Mqueue => Box::new(mqueue::End(self.fd(false)?)),
            Medium::Pipe | Medium::Socket(_) | Medium::Eventfd => {
                Box::new(descriptor::End(self.fd(false)?))
            }
            Medium::Epoll => Box::new(epoll::Waiter::new(self.fd(false)?)?),
            Medium::IoUring => Box::new(uring::Reader::new(self.fd(false)?)?),
        })
    }

    fn fd(&self, give: bool) -> Result<Arc<OwnedFd>, SysError> {
        let (to, from) = self
            .fds
            .as_ref()
            .ok_or_else(|| SysError::code("hand-over", self.medium.word(), libc::EBADF))?;
        Ok(Arc::clone(if give { to } else { from }))
    }

    fn id(&self) -> Result<i32, SysError> {
        self.left_behind().ok_or_else(|| SysError::code("semop", "no semaphore", libc::EINVAL))
    }
}
