//! Records by hand, of a trace whose clock counts nanoseconds from 0, on a 64-bit machine.

use collector_common::event::{FileTime, Guid};
use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::record::EventRecords;
use collector_user::etw::{Shortest, Taker, Trace};
use export::import::Imported;
use windows_etw::decode::clr::RUNTIME;
use windows_etw::decode::kernel::{IMAGE, PERF_INFO, PROCESS, STACK_WALK, THREAD};
use windows_etw::etl::{Clock, ClockKind, TraceVersion};
use windows_etw::record::{Descriptor, EtwRecord, Extended, PointerSize, Schema};

/// A trace that is made.
pub(crate) struct Made {
    taker: Taker,
}

/// An event of any kind.
pub(crate) struct Odd {
    pub(crate) at: i64,
    pub(crate) provider: Guid,
    /// None of classic events.
    pub(crate) id: Option<u16>,
    pub(crate) opcode: u8,
    pub(crate) version: u8,
    /// Of its process, its thread and its CPU; 0 is none.
    pub(crate) number: u32,
}

/// A payload that is made.
#[derive(Default)]
pub(crate) struct Payload(pub(crate) Vec<u8>);

impl Payload {
    pub(crate) fn u8(mut self, values: &[u8]) -> Self {
        self.0.extend_from_slice(values);
        self
    }

    pub(crate) fn u16(mut self, value: u16) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn u32(mut self, values: &[u32]) -> Self {
        self.0.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self
    }

    pub(crate) fn u64(mut self, values: &[u64]) -> Self {
        self.0.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self
    }

    pub(crate) fn wide(self, text: &str) -> Self {
        text.encode_utf16().chain([0]).fold(self, Self::u16)
    }
}

impl Made {
    pub(crate) fn new() -> Self {
        let clock = Clock {
            kind: ClockKind::PerformanceCounter,
            frequency: 1_000_000_000,
            start_ticks: 0,
            start: FileTime(132_223_104_000_000_000),
        };
        let windows = TraceVersion { major: 10, minor: 0, build: 19_045, ..TraceVersion::default() };
        let trace =
            Trace { clock, boot: None, end: None, cpus: 2, windows, pointer_size: PointerSize::Bits64 };
        Self { taker: Taker::new(trace, EventRecords::LIMIT) }
    }

    /// One that was recorded for these scenarios.
    pub(crate) fn of(scenarios: &[&str]) -> Self {
        let mut made = Self::new();
        made.taker.want(&scenarios.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        made
    }

    /// The same, without times off a CPU that are shorter.
    pub(crate) fn of_longer(scenarios: &[&str], [off_cpu, wall_clock]: [u64; 2]) -> Self {
        let mut made = Self::of(scenarios);
        made.taker.leave_out_shorter(Shortest { off_cpu: Nanos(off_cpu), wall_clock: Nanos(wall_clock) });
        made
    }

    /// One that may be of a machine with these volumes.
    #[cfg(target_os = "linux")]
    pub(crate) fn with_volumes(volumes: &[[&str; 2]]) -> Self {
        let mut made = Self::new();
        let volumes = volumes.iter().map(|[nt, dos]| ((*nt).to_owned(), (*dos).to_owned()));
        made.taker.try_volumes(volumes.collect());
        made
    }

    pub(crate) fn finish(self) -> Imported {
        self.taker.finish()
    }

    /// An event of a class, by its opcode and version.
    pub(crate) fn classic(
        &mut self,
        at: i64,
        (class, opcode, version): (Guid, u8, u8),
        cpu: u16,
        payload: &Payload,
    ) {
        self.take((None, None), at, (class, opcode, version), cpu, payload);
    }

    /// The same of a process and a thread, which its header tells.
    pub(crate) fn classic_of(
        &mut self,
        (pid, tid): (Pid, Tid),
        at: i64,
        event: (Guid, u8, u8),
        payload: &Payload,
    ) {
        self.take((Some(pid), Some(tid)), at, event, 0, payload);
    }

    fn take(
        &mut self,
        (pid, tid): (Option<Pid>, Option<Tid>),
        at: i64,
        (class, opcode, version): (Guid, u8, u8),
        cpu: u16,
        payload: &Payload,
    ) {
        let descriptor = Descriptor { opcode, version, ..Descriptor::default() };
        self.taker.take(&EtwRecord {
            provider: class,
            descriptor,
            schema: Schema::Classic,
            pointer_size: PointerSize::Bits64,
            pid,
            tid,
            cpu,
            ticks: at,
            activity: Guid([0; 16]),
            extended: Extended::default(),
            payload: &payload.0,
        });
    }

    /// `Process/Start`, or with opcode 2 `Process/Stop`.
    pub(crate) fn process(&mut self, at: i64, opcode: u8, pid: u32, image: &str) {
        let payload = Payload::default().u64(&[0x1000]).u32(&[pid, 4, 1, 0]).u32(&[0; 1]);
        let payload = payload.u8(image.as_bytes()).u8(&[0]).wide(&format!("{image} --now"));
        self.classic(at, (PROCESS, opcode, 2), 0, &payload);
    }

    /// `Thread/Start`, with a name.
    pub(crate) fn thread(&mut self, at: i64, pid: u32, tid: u32, name: &str) {
        let payload = Payload::default().u32(&[pid, tid]).u64(&[0; 7]).u32(&[0]).u8(&[8, 5, 2, 0]);
        self.classic(at, (THREAD, 1, 3), 0, &payload.wide(name));
    }

    /// `Image/Load`, or with opcode 2 `Image/Unload`, of 64 KiB.
    pub(crate) fn image(&mut self, at: i64, opcode: u8, pid: u32, base: u64, path: &str) {
        self.image_of((at, opcode), pid, base, path, [1, 2]);
    }

    /// The same with its checksum and its date, which `Image/DCStart`, opcode 3, has as 0.
    pub(crate) fn image_of(
        &mut self,
        (at, opcode): (i64, u8),
        pid: u32,
        base: u64,
        path: &str,
        [checksum, date]: [u32; 2],
    ) {
        let payload = Payload::default().u64(&[base, 0x1_0000]).u32(&[pid, checksum, date, 0]).u64(&[base]);
        self.classic(at, (IMAGE, opcode, 2), 0, &payload.u32(&[0; 4]).wide(path));
    }

    /// `Thread/CSwitch`: the old thread's state is 5 if it waits, 1 if it lost its CPU.
    pub(crate) fn switch(&mut self, at: i64, cpu: u16, old: u32, state: u8, new: u32) {
        let payload = Payload::default().u32(&[new, old]).u8(&[8, 8, 0, 0, 4, 1, state, 0]).u32(&[0, 0]);
        self.classic(at, (THREAD, 36, 2), cpu, &payload);
    }

    /// `Thread/SetName`.
    pub(crate) fn rename(&mut self, at: i64, pid: u32, tid: u32, name: &str) {
        self.classic(at, (THREAD, 72, 2), 0, &Payload::default().u32(&[pid, tid]).wide(name));
    }

    /// `Dispatcher/ReadyThread`, on the first CPU.
    pub(crate) fn ready(&mut self, at: i64, tid: u32) {
        self.ready_by(at, (0, None), 0, tid);
    }

    /// The same on a CPU, of a thread if its header tells one; the flag is 1 in a deferred procedure call.
    pub(crate) fn ready_by(&mut self, at: i64, (cpu, of): (u16, Option<u32>), flag: u8, tid: u32) {
        let payload = Payload::default().u32(&[tid]).u8(&[1, 0, flag, 0]);
        self.take((None, of.map(Tid)), at, (THREAD, 50, 2), cpu, &payload);
    }

    /// `PerfInfo/Sample`.
    pub(crate) fn sample(&mut self, at: i64, cpu: u16, tid: u32, instruction: u64, flags: u8) {
        let payload = Payload::default().u64(&[instruction]).u32(&[tid]).u16(1).u8(&[flags, 0]);
        self.classic(at, (PERF_INFO, 46, 2), cpu, &payload);
    }

    /// `PerfInfo/SetInterval`, in units of 100 ns.
    pub(crate) fn interval(&mut self, at: i64, units: u32) {
        self.classic(at, (PERF_INFO, 72, 2), 0, &Payload::default().u32(&[0, units, units]));
    }

    /// `StackWalk/Stack` of an event at `of`.
    pub(crate) fn stack(&mut self, at: i64, of: u64, pid: u32, tid: u32, addresses: &[u64]) {
        let payload = Payload::default().u64(&[of]).u32(&[pid, tid]).u64(addresses);
        self.classic(at, (STACK_WALK, 32, 2), 0, &payload);
    }

    /// `Method/LoadVerbose`, or with number 144 `Method/UnloadVerbose`, of 256 bytes.
    pub(crate) fn method(&mut self, at: i64, number: u16, pid: u32, start: u64, name: &str) {
        let payload = Payload::default().u64(&[start, 1, start]).u32(&[0x100, 0, 0]);
        let payload = payload.wide("Made.Type").wide(name).wide("void  ()").u16(9);
        let descriptor = Descriptor { id: number, version: 1, ..Descriptor::default() };
        self.taker.take(&EtwRecord {
            provider: RUNTIME,
            descriptor,
            schema: Schema::Manifest,
            pointer_size: PointerSize::Bits64,
            pid: Some(Pid(pid)),
            tid: Some(Tid(1)),
            cpu: 0,
            ticks: at,
            activity: Guid([0; 16]),
            extended: Extended::default(),
            payload: &payload.0,
        });
    }

    /// Any event with any payload.
    pub(crate) fn odd(&mut self, odd: &Odd, payload: &[u8]) {
        self.odd_with(odd, Extended::default(), payload);
    }

    /// The same with what goes with an event besides.
    pub(crate) fn odd_with(&mut self, odd: &Odd, extended: Extended<'_>, payload: &[u8]) {
        let &Odd { at, provider, id, opcode, version, number } = odd;
        let descriptor = Descriptor { id: id.unwrap_or(0), opcode, version, ..Descriptor::default() };
        let number = Some(number).filter(|number| *number > 0);
        self.taker.take(&EtwRecord {
            provider,
            descriptor,
            schema: if id.is_some() { Schema::Manifest } else { Schema::Classic },
            pointer_size: PointerSize::Bits64,
            pid: number.map(Pid),
            tid: number.map(Tid),
            cpu: number.unwrap_or(0) as u16,
            ticks: at,
            activity: Guid([0; 16]),
            extended,
            payload,
        });
    }
}
