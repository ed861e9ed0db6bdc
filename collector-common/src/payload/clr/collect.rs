//! The garbage collector, threads and exceptions: layouts of `GC*`, `ThreadCreated`, `ExceptionThrown*`, `Contention*` and
//! `RuntimeInformationStart` in `ClrEtwAll.man`.

use crate::event::{Guid, Utf16Text};
use crate::ids::Tid;

use crate::layout;
use crate::payload::{Addresses, Bool32, Pointer};

layout! {
    /// Which runtime of the process it is, and nothing else.
    Instance {
        runtime: u16 = "ClrInstanceID" [1..=255];
    }

    /// A collection begins.
    GcStart {
        count: u32 = "Count";
        depth: u32 = "Depth" [1..=255];
        reason: u32 = "Reason";
        kind: u32 = "Type" [1..=255];
        runtime: u16 = "ClrInstanceID" [1..=255];
        client_sequence: u64 = "ClientSequenceNumber" [2..=255];
    }

    /// A collection ends.
    GcStop {
        count: u32 = "Count";
        depth_v0: u16 = "Depth" [0..=0];
        depth: u32 = "Depth" [1..=255];
        runtime: u16 = "ClrInstanceID" [1..=255];
    }

    /// Sizes of the heap after a collection, in bytes.
    GcHeapStats {
        generation0: u64 = "GenerationSize0";
        promoted0: u64 = "TotalPromotedSize0";
        generation1: u64 = "GenerationSize1";
        promoted1: u64 = "TotalPromotedSize1";
        generation2: u64 = "GenerationSize2";
        promoted2: u64 = "TotalPromotedSize2";
        generation3: u64 = "GenerationSize3";
        promoted3: u64 = "TotalPromotedSize3";
        finalization_size: u64 = "FinalizationPromotedSize";
        finalization_count: u64 = "FinalizationPromotedCount";
        pinned: u32 = "PinnedObjectCount";
        sink_blocks: u32 = "SinkBlockCount";
        handles: u32 = "GCHandleCount";
        runtime: u16 = "ClrInstanceID" [1..=255];
        generation4: u64 = "GenerationSize4" [2..=255];
        promoted4: u64 = "TotalPromotedSize4" [2..=255];
    }

    /// A segment of the heap is made.
    GcCreateSegment {
        address: u64 = "Address";
        size: u64 = "Size";
        kind: u32 = "Type";
        runtime: u16 = "ClrInstanceID" [1..=255];
    }

    /// A segment of the heap is given back.
    GcFreeSegment {
        address: u64 = "Address";
        runtime: u16 = "ClrInstanceID" [1..=255];
    }

    /// Threads are about to be stopped, of version 0.
    GcSuspendV0 {
        reason: u16 = "Reason";
    }

    /// Threads are about to be stopped.
    GcSuspend {
        reason: u32 = "Reason";
        count: u32 = "Count";
        runtime: u16 = "ClrInstanceID";
    }

    /// About 100 KiB were allocated, the last of it by this object.
    GcAllocationTick<'a> {
        amount: u32 = "AllocationAmount";
        kind: u32 = "AllocationKind";
        runtime: u16 = "ClrInstanceID" [1..=255];
        amount64: u64 = "AllocationAmount64" [2..=255];
        type_id: Pointer = "TypeID" [2..=255];
        type_name: Utf16Text<'a> = "TypeName" [2..=255];
        heap: u32 = "HeapIndex" [2..=255];
        address: Pointer = "Address" [3..=255];
        object_size: u64 = "ObjectSize" [4..=255];
    }

    /// So many finalizers have run.
    GcFinalizersStop {
        count: u32 = "Count";
        runtime: u16 = "ClrInstanceID" [1..=255];
    }

    /// Many things at once: the count, and behind the runtime's number so many structures.
    Bulk<'a> {
        count: u32 = "Count";
        runtime: u16 = "ClrInstanceID";
        values: &'a [u8] = "Values";
    }

    /// Many things at once, in several events.
    IndexedBulk<'a> {
        index: u32 = "Index";
        count: u32 = "Count";
        runtime: u16 = "ClrInstanceID";
        values: &'a [u8] = "Values";
    }

    /// Where a generation lies.
    GcGenerationRange {
        generation: u8 = "Generation";
        start: Pointer = "RangeStart";
        used: u64 = "RangeUsedLength";
        reserved: u64 = "RangeReservedLength";
        runtime: u16 = "ClrInstanceID";
    }

    /// What a heap marks.
    GcMark {
        heap: u32 = "HeapNum";
        runtime: u16 = "ClrInstanceID";
    }

    /// What a heap has marked, and how much of it was alive.
    GcMarkWithType {
        heap: u32 = "HeapNum";
        runtime: u16 = "ClrInstanceID";
        kind: u32 = "Type";
        bytes: u64 = "Bytes";
    }

    /// An object is finalized.
    GcFinalizeObject {
        type_id: Pointer = "TypeID";
        object: Pointer = "ObjectID";
        runtime: u16 = "ClrInstanceID";
    }

    /// A handle is made.
    GcSetHandle {
        handle: Pointer = "HandleID";
        object: Pointer = "ObjectID";
        kind: u32 = "Kind";
        generation: u32 = "Generation";
        domain: u64 = "AppDomainID";
        runtime: u16 = "ClrInstanceID";
    }

    /// A handle is given back.
    GcDestroyHandle {
        handle: Pointer = "HandleID";
        runtime: u16 = "ClrInstanceID";
    }

    /// An object was allocated, one of so many.
    GcSampledAllocation {
        address: Pointer = "Address";
        type_id: Pointer = "TypeID";
        objects: u32 = "ObjectCountForTypeSample";
        bytes: u64 = "TotalSizeForTypeSample";
        runtime: u16 = "ClrInstanceID";
    }

    /// An object could not be moved.
    GcPinObject<'a> {
        handle: Pointer = "HandleID";
        object: Pointer = "ObjectID";
        size: u64 = "ObjectSize";
        type_name: Utf16Text<'a> = "TypeName";
        runtime: u16 = "ClrInstanceID";
    }

    /// Why a collection is about to begin.
    GcTriggered {
        reason: u32 = "Reason";
        runtime: u16 = "ClrInstanceID";
    }

    /// There is more memory that the collector does not know of.
    MemoryPressure {
        bytes: u64 = "BytesAllocated";
        runtime: u16 = "ClrInstanceID";
    }

    /// There is less memory that the collector does not know of.
    MemoryPressureGone {
        bytes: u64 = "BytesFreed";
        runtime: u16 = "ClrInstanceID";
    }

    /// What a collection did with a heap. Behind the count are so many structures, one for each generation.
    GcHeapHistory<'a> {
        runtime: u16 = "ClrInstanceID";
        free_list_allocated: Pointer = "FreeListAllocated";
        free_list_rejected: Pointer = "FreeListRejected";
        segment_end_allocated: Pointer = "EndOfSegAllocated";
        condemned_allocated: Pointer = "CondemnedAllocated";
        pinned_allocated: Pointer = "PinnedAllocated";
        pinned_allocated_advance: Pointer = "PinnedAllocatedAdvance";
        efficiency: u32 = "RunningFreeListEfficiency";
        reasons0: u32 = "CondemnReasons0";
        reasons1: u32 = "CondemnReasons1";
        compact: u32 = "CompactMechanisms";
        expand: u32 = "ExpandMechanisms";
        heap: u32 = "HeapIndex";
        extra_commit: Pointer = "ExtraGen0Commit";
        count: u32 = "Count";
        values: &'a [u8] = "Values";
    }

    /// What a collection did with all heaps.
    GcHistory {
        youngest_desired: u64 = "FinalYoungestDesired";
        heaps: i32 = "NumHeaps";
        generation: u32 = "CondemnedGeneration";
        reductions: u32 = "Gen0ReductionCount";
        reason: u32 = "Reason";
        mechanisms: u32 = "GlobalMechanisms";
        runtime: u16 = "ClrInstanceID";
        pause_mode: u32 = "PauseMode";
        memory_pressure: u32 = "MemoryPressure";
        reasons0: u32 = "CondemnReasons0" [3..=255];
        reasons1: u32 = "CondemnReasons1" [3..=255];
    }

    /// Threads of a collection wait for each other.
    GcJoin {
        heap: u32 = "Heap";
        time: u32 = "JoinTime";
        kind: u32 = "JoinType";
        runtime: u16 = "ClrInstanceID";
        join: u32 = "JoinID";
    }

    /// Static fields that hold objects. Behind the runtime's number are so many structures.
    GcStaticRoots<'a> {
        count: u32 = "Count";
        domain: u64 = "AppDomainID";
        runtime: u16 = "ClrInstanceID";
        values: &'a [u8] = "Values";
    }

    /// How large a heap is made, of the private provider.
    GcSettings {
        segment: u64 = "SegmentSize";
        large_segment: u64 = "LargeObjectSegmentSize";
        server: Bool32 = "ServerGC";
        runtime: u16 = "ClrInstanceID" [1..=255];
    }

    /// A thread of the runtime.
    RuntimeThread {
        thread: Pointer = "ID";
        runtime: u16 = "ClrInstanceID";
    }

    /// A managed thread is made, or there when a session ends.
    ThreadCreated {
        thread: u64 = "ManagedThreadID";
        domain: u64 = "AppDomainID";
        flags: u32 = "Flags";
        index: u32 = "ManagedThreadIndex";
        tid: Tid = "OSThreadID";
        runtime: u16 = "ClrInstanceID";
    }

    /// A managed thread ends, or enters a domain.
    ThreadInDomain {
        thread: u64 = "ManagedThreadID";
        domain: u64 = "AppDomainID";
        runtime: u16 = "ClrInstanceID";
    }

    /// An exception is thrown.
    Exception<'a> {
        kind: Utf16Text<'a> = "ExceptionType" [1..=255];
        message: Utf16Text<'a> = "ExceptionMessage" [1..=255];
        instruction: Pointer = "ExceptionEIP" [1..=255];
        result: u32 = "ExceptionHRESULT" [1..=255];
        flags: u16 = "ExceptionFlags" [1..=255];
        runtime: u16 = "ClrInstanceID" [1..=255];
    }

    /// An exception is about to be handled by code of a method.
    ExceptionHandling<'a> {
        entry: u64 = "EntryEIP";
        method: u64 = "MethodID";
        name: Utf16Text<'a> = "MethodName";
        runtime: u16 = "ClrInstanceID";
    }

    /// Nothing that has fields.
    NoFields {}

    /// A thread waits for a monitor.
    ContentionStart {
        flags: u8 = "ContentionFlags" [1..=255];
        runtime: u16 = "ClrInstanceID" [1..=255];
        lock: Pointer = "LockID" [2..=255];
        object: Pointer = "AssociatedObjectID" [2..=255];
        owner: u64 = "LockOwnerThreadID" [2..=255];
    }

    /// A thread has a monitor.
    ContentionStop {
        flags: u8 = "ContentionFlags";
        runtime: u16 = "ClrInstanceID";
        duration: f64 = "DurationNs" [1..=255];
    }

    /// The return addresses of the event before it in the same thread, innermost first.
    ClrStack<'a> {
        runtime: u16 = "ClrInstanceID";
        reserved1: u8 = "Reserved1";
        reserved2: u8 = "Reserved2";
        count: u32 = "FrameCount";
        frames: Addresses<'a> = "Stack";
    }

    /// A runtime begins, or is there when a session begins or ends.
    RuntimeStart<'a> {
        runtime: u16 = "ClrInstanceID";
        edition: u16 = "Sku";
        library_major: u16 = "BclMajorVersion";
        library_minor: u16 = "BclMinorVersion";
        library_build: u16 = "BclBuildNumber";
        library_fix: u16 = "BclQfeNumber";
        major: u16 = "VMMajorVersion";
        minor: u16 = "VMMinorVersion";
        build: u16 = "VMBuildNumber";
        fix: u16 = "VMQfeNumber";
        flags: u32 = "StartupFlags";
        mode: u8 = "StartupMode";
        command_line: Utf16Text<'a> = "CommandLine";
        com_object: Guid = "ComObjectGuid";
        path: Utf16Text<'a> = "RuntimeDllPath";
    }
}
