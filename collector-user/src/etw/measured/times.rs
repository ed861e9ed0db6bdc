//! What threads did with their time, as switches and CPU samples tell it: blocked, waiting for a CPU, or on one.

use collector_common::ids::Nanos;
use collector_common::record::Unit;

use super::{Said, Sink, WAKER, value};
use crate::etw::pending::Row;
use crate::etw::switches::{Blocked, Came, Waker};
use crate::wakers::INTERRUPT;

/// A time that a thread spent.
#[derive(Clone, Copy, Debug)]
pub(in crate::etw) enum Time {
    /// It has a CPU again.
    Came(Came),
    /// It was on a CPU for so long since this was told of it the last time.
    Ran(Nanos),
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Blocked,
    Runnable,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Blocked => "blocked",
            Self::Runnable => "runnable",
        }
    }
}

/// Adds samples of those kinds that are wanted.
pub(super) fn take(time: &Time, row: &Row, sink: &mut Sink<'_>) {
    match *time {
        Time::Came(Came { blocked, queued, is_open }) => {
            let open = if is_open { "yes" } else { "" };
            if let Some(Blocked { until, took, reason, waker }) = blocked {
                let row = Row { at: until, value: value(took), ..*row };
                let reason = ("wait_reason", Said::Text(reason.unwrap_or_default()));
                let waker = match waker {
                    None => Said::Text(""),
                    Some(Waker::Interrupt) => Said::Text(INTERRUPT),
                    Some(Waker::Thread(tid)) => Said::Number(tid.0.into()),
                };
                let waker = (WAKER, waker);
                if sink.wanted.off_cpu && !is_open {
                    let attributes = sink.attributes(&[reason, waker]);
                    sink.sample(("off_cpu", Unit::Nanoseconds), &Row { attributes, ..row });
                }
                spent(State::Blocked, &[reason, waker, ("open", Said::Text(open))], &row, sink);
            }
            if let Some(took) = queued {
                let row = Row { value: value(took), ..*row };
                if sink.wanted.run_queue && !is_open {
                    sink.sample(("run_queue", Unit::Nanoseconds), &row);
                }
                spent(State::Runnable, &[("open", Said::Text(open))], &row, sink);
            }
        }
        Time::Ran(took) => spent(State::Running, &[], &Row { value: value(took), ..*row }, sink),
    }
}

fn spent(state: State, more: &[(&str, Said<'_>)], row: &Row, sink: &mut Sink<'_>) {
    if sink.wanted.wall_clock && row.value > 0 {
        let mut list = vec![("state", Said::Text(state.name()))];
        list.extend_from_slice(more);
        let attributes = sink.attributes(&list);
        sink.sample(("wall_clock", Unit::Nanoseconds), &Row { attributes, ..*row });
    }
}
