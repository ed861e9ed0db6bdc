//! Waits for what the collector thread has to do: one epoll set over the sideband's events, the rings, a timer,
//! the request to stop, and the processes whose end ends the recording.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// The longest that is waited at once: more, in milliseconds, than `epoll_wait` takes is refused before Linux 5.11, and more
/// seconds than are 63 bits everywhere.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

/// Why the thread was woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// The sideband has records.
    Sideband,
    /// A ring is half full.
    Ring,
    /// A source that tells of each record has some.
    Record,
    /// The drain timer ticked.
    Timer,
    /// A stop was asked for.
    Stop,
    /// A process whose end is waited for has ended; with its position.
    Ended(usize),
}

/// The set.
pub(super) struct Waker {
    epoll: OwnedFd,
    timer: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Wake {
    fn to_data(self) -> EventData {
        EventData::new_u64(match self {
            Self::Sideband => 0,
            Self::Ring => 1,
            Self::Timer => 2,
            Self::Stop => 3,
            Self::Record => 4,
            Self::Ended(index) => 5 + index as u64,
        })
    }

    fn from_data(data: EventData) -> Self {
        match data.u64() {
            0 => Self::Sideband,
            1 => Self::Ring,
            2 => Self::Timer,
            3 => Self::Stop,
            4 => Self::Record,
            index => Self::Ended((index - 5) as usize),
        }
    }
}

impl Waker {
    /// An empty set with a timer that ticks after `first`, and from then on once a `period`.
    pub(super) fn new(first: Duration, period: Duration) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let times = Itimerspec { it_interval: timespec(period), it_value: timespec(first) };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times)?;
        let waker = Self { epoll, timer, events: Vec::with_capacity(64) };
        waker.add(&waker.timer, Wake::Timer)?;
        Ok(waker)
    }

    /// Adds a descriptor. The sideband's and the sources' tell of new records once (their readable state says
    /// nothing about whether they were drained).
    pub(super) fn add(&self, fd: impl AsFd, wake: Wake) -> io::Result<()> {
        let edge = matches!(wake, Wake::Sideband | Wake::Ring | Wake::Record);
        let flags = if edge { EventFlags::IN | EventFlags::ET } else { EventFlags::IN };
        Ok(epoll::add(&self.epoll, fd, wake.to_data(), flags)?)
    }

    /// As [`Self::add`], for a descriptor that may be in the set already.
    pub(super) fn set(&self, fd: impl AsFd, wake: Wake) -> io::Result<()> {
        match self.add(fd, wake) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            result => result,
        }
    }

    /// Takes a process out of the set.
    pub(super) fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Waits, and gives what happened, which may be nothing. `deadline` bounds the wait.
    pub(super) fn wait(&mut self, deadline: Option<Duration>, wakes: &mut Vec<Wake>) -> io::Result<()> {
        wakes.clear();
        self.events.clear();
        let deadline = deadline.map(|deadline| timespec(deadline.min(LONGEST_WAIT)));
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), deadline.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        wakes.extend(self.events.iter().map(|event| Wake::from_data(event.data)));
        if wakes.contains(&Wake::Timer) {
            let mut expirations = [0; 8];
            match rustix::io::read(&self.timer, &mut expirations) {
                Ok(_) | Err(rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_deadline_is_too_far() {
        let tick = Duration::from_millis(1);
        let mut waker = Waker::new(tick, tick).unwrap();
        let mut wakes = Vec::new();
        waker.wait(Some(Duration::MAX), &mut wakes).unwrap();
        assert_eq!(wakes, [Wake::Timer]);
    }
}
