//! Memory: page faults, virtual memory and heaps. Classes `3d6fa8d3-…` (`PageFault`) and `222962ab-…` (`HeapTrace`, of `ntdll`).
//! Layouts are those of the MOF classes `PageFault_TypeGroup1`, `PageFault_HardFault`, `PageFault_VirtualAlloc`,
//! `PageFault_ImageLoadBacked`, `PageFault_HeapRange*` and `Heap*`.

use collector_common::ids::{Avma, Pid, Tid};

use collector_common::layout;
use collector_common::payload::Pointer;

layout! {
    /// A page fault that needed no disk.
    PageFault {
        address: Pointer = "VirtualAddress";
        instruction: Avma = "ProgramCounter";
    }

    /// A page fault that read a file.
    HardFault {
        initial_time: u64 = "InitialTime";
        offset: u64 = "ReadOffset";
        address: Pointer = "VirtualAddress";
        file_object: Pointer = "FileObject";
        tid: Tid = "TThreadId";
        size: u32 = "ByteCount";
    }

    /// `VirtualAlloc` or `VirtualFree`.
    VirtualMemory {
        base: Pointer = "BaseAddress";
        size: Pointer = "RegionSize";
        pid: Pid = "ProcessId";
        flags: u32 = "Flags";
    }

    /// An image is backed by the page file.
    ImageLoadBacked {
        file_object: Pointer = "FileObject";
        device: u32 = "DeviceChar";
        file: u16 = "FileChar";
        flags: u16 = "LoadFlags";
    }

    /// Ranges of a heap that are there when the trace begins.
    HeapRanges {
        heap: Pointer = "HeapHandle";
        flags: u32 = "HRFlags";
        pid: Pid = "HRPid";
        ranges: u32 = "HRRangeCount";
    }

    /// A range of a heap is made.
    HeapRangeCreate {
        heap: Pointer = "HeapHandle";
        size: Pointer = "FirstRangeSize";
        flags: u32 = "HRCreateFlags";
    }

    /// A range of a heap is reserved or released.
    HeapRange {
        heap: Pointer = "HeapHandle";
        address: Pointer = "HRAddress";
        size: Pointer = "HRSize";
    }

    /// A heap and nothing else.
    Heap {
        heap: Pointer = "HeapHandle";
    }

    /// A heap is made.
    HeapCreate {
        heap: Pointer = "HeapHandle";
        flags: u32 = "HeapFlags";
    }

    /// Memory of a heap is handed out.
    HeapAlloc {
        heap: Pointer = "HeapHandle";
        size: Pointer = "AllocSize";
        address: Pointer = "AllocAddress";
        source: u32 = "SourceId";
    }

    /// Memory of a heap gets another size.
    HeapRealloc {
        heap: Pointer = "HeapHandle";
        new_address: Pointer = "NewAllocAddress";
        old_address: Pointer = "OldAllocAddress";
        new_size: Pointer = "NewAllocSize";
        old_size: Pointer = "OldAllocSize";
        source: u32 = "SourceId";
    }

    /// Memory of a heap is given back.
    HeapFree {
        heap: Pointer = "HeapHandle";
        address: Pointer = "FreeAddress";
        source: u32 = "SourceId";
    }

    /// A heap takes more memory.
    HeapExpand {
        heap: Pointer = "HeapHandle";
        size: Pointer = "CommittedSize";
        address: Pointer = "CommitAddress";
        free: Pointer = "FreeSpace";
        committed: Pointer = "CommittedSpace";
        reserved: Pointer = "ReservedSpace";
        uncommitted_ranges: u32 = "NoOfUCRs";
    }

    /// A heap gives memory back to the system.
    HeapContract {
        heap: Pointer = "HeapHandle";
        size: Pointer = "DeCommittedSize";
        address: Pointer = "DeCommitAddress";
        free: Pointer = "FreeSpace";
        committed: Pointer = "CommittedSpace";
        reserved: Pointer = "ReservedSpace";
        uncommitted_ranges: u32 = "NoOfUCRs";
    }

    /// What a heap holds.
    HeapSnapshot {
        heap: Pointer = "HeapHandle";
        free: Pointer = "FreeSpace";
        committed: Pointer = "CommittedSpace";
        reserved: Pointer = "ReservedSpace";
        flags: u32 = "HeapFlags";
    }
}
