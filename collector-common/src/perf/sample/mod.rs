//! Samples: which parts one has is decided by the event's `sample_type`, and each part is a view of the record.
//!
//! The order of the parts is that in which the kernel writes them (`perf_output_sample` of `kernel/events/core.c`).

mod branch;
mod callchain;
mod memory;
mod read_values;
mod registers;

use super::fields::Fields;
use super::record::Body;
use super::write::{WriteError, Writer};
use super::{BranchSampleType, Bytes, Misc, ParseConfig, SampleId, SampleType};
use crate::ids::{Avma, Nanos, Pid, Tid};

pub use branch::{BranchEntry, BranchFlags, BranchStack};
pub use callchain::{Callchain, ChainContext, ChainEntry};
pub use memory::{DataSource, Transaction, Weight};
pub use read_values::{Counters, GroupValues, ReadValue, ReadValues};
pub use registers::{Registers, RegistersAbi, UserStack};

/// `PERF_RECORD_SAMPLE`: the event happened. A part is there if the event's [`SampleType`] has its bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample<'a> {
    /// The event's id.
    pub identifier: Option<u64>,
    /// The instruction.
    pub ip: Option<Avma>,
    /// The process.
    pub pid: Option<Pid>,
    /// The thread; there with the process.
    pub tid: Option<Tid>,
    /// When, in the event's clock.
    pub time: Option<Nanos>,
    /// The data's address.
    pub addr: Option<Avma>,
    /// The event's id; of an inherited event, its parent's.
    pub id: Option<u64>,
    /// The event's own id.
    pub stream_id: Option<u64>,
    /// The CPU.
    pub cpu: Option<u32>,
    /// Events since the sample before.
    pub period: Option<u64>,
    /// Counter values.
    pub read: Option<ReadValues<'a>>,
    /// The callchain.
    pub callchain: Option<Callchain<'a>>,
    /// A tracepoint's fields, or what a PMU adds; with the zeros that fill it up to where the next part begins.
    pub raw: Option<Bytes<'a>>,
    /// The last branches.
    pub branch_stack: Option<BranchStack<'a>>,
    /// The registers of user space.
    pub user_registers: Option<Registers<'a>>,
    /// A copy of the user stack.
    pub user_stack: Option<UserStack<'a>>,
    /// What the access cost.
    pub weight: Option<Weight>,
    /// Where the data came from.
    pub data_source: Option<DataSource>,
    /// Why a transaction was aborted.
    pub transaction: Option<Transaction>,
    /// The registers that were interrupted.
    pub interrupted_registers: Option<Registers<'a>>,
    /// The data's physical address.
    pub phys_addr: Option<u64>,
    /// The cgroup's id.
    pub cgroup: Option<u64>,
    /// The size of the page with the data.
    pub data_page_size: Option<u64>,
    /// The size of the page with the instruction.
    pub code_page_size: Option<u64>,
    /// A part of the AUX area.
    pub aux: Option<Bytes<'a>>,
}

impl<'a> Sample<'a> {
    /// The parts of it that other records have as well.
    pub fn sample_id(&self) -> SampleId {
        SampleId {
            pid: self.pid,
            tid: self.tid,
            time: self.time,
            id: self.id,
            stream_id: self.stream_id,
            cpu: self.cpu,
            identifier: self.identifier,
        }
    }

    /// Reads the parts into a sample that has none. A branch stack without branches may have a hardware index or not; the
    /// reading that ends where the record ends is the right one.
    #[inline]
    pub(super) fn fill(&mut self, fields: &mut Fields<'a>, config: &ParseConfig) -> Option<()> {
        let start = *fields;
        let filled = self.fill_parts(fields, config, true);
        let may_lack_index = config.sample_type.contains(SampleType::BRANCH_STACK)
            && config.branch_sample_type.contains(BranchSampleType::HW_INDEX);
        if !may_lack_index || filled.is_some() && fields.rest.is_empty() {
            return filled;
        }
        let (mut other, mut again) = (Self::default(), start);
        let other_filled = other.fill_parts(&mut again, config, false);
        if other_filled.is_some() && (filled.is_none() || again.rest.is_empty()) {
            (*self, *fields) = (other, again);
            return other_filled;
        }
        filled
    }

    #[inline]
    fn fill_parts(
        &mut self,
        fields: &mut Fields<'a>,
        config: &ParseConfig,
        index_of_none: bool,
    ) -> Option<()> {
        let parts = config.sample_type;
        let has = |part| parts.contains(part);
        if has(SampleType::IDENTIFIER) {
            self.identifier = Some(fields.u64()?);
        }
        if has(SampleType::IP) {
            self.ip = Some(fields.address()?);
        }
        if has(SampleType::TID) {
            self.pid = Some(fields.pid()?);
            self.tid = Some(fields.tid()?);
        }
        if has(SampleType::TIME) {
            self.time = Some(fields.nanos()?);
        }
        if has(SampleType::ADDR) {
            self.addr = Some(fields.address()?);
        }
        if has(SampleType::ID) {
            self.id = Some(fields.u64()?);
        }
        if has(SampleType::STREAM_ID) {
            self.stream_id = Some(fields.u64()?);
        }
        if has(SampleType::CPU) {
            self.cpu = Some(cpu(fields)?);
        }
        if has(SampleType::PERIOD) {
            self.period = Some(fields.u64()?);
        }
        if has(SampleType::READ) {
            self.read = Some(ReadValues::read(fields, config.read_format)?);
        }
        if has(SampleType::CALLCHAIN) {
            let count = fields.u64()?;
            self.callchain = Some(fields.words(count)?.into());
        }
        if has(SampleType::RAW) {
            let len = fields.u32()?;
            self.raw = Some(fields.bytes_of(len.into())?);
        }
        if has(SampleType::BRANCH_STACK) {
            self.branch_stack = Some(BranchStack::read(fields, config, index_of_none)?);
        }
        if has(SampleType::REGS_USER) {
            self.user_registers = Some(Registers::read(fields, config.sample_regs_user)?);
        }
        if has(SampleType::STACK_USER) {
            self.user_stack = Some(UserStack::read(fields)?);
        }
        self.fill_rare_parts(fields, config)
    }

    /// Those behind the user stack.
    fn fill_rare_parts(&mut self, fields: &mut Fields<'a>, config: &ParseConfig) -> Option<()> {
        let parts = config.sample_type;
        let has = |part| parts.contains(part);
        if has(SampleType::WEIGHT) || has(SampleType::WEIGHT_STRUCT) {
            self.weight = Some(Weight(fields.u64()?));
        }
        if has(SampleType::DATA_SRC) {
            self.data_source = Some(DataSource(fields.u64()?));
        }
        if has(SampleType::TRANSACTION) {
            self.transaction = Some(Transaction(fields.u64()?));
        }
        if has(SampleType::REGS_INTR) {
            self.interrupted_registers = Some(Registers::read(fields, config.sample_regs_intr)?);
        }
        if has(SampleType::PHYS_ADDR) {
            self.phys_addr = Some(fields.u64()?);
        }
        if has(SampleType::CGROUP) {
            self.cgroup = Some(fields.u64()?);
        }
        if has(SampleType::DATA_PAGE_SIZE) {
            self.data_page_size = Some(fields.u64()?);
        }
        if has(SampleType::CODE_PAGE_SIZE) {
            self.code_page_size = Some(fields.u64()?);
        }
        if has(SampleType::AUX) {
            let len = fields.u64()?;
            self.aux = Some(fields.bytes_of(len)?);
        }
        Some(())
    }
}

/// The CPU's number, and 4 bytes that are not in use.
pub(super) fn cpu(fields: &mut Fields<'_>) -> Option<u32> {
    let cpu = fields.u32()?;
    fields.u32()?;
    Some(cpu)
}

impl<'a> Body<'a> for Sample<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc, config: &ParseConfig) -> Option<Self> {
        let mut sample = Self::default();
        sample.fill(fields, config)?;
        Some(sample)
    }

    fn write(&self, writer: &mut Writer<'_>, config: &ParseConfig) -> Result<(), WriteError> {
        let mut parts = Parts { writer, asked: config.sample_type };
        parts.number(SampleType::IDENTIFIER, self.identifier)?;
        parts.number(SampleType::IP, self.ip.map(|ip| ip.0))?;
        parts.task(self.pid, self.tid)?;
        parts.number(SampleType::TIME, self.time.map(|time| time.0))?;
        parts.number(SampleType::ADDR, self.addr.map(|addr| addr.0))?;
        parts.number(SampleType::ID, self.id)?;
        parts.number(SampleType::STREAM_ID, self.stream_id)?;
        parts.cpu(self.cpu)?;
        parts.number(SampleType::PERIOD, self.period)?;
        parts.part(SampleType::READ, self.read, |writer, read| read.write(writer, config.read_format))?;
        parts.part(SampleType::CALLCHAIN, self.callchain, |writer, chain| {
            writer.u64(chain.words.len() as u64);
            writer.words(chain.words);
            Ok(())
        })?;
        parts.part(SampleType::RAW, self.raw, write_raw)?;
        parts.part(SampleType::BRANCH_STACK, self.branch_stack, |writer, branches| {
            branches.write(writer, config)
        })?;
        parts.part(SampleType::REGS_USER, self.user_registers, |writer, registers| {
            registers.write(writer, config.sample_regs_user, SampleType::REGS_USER)
        })?;
        parts.part(SampleType::STACK_USER, self.user_stack, |writer, stack| {
            stack.write(writer);
            Ok(())
        })?;
        let weight = self.weight.map(|weight| weight.0);
        if parts.asked.contains(SampleType::WEIGHT_STRUCT) {
            parts.number(SampleType::WEIGHT_STRUCT, weight)?;
        } else {
            parts.number(SampleType::WEIGHT, weight)?;
        }
        parts.number(SampleType::DATA_SRC, self.data_source.map(|source| source.0))?;
        parts.number(SampleType::TRANSACTION, self.transaction.map(|transaction| transaction.0))?;
        parts.part(SampleType::REGS_INTR, self.interrupted_registers, |writer, registers| {
            registers.write(writer, config.sample_regs_intr, SampleType::REGS_INTR)
        })?;
        parts.number(SampleType::PHYS_ADDR, self.phys_addr)?;
        parts.number(SampleType::CGROUP, self.cgroup)?;
        parts.number(SampleType::DATA_PAGE_SIZE, self.data_page_size)?;
        parts.number(SampleType::CODE_PAGE_SIZE, self.code_page_size)?;
        parts.part(SampleType::AUX, self.aux, |writer, aux| {
            let filled_up = aux.len().next_multiple_of(8);
            writer.u64(filled_up as u64);
            writer.bytes(aux);
            writer.zeros(filled_up - aux.len());
            Ok(())
        })
    }
}

/// With as many zeros behind it as end it, with its size before it, at a multiple of 8.
fn write_raw(writer: &mut Writer<'_>, raw: Bytes<'_>) -> Result<(), WriteError> {
    let filled_up = (raw.len() + 4).next_multiple_of(8) - 4;
    writer.u32(u32::try_from(filled_up).map_err(|_| WriteError::TooLong(filled_up))?);
    writer.bytes(raw);
    writer.zeros(filled_up - raw.len());
    Ok(())
}

/// Writes the parts that the event asks for, and leaves out the others.
pub(super) struct Parts<'w, 'o> {
    pub(super) writer: &'w mut Writer<'o>,
    pub(super) asked: SampleType,
}

impl<'o> Parts<'_, 'o> {
    pub(super) fn part<T>(
        &mut self,
        part: SampleType,
        value: Option<T>,
        write: impl FnOnce(&mut Writer<'o>, T) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        if self.asked.contains(part) {
            write(self.writer, value.ok_or(WriteError::Missing(part))?)?;
        }
        Ok(())
    }

    pub(super) fn number(&mut self, part: SampleType, value: Option<u64>) -> Result<(), WriteError> {
        self.part(part, value, |writer, value| {
            writer.u64(value);
            Ok(())
        })
    }

    pub(super) fn task(&mut self, pid: Option<Pid>, tid: Option<Tid>) -> Result<(), WriteError> {
        self.part(SampleType::TID, pid.zip(tid), |writer, (pid, tid)| {
            writer.pid(pid);
            writer.tid(tid);
            Ok(())
        })
    }

    pub(super) fn cpu(&mut self, cpu: Option<u32>) -> Result<(), WriteError> {
        self.part(SampleType::CPU, cpu, |writer, cpu| {
            writer.u32(cpu);
            writer.u32(0);
            Ok(())
        })
    }
}
