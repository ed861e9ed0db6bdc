//! What threads did with their time, as switches and CPU samples tell it: blocked, waiting for a CPU, or on one.

use collector_common::ids::Nanos;
use collector_common::intern::StackId;
use collector_common::record::Unit;

use super::{Said, Sink, WAKER, value};
use crate::etw::pending::Row;
use crate::etw::switches::{Blocked, Came, Cut, Waker};
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
    /// Switches were lost.
    Unknown,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Blocked => "blocked",
            Self::Runnable => "runnable",
            Self::Unknown => "unknown",
        }
    }
}

/// Adds samples of those kinds that are wanted.
pub(super) fn take(time: &Time, row: &Row, sink: &mut Sink<'_>) {
    match *time {
        Time::Came(came) => {
            let wanted = sink.wanted.of_time_off(came.took());
            let Sink { kinds, pending, machine, .. } = sink;
            let sink = &mut Sink { kinds, pending, machine, wanted };
            let Came { blocked, cut, queued, open } = came;
            let is_open = open.is_some();
            let row = &Row { at: open.unwrap_or(row.at), ..*row };
            let open = ("open", Said::Text(if is_open { "yes" } else { "" }));
            // Where it is now is where it waited last, which may be elsewhere than before the cut.
            let before = Row { stack: if cut.is_some() { StackId::EMPTY } else { row.stack }, ..*row };
            // What was cut is over, whatever came then.
            let is_last = !is_open || cut.is_some();
            let and_open = if cut.is_some() { ("cut", Said::Text("yes")) } else { open };
            if let Some(Blocked { until, took, reason, waker }) = blocked {
                let row = Row { at: until, value: value(took), ..before };
                let reason = ("wait_reason", Said::Text(reason.unwrap_or_default()));
                let waker = match waker {
                    None => Said::Text(""),
                    Some(Waker::Interrupt) => Said::Text(INTERRUPT),
                    Some(Waker::Thread(tid)) => Said::Number(tid.0.into()),
                };
                let waker = (WAKER, waker);
                if sink.wanted.off_cpu && is_last {
                    let cut = ("cut", Said::Text(if cut.is_some() { "yes" } else { "" }));
                    let attributes = sink.attributes(&[reason, waker, cut]);
                    sink.sample(("off_cpu", Unit::Nanoseconds), &Row { attributes, ..row });
                }
                spent(State::Blocked, &[reason, waker, and_open], &row, sink);
            }
            if let Some(Cut { since, until, queued }) = cut {
                let row = Row { at: since, value: value(queued), ..before };
                spent(State::Runnable, &[and_open], &row, sink);
                let took = value(Nanos(until.0.saturating_sub(since.0)));
                spent(State::Unknown, &[open], &Row { at: until, value: took, ..before }, sink);
            }
            if let Some(took) = queued {
                let row = Row { value: value(took), ..*row };
                if sink.wanted.run_queue && !is_open {
                    sink.sample(("run_queue", Unit::Nanoseconds), &row);
                }
                spent(State::Runnable, &[open], &row, sink);
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
