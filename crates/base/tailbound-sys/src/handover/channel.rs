// SPDX-License-Identifier: MIT OR Apache-2.0
//! One way from a sender to its receivers, and its two ends.
//!
//! Context: SETUP.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use tailbound_rt::handover::{Block, Give, Take};

use super::medium::Medium;
use super::site::Site;
use super::{descriptor, epoll, library, mqueue, signal, sysv, uring_pipe, word};
use crate::error::SysError;
use crate::futex::Scope;
use crate::shared::Shared;

/// Whose end.
#[derive(Clone, Copy, Debug)]
enum Side {
    Giver,
    Taker,
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
                uring_pipe::available()?;
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
            Medium::Mqueue => Box::new(mqueue::End(self.fd(Side::Giver)?)),
            Medium::Pipe | Medium::Socket(_) | Medium::Eventfd | Medium::Epoll => {
                Box::new(descriptor::End(self.fd(Side::Giver)?))
            }
            Medium::IoUring => Box::new(uring_pipe::Writer::new(self.fd(Side::Giver)?)?),
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
            Medium::Mqueue => Box::new(mqueue::End(self.fd(Side::Taker)?)),
            Medium::Pipe | Medium::Socket(_) | Medium::Eventfd => {
                Box::new(descriptor::End(self.fd(Side::Taker)?))
            }
            Medium::Epoll => Box::new(epoll::Waiter::new(self.fd(Side::Taker)?)?),
            Medium::IoUring => Box::new(uring_pipe::Reader::new(self.fd(Side::Taker)?)?),
        })
    }

    fn fd(&self, side: Side) -> Result<Arc<OwnedFd>, SysError> {
        let (giver, taker) = self
            .fds
            .as_ref()
            .ok_or_else(|| SysError::code("hand-over", self.medium.word(), libc::EBADF))?;
        Ok(Arc::clone(match side {
            Side::Giver => giver,
            Side::Taker => taker,
        }))
    }

    fn id(&self) -> Result<i32, SysError> {
        self.left_behind().ok_or_else(|| SysError::code("semop", "no semaphore", libc::EINVAL))
    }
}
