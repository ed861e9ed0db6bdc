//! Processes, threads and images: classes `3d6fa8d0-…` (`Process`), `3d6fa8d1-…` (`Thread`) and `2cb15d1d-…` (`Image`).
//! Layouts are those of the MOF classes `Process_V0_TypeGroup1` to `Process_V4_TypeGroup1`, `Thread_TypeGroup1`, `CSwitch`,
//! `ReadyThread`, `Image_Load` and their other versions.

use collector_common::event::{Sid, Text, Utf16Text};
use collector_common::ids::{Avma, Pid, Tid};

use collector_common::layout;
use collector_common::payload::{Last, Pointer, ProcessNumber};

layout! {
    /// A process begins, ends, or runs when the trace begins or ends.
    Process<'a> {
        page_directory_base: Pointer = "PageDirectoryBase" [1..=1];
        unique_process_key: Pointer = "UniqueProcessKey" [2..=255];
        pid: ProcessNumber = "ProcessId";
        parent: ProcessNumber = "ParentId";
        session: u32 = "SessionId" [1..=255];
        exit_status: i32 = "ExitStatus" [1..=255];
        directory_table_base: Pointer = "DirectoryTableBase" [3..=255];
        flags: u32 = "Flags" [4..=255];
        user: Option<Sid<'a>> = "UserSID";
        image: Text<'a> = "ImageFileName";
        command_line: Utf16Text<'a> = "CommandLine" [2..=255];
        package: Utf16Text<'a> = "PackageFullName" [4..=255];
        application: Utf16Text<'a> = "ApplicationId" [4..=255];
    }

    /// Counters of a process, when it ends or the trace does.
    ProcessCounters {
        pid: Pid = "ProcessId";
        page_faults: u32 = "PageFaultCount";
        handles: u32 = "HandleCount";
        reserved: u32 = "Reserved";
        peak_virtual_size: Pointer = "PeakVirtualSize";
        peak_working_set_size: Pointer = "PeakWorkingSetSize";
        peak_page_file_usage: Pointer = "PeakPagefileUsage";
        peak_paged_pool: Pointer = "QuotaPeakPagedPoolUsage";
        peak_non_paged_pool: Pointer = "QuotaPeakNonPagedPoolUsage";
        virtual_size: Pointer = "VirtualSize";
        working_set_size: Pointer = "WorkingSetSize";
        page_file_usage: Pointer = "PagefileUsage";
        paged_pool: Pointer = "QuotaPagedPoolUsage";
        non_paged_pool: Pointer = "QuotaNonPagedPoolUsage";
        private_pages: Pointer = "PrivatePageCount";
    }

    /// A thread begins, ends, or runs when the trace begins or ends, of version 0.
    ThreadV0 {
        tid: Tid = "TThreadId";
        pid: Pid = "ProcessId";
    }

    /// A thread begins, or runs when the trace begins, of version 1.
    ThreadStartV1 {
        pid: Pid = "ProcessId";
        tid: Tid = "TThreadId";
        stack_base: Pointer = "StackBase";
        stack_limit: Pointer = "StackLimit";
        user_stack_base: Pointer = "UserStackBase";
        user_stack_limit: Pointer = "UserStackLimit";
        start: Avma = "StartAddr";
        win32_start: Avma = "Win32StartAddr";
        wait_mode: i8 = "WaitMode";
    }

    /// A thread ends, or runs when the trace ends, of version 1.
    ThreadStopV1 {
        pid: Pid = "ProcessId";
        tid: Tid = "TThreadId";
    }

    /// A thread begins, ends, or runs when the trace begins or ends.
    ///
    /// In place of `StartAddr` Microsoft's class of version 3 has `Affinity`, the CPUs that it may run on; the name is that of `PerfView`, as of version 2.
    /// Where the thread begins is [`win32_start`](Thread::win32_start).
    Thread<'a> {
        pid: Pid = "ProcessId";
        tid: Tid = "TThreadId";
        stack_base: Pointer = "StackBase";
        stack_limit: Pointer = "StackLimit";
        user_stack_base: Pointer = "UserStackBase";
        user_stack_limit: Pointer = "UserStackLimit";
        start: Avma = "StartAddr";
        win32_start: Avma = "Win32StartAddr";
        teb: Pointer = "TebBase";
        sub_process_tag: u32 = "SubProcessTag";
        base_priority: u8 = "BasePriority" [3..=255];
        page_priority: u8 = "PagePriority" [3..=255];
        io_priority: u8 = "IoPriority" [3..=255];
        flags: u8 = "ThreadFlags" [3..=255];
        thread_name: Last<'a> = "ThreadName" [3..=255];
    }

    /// A thread is given a name.
    ThreadName<'a> {
        pid: Pid = "ProcessId";
        tid: Tid = "ThreadId";
        thread_name: Utf16Text<'a> = "ThreadName";
    }

    /// A CPU goes on with another thread.
    ContextSwitch {
        new_tid: Tid = "NewThreadId";
        old_tid: Tid = "OldThreadId";
        new_priority: i8 = "NewThreadPriority";
        old_priority: i8 = "OldThreadPriority";
        new_quantum: i8 = "NewThreadQuantum" [0..=1];
        old_quantum: i8 = "OldThreadQuantum" [0..=1];
        previous_c_state: u8 = "PreviousCState" [2..=255];
        spare: i8 = "SpareByte" [2..=255];
        old_wait_reason: i8 = "OldThreadWaitReason";
        old_wait_mode: i8 = "OldThreadWaitMode";
        old_state: i8 = "OldThreadState";
        old_ideal_processor: i8 = "OldThreadWaitIdealProcessor";
        new_wait_time: u32 = "NewThreadWaitTime";
        reserved: u32 = "Reserved" [2..=255];
    }

    /// A thread may run again.
    ReadyThread {
        tid: Tid = "TThreadId";
        adjust_reason: i8 = "AdjustReason";
        adjust_increment: i8 = "AdjustIncrement";
        flag: i8 = "Flag";
        reserved: i8 = "Reserved";
    }

    /// An image is mapped, of version 0.
    ImageV0<'a> {
        base: Pointer = "BaseAddress";
        size: u32 = "ModuleSize";
        path: Utf16Text<'a> = "ImageFileName";
    }

    /// An image is mapped or unmapped, or is mapped when the trace begins or ends. Version 3 says in `Reserved0` how it is signed.
    Image<'a> {
        base: Pointer = "ImageBase";
        size: Pointer = "ImageSize";
        pid: Pid = "ProcessId";
        checksum: u32 = "ImageChecksum" [2..=255];
        timestamp: u32 = "TimeDateStamp" [2..=255];
        reserved0: u32 = "Reserved0" [2..=255];
        default_base: Pointer = "DefaultBase" [2..=255];
        reserved1: u32 = "Reserved1" [2..=255];
        reserved2: u32 = "Reserved2" [2..=255];
        reserved3: u32 = "Reserved3" [2..=255];
        reserved4: u32 = "Reserved4" [2..=255];
        path: Utf16Text<'a> = "FileName";
    }

    /// Where the kernel itself is mapped.
    KernelBase {
        base: Pointer = "ImageBase";
    }
}
