//! Data of AUX areas, in which hardware traces instructions (Linux 4.2).

use super::{UserBody, write_text};
use crate::ids::{Avma, Nanos, Pid, Tid};
use crate::perf::fields::Fields;
use crate::perf::write::Writer;
use crate::perf::{Misc, Text, Words};

/// `PERF_RECORD_AUXTRACE_INFO`: what is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuxtraceInfo<'a> {
    /// The kind of trace, `enum auxtrace_type`: 1 is Intel PT, 2 Intel BTS, 3 `CoreSight`, 4 Arm SPE, 5 s390 `CPU-MF`,
    /// 6 `HiSilicon` PTT.
    pub kind: u32,
    /// What its decoder has to know.
    pub private: Words<'a>,
}

impl<'a> UserBody<'a> for AuxtraceInfo<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        let (kind, _reserved) = (fields.u32()?, fields.u32()?);
        Some(Self { kind, private: fields.words(fields.rest.len() as u64 / 8)? })
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        writer.u32(self.kind);
        writer.u32(0);
        writer.words(self.private);
    }
}

/// `PERF_RECORD_AUXTRACE`: data of an AUX area follows the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auxtrace {
    /// How many bytes it has.
    pub size: u64,
    /// Where they were in all that the area has had.
    pub offset: u64,
    /// A number of the recording's own.
    pub reference: u64,
    /// Which of the areas.
    pub index: u32,
    /// The thread, or -1: any.
    pub tid: i32,
    /// The CPU, or -1: any.
    pub cpu: i32,
}

impl<'a> UserBody<'a> for Auxtrace {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        let trace = Self {
            size: fields.u64()?,
            offset: fields.u64()?,
            reference: fields.u64()?,
            index: fields.u32()?,
            tid: fields.u32()? as i32,
            cpu: fields.u32()? as i32,
        };
        let _reserved = fields.u32()?;
        Some(trace)
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        for number in [self.size, self.offset, self.reference] {
            writer.u64(number);
        }
        for number in [self.index, self.tid as u32, self.cpu as u32, 0] {
            writer.u32(number);
        }
    }
}

/// `PERF_RECORD_AUXTRACE_ERROR`: the trace could not be decoded. `perf inject` writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuxtraceError<'a> {
    /// The kind of error; 1 is one of the trace of instructions.
    pub kind: u32,
    /// The decoder's number for it.
    pub code: u32,
    /// The CPU, or -1.
    pub cpu: i32,
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// How the record is laid out: 0 has no time, and 2 may have a guest.
    pub format: u32,
    /// Where the program was.
    pub ip: Avma,
    /// When.
    pub time: Option<Nanos>,
    /// What the decoder says.
    pub message: Text<'a>,
    /// The virtual machine (Linux 6.0).
    pub guest: Option<Guest>,
}

/// A CPU of a virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guest {
    /// The machine's process; 0 for none.
    pub pid: Pid,
    /// Its CPU.
    pub cpu: u32,
}

impl AuxtraceError<'_> {
    /// `MAX_AUXTRACE_ERROR_MSG`. A record ends earlier if no guest follows.
    const MESSAGE: usize = 64;
}

impl<'a> UserBody<'a> for AuxtraceError<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        let (kind, code, cpu) = (fields.u32()?, fields.u32()?, fields.u32()? as i32);
        let (pid, tid, format) = (fields.pid()?, fields.tid()?, fields.u32()?);
        let ip = fields.address()?;
        let time = if format > 0 { Some(fields.nanos()?) } else { None };
        let mut behind = *fields;
        let mut with_guest = || {
            let message = behind.bytes(Self::MESSAGE)?;
            Some((message, Some(Guest { pid: behind.pid()?, cpu: behind.u32()? })))
        };
        let (message, guest) = match with_guest() {
            Some(both) if format > 1 => {
                *fields = behind;
                both
            }
            _ => (fields.remaining(), None),
        };
        let message = Text::from_field(message);
        Some(Self { kind, code, cpu, pid, tid, format, ip, time, message, guest })
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        for number in [self.kind, self.code, self.cpu as u32, self.pid.0, self.tid.0, self.format] {
            writer.u32(number);
        }
        writer.address(self.ip);
        if self.format > 0 {
            writer.nanos(self.time.unwrap_or_default());
        }
        if let Some(guest) = self.guest.filter(|_| self.format > 1) {
            write_text(writer, self.message, Self::MESSAGE);
            writer.pid(guest.pid);
            writer.u32(guest.cpu);
        } else {
            writer.text(self.message);
        }
    }
}
