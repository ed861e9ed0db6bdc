//! A session's events are read: `OpenTraceW` and `ProcessTrace`, whose callbacks give each to a sink.

use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windows_sys::Win32::System::Diagnostics::Etw::{
    CloseTrace, EVENT_RECORD, EVENT_TRACE_LOGFILEW, OpenTraceW, PROCESS_TRACE_MODE_EVENT_RECORD,
    PROCESS_TRACE_MODE_RAW_TIMESTAMP, PROCESS_TRACE_MODE_REAL_TIME, PROCESSTRACE_HANDLE, ProcessTrace,
};

use super::live::{Live, MakeSink, Sink};
use super::wide;
use crate::session::Win32Error;

/// What the callbacks know.
struct Context {
    /// There while events are read.
    sink: Option<Sink>,
    panic: Option<Box<dyn Any + Send>>,
    events: u64,
}

/// A trace that is open, to be closed once: its number may be another trace's then.
#[derive(Debug)]
pub(in crate::session) struct Open {
    handle: u64,
    is_closed: AtomicBool,
}

impl Open {
    const fn of(handle: u64) -> Self {
        Self { handle, is_closed: AtomicBool::new(false) }
    }

    /// Closes it, if it is not closed. Reading it ends then, also where its session goes on: Windows' `ProcessTrace` returns when it has given
    /// what it has (`ERROR_CTX_CLOSE_PENDING` of Microsoft's page on `CloseTrace`).
    pub(in crate::session) fn close(&self) {
        if !self.is_closed.swap(true, Ordering::AcqRel) {
            // SAFETY: the handle is closed here alone, and once; one that OpenTraceW did not give is an error, and no more.
            unsafe { CloseTrace(PROCESSTRACE_HANDLE { Value: self.handle }) };
        }
    }

    /// None that Windows knows.
    #[cfg(test)]
    pub(in crate::session) const fn nothing() -> Self {
        Self::of(u64::MAX)
    }

    #[cfg(test)]
    pub(in crate::session) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }
}

/// A session that is opened to be read.
pub(in crate::session) struct Reader {
    open: Arc<Open>,
    /// From `Box::into_raw`; the callbacks have it, too, and run in [`Self::run`] alone.
    context: *mut Context,
    /// There until events are read.
    make: Option<MakeSink>,
}

// SAFETY: but for its sink the context is `Send`. That is made by `run`, which has the reader, and dropped before it returns, and callbacks reach
// it between the two alone, on the thread that runs it.
unsafe impl Send for Reader {}

/// How reading ended.
pub(in crate::session) struct Ended {
    /// What `ProcessTrace` says.
    pub(in crate::session) result: Result<(), Win32Error>,
    /// What the sink panicked with.
    pub(in crate::session) panic: Option<Box<dyn Any + Send>>,
    /// Events that the sink was given.
    pub(in crate::session) events: u64,
}

impl Reader {
    /// Opens a session that runs.
    pub(in crate::session) fn open(name: &str, make: MakeSink) -> Result<Self, Win32Error> {
        let mut name = wide(name);
        let context = Box::into_raw(Box::new(Context { sink: None, panic: None, events: 0 }));
        let mut file = EVENT_TRACE_LOGFILEW {
            LoggerName: name.as_mut_ptr(),
            Context: context.cast::<c_void>(),
            BufferCallback: Some(on_buffer),
            ..EVENT_TRACE_LOGFILEW::default()
        };
        file.Anonymous1.ProcessTraceMode =
            PROCESS_TRACE_MODE_REAL_TIME | PROCESS_TRACE_MODE_EVENT_RECORD | PROCESS_TRACE_MODE_RAW_TIMESTAMP;
        file.Anonymous2.EventRecordCallback = Some(on_event);
        // SAFETY: the structure and the name, which ends with a zero, outlive the call; the callbacks are functions of this program,
        // and the context lives until the reader is dropped, which is after `ProcessTrace` and `CloseTrace`.
        let handle = unsafe { OpenTraceW(&raw mut file) };
        // Whatever is called next may change it, as what makes room does.
        let refused = Win32Error::last();
        let reader = Self { open: Arc::new(Open::of(handle.Value)), context, make: Some(make) };
        // INVALID_PROCESSTRACE_HANDLE; on 32-bit machines its upper half was cut off once.
        if handle.Value == u64::MAX || handle.Value == u64::from(u32::MAX) {
            return Err(refused);
        }
        Ok(reader)
    }

    /// The trace, for who has to close it while it is read.
    pub(in crate::session) fn trace(&self) -> Arc<Open> {
        Arc::clone(&self.open)
    }

    /// Gives all events to the sink until the session ends, the last of them included.
    pub(in crate::session) fn run(mut self) -> Ended {
        let make = self.make.take();
        match catch_unwind(AssertUnwindSafe(|| make.map(|make| make()))) {
            // SAFETY: callbacks run in ProcessTrace alone.
            Ok(sink) => unsafe { (*self.context).sink = sink },
            Err(panic) => return Ended { result: Ok(()), panic: Some(panic), events: 0 },
        }
        let handle = PROCESSTRACE_HANDLE { Value: self.open.handle };
        // SAFETY: the handle came from OpenTraceW, and outlives the call; one that was closed is an error.
        let code = unsafe { ProcessTrace(&raw const handle, 1, std::ptr::null(), std::ptr::null()) };
        // SAFETY: the callbacks ran in the call above alone.
        let context = unsafe { &mut *self.context };
        context.sink = None;
        let result = match Win32Error::check(code) {
            // `on_buffer` asked for it.
            Err(Win32Error::CANCELLED) if context.panic.is_some() => Ok(()),
            result => result,
        };
        Ended { result, panic: context.panic.take(), events: context.events }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.open.close();
        // SAFETY: the context is from `Box::into_raw`, is freed here alone, and no callback comes after CloseTrace of a trace that is not being
        // processed: `run`, which has the reader, has returned from that.
        drop(unsafe { Box::from_raw(self.context) });
    }
}

/// # Safety
/// ETW calls it with an event whose `UserContext` is the [`Context`] of the reader that runs, on the thread that runs it.
unsafe extern "system" fn on_event(event: *mut EVENT_RECORD) {
    // SAFETY: ETW's event, or none, stays as it is while this runs.
    let Some(event) = (unsafe { event.as_ref() }) else { return };
    // SAFETY: see above; callbacks do not run within one another.
    let Some(context) = (unsafe { event.UserContext.cast::<Context>().as_mut() }) else { return };
    if context.panic.is_some() {
        return;
    }
    let Some(sink) = &mut context.sink else { return };
    let caught = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: ETW upholds what its layout promises while its callback runs, and the sink can't keep what it is lent.
        let live = unsafe { Live::new(event) };
        sink(&live);
    }));
    match caught {
        Ok(()) => context.events += 1,
        Err(panic) => context.panic = Some(panic),
    }
}

/// Whether reading goes on.
///
/// # Safety
/// As [`on_event`], with the structure that belongs to the reader's trace.
unsafe extern "system" fn on_buffer(file: *mut EVENT_TRACE_LOGFILEW) -> u32 {
    // SAFETY: ETW's structure, or none.
    let Some(file) = (unsafe { file.as_ref() }) else { return 1 };
    // SAFETY: as in `on_event`.
    let context = unsafe { file.Context.cast::<Context>().as_ref() };
    u32::from(context.is_none_or(|context| context.panic.is_none()))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::mpsc::channel;

    use collector_common::ids::Nanos;
    use windows_sys::core::GUID;

    use super::*;
    use crate::decode::EventKey;
    use crate::decode::described::Schemas;
    use crate::dispatch::{Dispatch, Which};
    use crate::session::sys::from_windows;

    /// From ETW's structure to a closure.
    #[test]
    fn a_live_event_comes_to_the_closures_of_its_event() {
        let provider = GUID::from_u128(0xce1d_bfb4_137e_4da6_87b0_3f59_aa10_2cbc);
        let told = Rc::new(RefCell::new(Vec::new()));
        let mut dispatch = Dispatch::new(Schemas::default());
        let list = Rc::clone(&told);
        dispatch.on(Which::Key(from_windows(provider), EventKey::Opcode(46)), move |event| {
            let list = Rc::clone(&list);
            event.add_closure(move |data| {
                let cpu = data.context().map(|context| context.cpu);
                list.borrow_mut().push((data.as_text().to_string(), cpu));
                Ok(())
            });
            Ok(())
        });
        let sink: Sink = Box::new(move |live| {
            assert!(dispatch.take(&live.record, Nanos(live.record.ticks as u64)));
            assert!(dispatch.errors().is_empty());
        });
        let mut context = Context { sink: Some(sink), panic: None, events: 0 };
        let mut payload = [0x10_u8, 0x32, 0x54, 0x76, 0xf8, 0x7f, 0, 0, 0xd2, 4, 0, 0, 1, 0, 2, 0];
        let mut event = EVENT_RECORD {
            UserData: payload.as_mut_ptr().cast(),
            UserDataLength: payload.len() as u16,
            UserContext: (&raw mut context).cast(),
            ..EVENT_RECORD::default()
        };
        event.EventHeader.ProviderId = provider;
        event.EventHeader.Flags = 0x140;
        event.EventHeader.EventDescriptor.Opcode = 46;
        event.EventHeader.EventDescriptor.Version = 2;
        event.BufferContext.Anonymous.ProcessorIndex = 3;
        // SAFETY: the context is there, and nothing else has it; the payload is as long as is said.
        unsafe { on_event(&raw mut event) };
        assert_eq!((context.events, context.panic.is_none()), (1, true));
        let fields = "InstructionPointer=0x7ff876543210 ThreadId=1234 Count=1 Flags=2 Rank=0";
        assert_eq!(*told.borrow(), [(fields.to_owned(), Some(3))]);
    }

    #[test]
    fn a_panic_of_the_sink_stays_in_the_callback_and_ends_the_reading() {
        let (sender, receiver) = channel();
        let sink: Sink = Box::new(move |live| {
            sender.send(live.record.descriptor.id).unwrap();
            assert!(live.record.descriptor.id != 2, "no twos");
        });
        let mut context = Context { sink: Some(sink), panic: None, events: 0 };
        let pointer = (&raw mut context).cast::<c_void>();
        let mut file = EVENT_TRACE_LOGFILEW { Context: pointer, ..EVENT_TRACE_LOGFILEW::default() };
        let mut goes_on = Vec::new();
        for id in 1..=3 {
            let mut event = EVENT_RECORD::default();
            event.EventHeader.EventDescriptor.Id = id;
            event.UserContext = pointer;
            // SAFETY: the context is there, and nothing else has it; the event has neither payload nor items.
            goes_on.push(unsafe {
                on_event(&raw mut event);
                on_buffer(&raw mut file)
            });
        }
        assert_eq!(goes_on, [1, 0, 0]);
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(context.events, 1);
        let said = context.panic.and_then(|panic| panic.downcast::<&str>().ok());
        assert_eq!(said.map(|said| *said), Some("no twos"));
    }

    #[test]
    fn callbacks_without_an_event_or_a_context_do_nothing() {
        let mut event = EVENT_RECORD::default();
        // SAFETY: neither is there, which both look for.
        unsafe {
            on_event(std::ptr::null_mut());
            on_event(&raw mut event);
            assert_eq!(on_buffer(std::ptr::null_mut()), 1);
        }
    }
}
