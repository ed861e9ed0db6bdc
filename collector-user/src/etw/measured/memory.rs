//! Blocks of heaps, and memory that processes get from the system and give back.
//!
//! - A block of a heap is told of when it is given (`HeapAlloc`), given another size (`HeapRealloc`: one block less and one more, at the same
//!   place or elsewhere) and given back (`HeapFree`), by the heap and the address (the MOF classes `Heap_Alloc`, `Heap_ReAlloc` and
//!   `Heap_Free`, as `PerfView`'s `HeapTraceProviderTraceData` has them). A heap that is destroyed takes its blocks with it.
//! - `VirtualAlloc` and `VirtualFree` say what was done in `Flags`: the `MEM_*` of `winnt.h` (`PageFault_VirtualAlloc`).

use std::collections::HashMap;

use collector_common::ids::Pid;
use collector_common::record::Unit;
use windows_etw::decode::kernel::{KernelEvent, VirtualMemory};

use super::{Said, Sink};
use crate::etw::pending::Row;

/// Blocks that are followed at once.
const MOST: usize = 1 << 22;

/// `MEM_COMMIT`.
const COMMIT: u32 = 0x1000;
/// `MEM_RESERVE`.
const RESERVE: u32 = 0x2000;
/// `MEM_DECOMMIT`.
const DECOMMIT: u32 = 0x4000;
/// `MEM_RELEASE`.
const RELEASE: u32 = 0x8000;

/// What an event tells.
#[derive(Clone, Copy, Debug)]
pub(in crate::etw) enum Memory {
    Alloc {
        heap: u64,
        address: u64,
        size: u64,
    },
    Realloc {
        heap: u64,
        old: u64,
        new: u64,
        size: u64,
    },
    Free {
        heap: u64,
        address: u64,
    },
    Destroy {
        heap: u64,
    },
    /// A process is there no more: its number is another one's, and what it kept stays kept.
    End(Pid),
    Virtual {
        size: u64,
        flags: u32,
    },
}

impl Memory {
    pub(super) fn of(event: &KernelEvent<'_>) -> Option<Self> {
        use KernelEvent as E;
        Some(match event {
            E::HeapAlloc(it) => Self::Alloc { heap: it.heap.0, address: it.address.0, size: it.size.0 },
            E::HeapRealloc(it) => Self::Realloc {
                heap: it.heap.0,
                old: it.old_address.0,
                new: it.new_address.0,
                size: it.new_size.0,
            },
            E::HeapFree(it) => Self::Free { heap: it.heap.0, address: it.address.0 },
            E::HeapDestroy(it) => Self::Destroy { heap: it.heap.0 },
            E::VirtualAlloc(VirtualMemory { size, flags, .. })
            | E::VirtualFree(VirtualMemory { size, flags, .. }) => {
                Self::Virtual { size: size.0, flags: *flags }
            }
            _ => return None,
        })
    }
}

/// Positions of the samples of blocks, by heap and address.
type Heaps = HashMap<u64, HashMap<u64, usize>>;

/// Blocks that were not given back.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    processes: HashMap<Option<Pid>, Heaps>,
    count: usize,
    left_out: u64,
}

impl Blocks {
    pub(super) fn take(&mut self, memory: &Memory, row: &Row, sink: &mut Sink<'_>) {
        let pid = row.whose.pid;
        match *memory {
            Memory::Alloc { heap, address, size } => self.add(pid, [heap, address, size], row, sink),
            Memory::Realloc { heap, old, new, size } => {
                self.free(pid, heap, old, sink);
                self.add(pid, [heap, new, size], row, sink);
            }
            Memory::Free { heap, address } => self.free(pid, heap, address, sink),
            Memory::Destroy { heap } => {
                let blocks = self.processes.get_mut(&pid).and_then(|heaps| heaps.remove(&heap));
                let blocks = blocks.unwrap_or_default();
                self.count -= blocks.len();
                for block in blocks.values() {
                    sink.pending.free(*block);
                }
            }
            Memory::End(pid) => {
                let heaps = self.processes.remove(&Some(pid)).unwrap_or_default();
                self.count -= heaps.values().map(HashMap::len).sum::<usize>();
            }
            Memory::Virtual { size, flags } => virtual_memory(size, flags, row, sink),
        }
    }

    pub(super) const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// A block: one sample, of which as many kinds are made as it is of when it is known whether it was given back.
    fn add(&mut self, pid: Option<Pid>, [heap, address, size]: [u64; 3], row: &Row, sink: &mut Sink<'_>) {
        // What was there was given back, and that was not told.
        self.free(pid, heap, address, sink);
        let value = i64::try_from(size).unwrap_or(i64::MAX);
        sink.kinds.make_kinds_of_blocks();
        let Some(block) = sink.sample(("inuse_space", Unit::Bytes), &Row { value, ..*row }) else { return };
        if self.count >= MOST {
            self.left_out += 1;
            sink.pending.free(block);
            return;
        }
        self.count += 1;
        self.processes.entry(pid).or_default().entry(heap).or_default().insert(address, block);
    }

    fn free(&mut self, pid: Option<Pid>, heap: u64, address: u64, sink: &mut Sink<'_>) {
        let heap = self.processes.get_mut(&pid).and_then(|heaps| heaps.get_mut(&heap));
        if let Some(block) = heap.and_then(|blocks| blocks.remove(&address)) {
            self.count -= 1;
            sink.pending.free(block);
        }
    }
}

/// What may be touched then, is reserved alone, or is given back.
fn virtual_memory(size: u64, flags: u32, row: &Row, sink: &mut Sink<'_>) {
    let (name, operation) = match flags {
        flags if flags & RELEASE != 0 => ("unmapped_space", "release"),
        flags if flags & DECOMMIT != 0 => ("unmapped_space", "decommit"),
        flags if flags & (COMMIT | RESERVE) == COMMIT | RESERVE => ("mapped_space", "reserve and commit"),
        flags if flags & COMMIT != 0 => ("mapped_space", "commit"),
        flags if flags & RESERVE != 0 => ("reserved_space", "reserve"),
        _ => return,
    };
    let attributes = sink.attributes(&[("operation", Said::Text(operation))]);
    let value = i64::try_from(size).unwrap_or(i64::MAX);
    sink.sample((name, Unit::Bytes), &Row { value, attributes, ..*row });
}
