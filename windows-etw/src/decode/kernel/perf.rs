//! Samples, system calls, interrupts and stacks: classes `ce1dbfb4-…` (`PerfInfo`) and `def2fe46-…` (`StackWalk`). Layouts are
//! those of the MOF classes `SampledProfile`, `SampledProfileInterval`, `SysCallEnter`, `SysCallExit`, `ISR`, `DPC`, `StackWalk_Event`
//! and of `PERFINFO_LOG_TYPE_STACKTRACE_*`.

use collector_common::event::Utf16Text;
use collector_common::ids::{Avma, Pid, Tid};

use collector_common::layout;
use collector_common::payload::{Addresses, Last, Pointer};

layout! {
    /// A CPU sample: where a thread was when the sampling clock ticked. Thread 0 is an idle CPU. The lowest bits of the flags are
    /// set in a deferred procedure call and in an interrupt's routine.
    SampledProfile {
        instruction: Avma = "InstructionPointer";
        tid: Tid = "ThreadId";
        count: u16 = "Count";
        flags: u8 = "Flags";
        rank: u8 = "Rank";
    }

    /// A hardware counter has reached its limit.
    CounterProfile {
        instruction: Avma = "InstructionPointer";
        tid: Tid = "ThreadId";
        source: u16 = "ProfileSource";
        reserved: u16 = "Reserved";
    }

    /// How often samples are taken, in units of 100 ns.
    ProfileInterval<'a> {
        source: u32 = "Source";
        new_interval: u32 = "NewInterval";
        old_interval: u32 = "OldInterval";
        source_name: Last<'a> = "SourceName" [3..=255];
    }

    /// A system call begins.
    SystemCallEnter {
        address: Avma = "SysCallAddress";
    }

    /// A system call ends.
    SystemCallExit {
        status: u32 = "SysCallNtStatus";
    }

    /// A service routine of an interrupt has run, of version 1.
    InterruptV1 {
        initial_time: u64 = "InitialTime";
        routine: Avma = "Routine";
        return_value: u32 = "ReturnValue";
    }

    /// A service routine of an interrupt has run.
    Interrupt {
        initial_time: u64 = "InitialTime";
        routine: Avma = "Routine";
        return_value: u8 = "ReturnValue";
        vector: u8 = "Vector";
        reserved: u16 = "Reserved";
    }

    /// A deferred procedure call has run.
    DeferredCall {
        initial_time: u64 = "InitialTime";
        routine: Avma = "Routine";
    }

    /// A mark of whoever controls the trace.
    Mark<'a> {
        label: Last<'a> = "Label";
    }

    /// The return addresses of an event, innermost first.
    StackWalk<'a> {
        event_ticks: u64 = "EventTimeStamp";
        pid: Pid = "StackProcess";
        tid: Tid = "StackThread";
        frames: Addresses<'a> = "Stack";
    }

    /// The key of an event's return addresses, which another event has.
    StackReference {
        event_ticks: u64 = "EventTimeStamp";
        pid: Pid = "StackProcess";
        tid: Tid = "StackThread";
        key: Pointer = "StackKey";
    }

    /// The return addresses of a key.
    StackDefinition<'a> {
        key: Pointer = "StackKey";
        frames: Addresses<'a> = "Stack";
    }

    /// An event without fields.
    Empty {}

    /// An event that is one text.
    Line<'a> {
        value: Utf16Text<'a> = "Value";
    }
}
