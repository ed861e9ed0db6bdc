//! The messages of a trace, written by hand for `prost`: field numbers and meanings are those of google/perfetto,
//! `protos/perfetto/trace` and `protos/perfetto/common`; only fields that are written are here.
//!
//! `iid`s name what was interned in the same sequence, from 1; 0 is nothing. A field is `Option` where its reader tells 0 from
//! nothing.

use prost::{Message, Oneof};

/// `BuiltinClock`.
pub(super) mod clock {
    pub(in super::super) const REALTIME: u32 = 1;
    pub(in super::super) const MONOTONIC: u32 = 3;
    pub(in super::super) const BOOTTIME: u32 = 6;
}

/// `TracePacket.SequenceFlags`.
pub(super) mod sequence_flags {
    pub(in super::super) const INCREMENTAL_STATE_CLEARED: u32 = 1;
    pub(in super::super) const NEEDS_INCREMENTAL_STATE: u32 = 2;
}

/// `PerfEvents.Counter.SW_CPU_CLOCK`.
pub(super) const CPU_CLOCK: i32 = 1;
/// `PerfEvents.PerfClock.PERF_CLOCK_MONOTONIC`.
pub(super) const PERF_CLOCK_MONOTONIC: i32 = 2;
/// `CounterDescriptor.Unit.UNIT_SIZE_BYTES`.
pub(super) const SIZE_BYTES: i32 = 3;
/// `GenericKernelTaskStateEvent.TaskStateEnum.TASK_STATE_DEAD`.
pub(super) const TASK_DEAD: i32 = 7;
/// `Profiling.StackUnwindError.UNWIND_ERROR_UNKNOWN`.
pub(super) const UNWIND_ERROR_UNKNOWN: i32 = 0;

/// `Profiling.CpuMode`.
pub(super) mod cpu_mode {
    pub(in super::super) const UNKNOWN: i32 = 0;
    pub(in super::super) const KERNEL: i32 = 1;
    pub(in super::super) const USER: i32 = 2;
}

/// `Frame.Kind`.
pub(super) mod frame_kind {
    pub(in super::super) const UNKNOWN: i32 = 0;
    pub(in super::super) const NATIVE: i32 = 1;
    pub(in super::super) const KERNEL: i32 = 2;
    pub(in super::super) const JIT: i32 = 4;
}

/// `TrackEvent.Type`.
pub(super) mod event_type {
    pub(in super::super) const SLICE_BEGIN: i32 = 1;
    pub(in super::super) const SLICE_END: i32 = 2;
    pub(in super::super) const INSTANT: i32 = 3;
    pub(in super::super) const COUNTER: i32 = 4;
}

/// The field number of `Trace.packet`, which is all that a file has.
pub(super) const PACKET: u32 = 1;

#[expect(clippy::struct_field_names, reason = "the format calls them so")]
#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacket {
    #[prost(uint64, optional, tag = "8")]
    pub(super) timestamp: Option<u64>,
    #[prost(uint32, tag = "10")]
    pub(super) trusted_packet_sequence_id: u32,
    #[prost(message, optional, boxed, tag = "12")]
    pub(super) interned_data: Option<Box<InternedData>>,
    #[prost(uint32, tag = "13")]
    pub(super) sequence_flags: u32,
    #[prost(message, optional, boxed, tag = "59")]
    pub(super) trace_packet_defaults: Option<Box<TracePacketDefaults>>,
    #[prost(bool, tag = "87")]
    pub(super) first_packet_on_sequence: bool,
    #[prost(oneof = "Data", tags = "1, 2, 6, 11, 45, 60, 66, 117")]
    pub(super) data: Option<Data>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Data {
    #[prost(message, tag = "1")]
    FtraceEvents(FtraceEventBundle),
    #[prost(message, tag = "2")]
    ProcessTree(ProcessTree),
    #[prost(message, tag = "6")]
    ClockSnapshot(ClockSnapshot),
    #[prost(message, tag = "11")]
    TrackEvent(TrackEvent),
    #[prost(message, tag = "45")]
    SystemInfo(SystemInfo),
    #[prost(message, tag = "60")]
    TrackDescriptor(TrackDescriptor),
    #[prost(message, tag = "66")]
    PerfSample(PerfSample),
    #[prost(message, tag = "117")]
    TaskState(TaskState),
}

/// Events of a CPU by Linux's own tracer, in the order of their times, which are of `CLOCK_BOOTTIME`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEventBundle {
    #[prost(uint32, optional, tag = "1")]
    pub(super) cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub(super) event: Vec<FtraceEvent>,
    /// Whether events of the CPU are missing before these.
    #[prost(bool, tag = "3")]
    pub(super) lost_events: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    pub(super) timestamp: Option<u64>,
    /// The thread that ran, by the id that the kernel calls a pid.
    #[prost(uint32, optional, tag = "2")]
    pub(super) pid: Option<u32>,
    #[prost(oneof = "Scheduled", tags = "4, 17, 20, 114")]
    pub(super) event: Option<Scheduled>,
}

/// Those of the scheduler.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Scheduled {
    #[prost(message, tag = "4")]
    Switch(SchedSwitch),
    #[prost(message, tag = "17")]
    Wakeup(SchedWakeup),
    #[prost(message, tag = "20")]
    Waking(SchedWakeup),
    #[prost(message, tag = "114")]
    WakeupNew(SchedWakeup),
}

/// `SchedSwitchFtraceEvent`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct SchedSwitch {
    #[prost(string, tag = "1")]
    pub(super) prev_comm: String,
    #[prost(int32, optional, tag = "2")]
    pub(super) prev_pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(super) prev_prio: Option<i32>,
    /// The kernel's own bits, which mean what they mean in the release that `Utsname` tells.
    #[prost(int64, optional, tag = "4")]
    pub(super) prev_state: Option<i64>,
    #[prost(string, tag = "5")]
    pub(super) next_comm: String,
    #[prost(int32, optional, tag = "6")]
    pub(super) next_pid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    pub(super) next_prio: Option<i32>,
}

/// `SchedWakingFtraceEvent`, `SchedWakeupFtraceEvent` and `SchedWakeupNewFtraceEvent`, which are alike: of the thread that is woken.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct SchedWakeup {
    #[prost(string, tag = "1")]
    pub(super) comm: String,
    #[prost(int32, optional, tag = "2")]
    pub(super) pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(super) prio: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub(super) target_cpu: Option<i32>,
}

/// What holds for each packet of a sequence that does not say otherwise.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacketDefaults {
    #[prost(message, optional, tag = "12")]
    pub(super) perf_sample_defaults: Option<PerfSampleDefaults>,
    #[prost(uint32, tag = "58")]
    pub(super) timestamp_clock_id: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PerfSampleDefaults {
    #[prost(message, optional, tag = "1")]
    pub(super) timebase: Option<Timebase>,
}

/// `PerfEvents.Timebase`: what is counted, and how many of it are a sample.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Timebase {
    #[prost(uint64, tag = "1")]
    pub(super) period: u64,
    #[prost(message, optional, tag = "3")]
    pub(super) tracepoint: Option<Tracepoint>,
    #[prost(int32, optional, tag = "4")]
    pub(super) counter: Option<i32>,
    #[prost(string, tag = "10")]
    pub(super) name: String,
    #[prost(int32, tag = "11")]
    pub(super) timestamp_clock: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Tracepoint {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct PerfSample {
    #[prost(uint32, tag = "1")]
    pub(super) cpu: u32,
    #[prost(uint32, tag = "2")]
    pub(super) pid: u32,
    #[prost(uint32, tag = "3")]
    pub(super) tid: u32,
    #[prost(uint64, tag = "4")]
    pub(super) callstack_iid: u64,
    #[prost(int32, tag = "5")]
    pub(super) cpu_mode: i32,
    /// What was counted on the CPU until then.
    #[prost(uint64, tag = "6")]
    pub(super) timebase_count: u64,
    #[prost(int32, optional, tag = "16")]
    pub(super) unwind_error: Option<i32>,
    /// Instead of a sample.
    #[prost(uint64, tag = "17")]
    pub(super) kernel_records_lost: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedData {
    #[prost(message, repeated, tag = "2")]
    pub(super) event_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "3")]
    pub(super) debug_annotation_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "5")]
    pub(super) function_names: Vec<InternedString>,
    #[prost(message, repeated, tag = "6")]
    pub(super) frames: Vec<Frame>,
    #[prost(message, repeated, tag = "7")]
    pub(super) callstacks: Vec<Callstack>,
    #[prost(message, repeated, tag = "16")]
    pub(super) build_ids: Vec<InternedString>,
    #[prost(message, repeated, tag = "17")]
    pub(super) mapping_paths: Vec<InternedString>,
    #[prost(message, repeated, tag = "18")]
    pub(super) source_paths: Vec<InternedString>,
    #[prost(message, repeated, tag = "19")]
    pub(super) mappings: Vec<Mapping>,
    #[prost(message, repeated, tag = "29")]
    pub(super) debug_annotation_string_values: Vec<InternedString>,
}

/// `EventName` and `DebugAnnotationName`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct InternedName {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct InternedString {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) str: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Frame {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    #[prost(uint64, tag = "2")]
    pub(super) function_name_id: u64,
    #[prost(uint64, tag = "3")]
    pub(super) mapping_id: u64,
    /// Of an ELF file the address as linked.
    #[prost(uint64, optional, tag = "4")]
    pub(super) rel_pc: Option<u64>,
    #[prost(uint64, tag = "5")]
    pub(super) source_path_iid: u64,
    #[prost(uint32, tag = "6")]
    pub(super) line_number: u32,
    #[prost(int32, tag = "7")]
    pub(super) kind: i32,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Callstack {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    /// The outermost first.
    #[prost(uint64, repeated, tag = "2")]
    pub(super) frame_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    #[prost(uint64, tag = "2")]
    pub(super) build_id: u64,
    #[prost(uint64, tag = "4")]
    pub(super) start: u64,
    #[prost(uint64, tag = "5")]
    pub(super) end: u64,
    #[prost(uint64, tag = "6")]
    pub(super) load_bias: u64,
    #[prost(uint64, repeated, tag = "7")]
    pub(super) path_string_ids: Vec<u64>,
    /// Where in the file it starts.
    #[prost(uint64, tag = "8")]
    pub(super) exact_offset: u64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub(super) clocks: Vec<Clock>,
    #[prost(uint32, tag = "2")]
    pub(super) primary_trace_clock: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Clock {
    #[prost(uint32, tag = "1")]
    pub(super) clock_id: u32,
    #[prost(uint64, tag = "2")]
    pub(super) timestamp: u64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct SystemInfo {
    #[prost(message, optional, tag = "1")]
    pub(super) utsname: Option<Utsname>,
    /// Who wrote the trace.
    #[prost(string, tag = "4")]
    pub(super) tracing_service_version: String,
    #[prost(uint32, tag = "8")]
    pub(super) num_cpus: u32,
    #[prost(string, tag = "17")]
    pub(super) machine_name: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Utsname {
    #[prost(string, tag = "1")]
    pub(super) sysname: String,
    #[prost(string, tag = "3")]
    pub(super) release: String,
    #[prost(string, tag = "4")]
    pub(super) machine: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub(super) processes: Vec<ProcessOfTree>,
}

/// `ProcessTree.Process`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ProcessOfTree {
    #[prost(int32, tag = "1")]
    pub(super) pid: i32,
    #[prost(int32, tag = "2")]
    pub(super) ppid: i32,
    #[prost(string, repeated, tag = "3")]
    pub(super) cmdline: Vec<String>,
    #[prost(int32, optional, tag = "5")]
    pub(super) uid: Option<i32>,
}

/// `GenericKernelTaskStateEvent`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TaskState {
    #[prost(string, tag = "2")]
    pub(super) comm: String,
    #[prost(int64, tag = "3")]
    pub(super) tid: i64,
    #[prost(int32, tag = "4")]
    pub(super) state: i32,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, tag = "1")]
    pub(super) uuid: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, optional, tag = "3")]
    pub(super) process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub(super) thread: Option<ThreadDescriptor>,
    #[prost(uint64, tag = "5")]
    pub(super) parent_uuid: u64,
    #[prost(message, optional, tag = "8")]
    pub(super) counter: Option<CounterDescriptor>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(string, repeated, tag = "2")]
    pub(super) cmdline: Vec<String>,
    #[prost(string, tag = "6")]
    pub(super) process_name: String,
    #[prost(int64, tag = "7")]
    pub(super) start_timestamp_ns: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    pub(super) tid: Option<i64>,
    #[prost(string, tag = "5")]
    pub(super) thread_name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct CounterDescriptor {
    #[prost(int32, tag = "3")]
    pub(super) unit: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub(super) debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, tag = "9")]
    pub(super) r#type: i32,
    #[prost(uint64, tag = "10")]
    pub(super) name_iid: u64,
    #[prost(uint64, tag = "11")]
    pub(super) track_uuid: u64,
    /// Instead of `name_iid`.
    #[prost(string, tag = "23")]
    pub(super) name: String,
    #[prost(int64, optional, tag = "30")]
    pub(super) counter_value: Option<i64>,
    #[prost(uint64, tag = "56")]
    pub(super) callstack_iid: u64,
    /// What its call stack counts for in flame graphs.
    #[prost(double, optional, tag = "57")]
    pub(super) callstack_weight: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct DebugAnnotation {
    #[prost(uint64, tag = "1")]
    pub(super) name_iid: u64,
    #[prost(int64, optional, tag = "4")]
    pub(super) int_value: Option<i64>,
    #[prost(uint64, optional, tag = "17")]
    pub(super) string_value_iid: Option<u64>,
}
