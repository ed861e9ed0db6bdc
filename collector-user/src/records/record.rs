//! A record as a source hands it over: who, when and where, with the stacks as they were copied, and the event's own data.

use collector_common::wire::{
    Fault, OuterLines, SampleFlags, SampleHeader, Tracepoint, Transfer, TrappedReturns, VERSION,
};

/// Which of the events of a session a record is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventIndex(pub u16);

impl EventIndex {
    /// The sampling clock, which every session has.
    pub const CLOCK: Self = Self(0);

    /// The event at a position of `SessionSettings::events` of `session`.
    pub const fn of_hook(position: u16) -> Self {
        Self(Self::CLOCK.0 + 1 + position)
    }

    /// Its position there; `None` for the sampling clock.
    pub(crate) fn hook(self) -> Option<usize> {
        self.0.checked_sub(Self::CLOCK.0 + 1).map(usize::from)
    }
}

/// The pid and tid in records of a thread that the kernel has released: it has none any more.
pub const RELEASED: u32 = u32::MAX;

/// One record of a source. It borrows from the source's ring or file.
#[derive(Clone, Copy, Debug)]
pub struct SourceRecord<'a> {
    /// What happened.
    pub event: EventIndex,
    /// To whom, when and where, and the user registers. Of a thread that has ended, both its numbers or
    /// one may be [`RELEASED`].
    pub header: &'a SampleHeader,
    /// Whether the header has the thread's name; else it is the last one that is known, or its process's.
    pub is_named: bool,
    /// The kernel stack, leaf first: the interrupted address, then return addresses.
    pub kernel: &'a [u64],
    /// The user stack from the stack pointer upwards.
    pub stack: &'a [u8],
    /// The calls on it whose returns the kernel traps, so that it has the kernel's address for theirs.
    pub returns: Option<&'a TrappedReturns>,
    /// Of a stack that is larger than its copy: lines of the outer frames.
    pub outer: Option<&'a OuterLines>,
    /// The user's part where it was walked already, leaf first: the interrupted address, then return addresses. Empty where
    /// the registers and the copied stack say it.
    pub user: &'a [u64],
    /// What it stands for: how often the event happened since its sample before. 1 where each time is a record.
    pub value: u64,
    /// The event's data, laid out as its format says; empty for the sampling clock.
    pub data: &'a [u8],
    /// The bytes that [`Self::of_ring`] makes all of this of but the event, up to the last that says anything. Empty where it does not.
    pub written: &'a [u8],
}

impl<'a> SourceRecord<'a> {
    /// A record that says no more than what happened, to whom, when and where: once, without stacks and data, and the header has
    /// the thread's name.
    pub fn bare(event: EventIndex, header: &'a SampleHeader) -> Self {
        Self {
            event,
            header,
            is_named: true,
            kernel: &[],
            stack: &[],
            returns: None,
            outer: None,
            user: &[],
            value: 1,
            data: &[],
            written: &[],
        }
    }

    /// A record as the eBPF programs write it, as one of the sampling clock; `None` for one that is not of this version's
    /// form.
    pub fn of_ring(record: &'a [u8]) -> Option<Self> {
        const WITH_DATA: u32 =
            SampleFlags::OFF_CPU | SampleFlags::LAST | SampleFlags::CALL | SampleFlags::FUNCTION;
        let (header, rest) = record.split_at_checked(SampleHeader::SIZE)?;
        let header: &SampleHeader = bytemuck::try_from_bytes(header).ok()?;
        if header.version != VERSION {
            return None;
        }
        // What is there for stacks has room behind them, with what was in the ring before.
        let is_bare = rest.is_empty();
        let len = SampleHeader::STACK_OFFSET.saturating_add(header.stack_bytes as usize);
        let has_lines = header.flags().has(SampleFlags::OUTER_LINES);
        let ends_with_stack = !is_bare && !has_lines && !header.flags().has(SampleFlags::RETURNS);
        let written = if ends_with_stack { record.get(..len).unwrap_or(record) } else { record };
        let record = Self { written, ..Self::bare(EventIndex::CLOCK, header) };
        let mut rest = rest;
        let mut returns = None;
        if has_lines || header.flags().has(SampleFlags::RETURNS) {
            let (before, end) = rest.split_at_checked(rest.len().checked_sub(TrappedReturns::SIZE)?)?;
            rest = before;
            if header.flags().has(SampleFlags::RETURNS) {
                returns = Some(bytemuck::try_from_bytes(end).ok()?);
            }
        }
        let mut outer = None;
        if has_lines {
            let (before, end) = rest.split_at_checked(rest.len().checked_sub(OuterLines::SIZE)?)?;
            (rest, outer) = (before, Some(bytemuck::try_from_bytes(end).ok()?));
        }
        let is_fault = header.flags().has(SampleFlags::FAULT);
        let value = if is_fault { Fault::of(&header.data).stands_for } else { 1 };
        let record = Self { returns, outer, value, ..record };
        let data: &[u8] = bytemuck::cast_slice(&header.data);
        if header.flags().has(SampleFlags::TRANSFER) {
            let (transfer, stack) = rest.split_at_checked(SampleHeader::KERNEL_STACK_SIZE)?;
            let data = transfer.get(..size_of::<Transfer>())?;
            return Some(Self { stack: stack.get(..header.stack_bytes as usize)?, data, ..record });
        }
        if header.flags().has(SampleFlags::BACK) {
            return Some(Self { data, ..record });
        }
        let data = if header.flags().has(SampleFlags::TRACEPOINT) {
            let Tracepoint { bytes, .. } = bytemuck::cast(header.data);
            data.get(std::mem::offset_of!(Tracepoint, record)..)?.get(..usize::from(bytes))?
        } else if header.flags & WITH_DATA != 0 {
            data
        } else {
            &[]
        };
        // Without stacks.
        if rest.is_empty() && header.kernel_bytes == 0 && header.stack_bytes == 0 {
            return Some(Self { data, ..record });
        }
        let (kernel, stack) = rest.split_at_checked(SampleHeader::KERNEL_STACK_SIZE)?;
        let kernel = bytemuck::try_cast_slice(kernel.get(..usize::from(header.kernel_bytes))?).ok()?;
        let stack = stack.get(..header.stack_bytes as usize)?;
        Some(Self { kernel, stack, data, ..record })
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable as _;

    use super::*;

    #[test]
    fn a_transfer_lies_before_the_stack() {
        let header = SampleHeader {
            version: VERSION,
            flags: SampleFlags::TRANSFER,
            stack_bytes: 4,
            ..SampleHeader::zeroed()
        };
        let mut words = vec![0_u64; (SampleHeader::STACK_OFFSET + 8) / 8];
        let record: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        record[..SampleHeader::SIZE].copy_from_slice(bytemuck::bytes_of(&header));
        record[SampleHeader::SIZE] = 1;
        record[SampleHeader::STACK_OFFSET..][..4].copy_from_slice(b"user");
        let read = SourceRecord::of_ring(record).unwrap();
        assert_eq!(
            (read.data.len(), read.data[0], read.stack),
            (size_of::<Transfer>(), 1, b"user".as_slice())
        );
        assert!(read.kernel.is_empty());
        // Cut, noticed as that.
        for len in [SampleHeader::STACK_OFFSET + 3, SampleHeader::STACK_OFFSET - 1, SampleHeader::SIZE] {
            assert!(SourceRecord::of_ring(&record[..len]).is_none());
        }
    }

    #[test]
    fn a_fault_stands_for_as_many_as_it_was_chosen_from() {
        let value_of = |flags| {
            let data = Fault { stands_for: 16, is_major: 0 }.words();
            let header = SampleHeader { version: VERSION, flags, data, ..SampleHeader::zeroed() };
            let mut words = vec![0_u64; SampleHeader::STACK_OFFSET / 8];
            let record: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
            record[..SampleHeader::SIZE].copy_from_slice(bytemuck::bytes_of(&header));
            let read = SourceRecord::of_ring(record).unwrap();
            (read.value, read.data.len())
        };
        assert_eq!([value_of(SampleFlags::FAULT), value_of(0)], [(16, 0), (1, 0)]);
    }

    #[test]
    fn outer_lines_are_before_the_room_for_trapped_returns() {
        for with_returns in [0, SampleFlags::RETURNS] {
            let flags = SampleFlags::OUTER_LINES | with_returns;
            let header = SampleHeader { version: VERSION, flags, stack_bytes: 8, ..SampleHeader::zeroed() };
            let lines = OuterLines { lines: [64; OuterLines::MOST], ..OuterLines::zeroed() };
            let returns = TrappedReturns { trampoline: 7, ..TrappedReturns::zeroed() };
            let end = SampleHeader::STACK_OFFSET + 16;
            let mut words = vec![0_u64; (end + OuterLines::SIZE + TrappedReturns::SIZE) / 8];
            let record: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
            record[..SampleHeader::SIZE].copy_from_slice(bytemuck::bytes_of(&header));
            record[end..][..OuterLines::SIZE].copy_from_slice(bytemuck::bytes_of(&lines));
            record[end + OuterLines::SIZE..].copy_from_slice(bytemuck::bytes_of(&returns));
            let read = SourceRecord::of_ring(record).unwrap();
            assert_eq!(read.outer.map(|read| read.lines[15]), Some(64));
            assert_eq!(read.returns.map(|read| read.trampoline), (with_returns != 0).then_some(7));
            assert_eq!((read.stack.len(), read.written.len()), (8, record.len()));
            for cut in [end - 8 + OuterLines::SIZE + TrappedReturns::SIZE - 16, OuterLines::SIZE, 0] {
                assert!(SourceRecord::of_ring(&record[..cut]).is_none(), "{cut}");
            }
        }
    }

    #[test]
    fn trapped_returns_are_the_end_of_a_record() {
        let header = SampleHeader {
            version: VERSION,
            flags: SampleFlags::RETURNS,
            stack_bytes: 8,
            ..SampleHeader::zeroed()
        };
        let returns = TrappedReturns { trampoline: 7, count: 1, ..TrappedReturns::zeroed() };
        let room = 16;
        let mut words = vec![0_u64; (SampleHeader::STACK_OFFSET + room + TrappedReturns::SIZE) / 8];
        let record: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        record[..SampleHeader::SIZE].copy_from_slice(bytemuck::bytes_of(&header));
        record[SampleHeader::STACK_OFFSET + room..].copy_from_slice(bytemuck::bytes_of(&returns));
        let read = SourceRecord::of_ring(record).unwrap();
        assert_eq!(read.returns.map(|read| (read.trampoline, read.count)), Some((7, 1)));
        assert_eq!(read.stack.len(), 8);
        // Cut, so that stack and calls overlap.
        let cut = SampleHeader::STACK_OFFSET + TrappedReturns::SIZE;
        assert!(SourceRecord::of_ring(&record[..cut]).is_none());
        assert!(SourceRecord::of_ring(&record[..SampleHeader::SIZE]).is_none());
    }
}
