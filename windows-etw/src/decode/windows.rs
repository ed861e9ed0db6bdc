//! Events of Windows' own manifests that tell of processes: `Microsoft-Windows-Kernel-Process`. A trace that was not merged does
//! not describe them; the layouts are those of the manifest that is part of every Windows. Later versions have had fields in the midst of
//! the others, so that one that is not known here is not guessed at.

use collector_common::event::{FileTime, Guid, Sid, Text, Utf16Text};
use collector_common::ids::{Avma, Pid, Tid};

use collector_common::payload::Pointer;
use collector_common::payload::guid;
use collector_common::{events, layout};

/// `Microsoft-Windows-Kernel-Process`.
pub const KERNEL_PROCESS: Guid = guid(0x22fb_2cd6_0e7b_422b_a0c7_2fad_1fd0_e716);

layout! {
    /// A process begins.
    ProcessStart<'a> {
        pid: Pid = "ProcessID";
        sequence: u64 = "ProcessSequenceNumber" [3..=255];
        created: FileTime = "CreateTime";
        parent: Pid = "ParentProcessID";
        parent_sequence: u64 = "ParentProcessSequenceNumber" [3..=255];
        session: u32 = "SessionID";
        flags: u32 = "Flags" [1..=255];
        elevation: u32 = "ProcessTokenElevationType" [3..=255];
        is_elevated: u32 = "ProcessTokenIsElevated" [3..=255];
        label: Sid<'a> = "MandatoryLabel" [3..=255];
        image: Utf16Text<'a> = "ImageName";
        checksum: u32 = "ImageChecksum" [2..=255];
        timestamp: u32 = "TimeDateStamp" [2..=255];
        package: Utf16Text<'a> = "PackageFullName" [2..=255];
        application: Utf16Text<'a> = "PackageRelativeAppId" [2..=255];
        mitigations: u32 = "SecurityMitigations" [4..=255];
    }

    /// A process ends.
    ProcessStop<'a> {
        pid: Pid = "ProcessID";
        sequence: u64 = "ProcessSequenceNumber" [2..=255];
        created: FileTime = "CreateTime";
        exited: FileTime = "ExitTime";
        exit_code: u32 = "ExitCode";
        elevation: u32 = "TokenElevationType";
        handles: u32 = "HandleCount";
        commit: u64 = "CommitCharge";
        peak_commit: u64 = "CommitPeak";
        cycles: u64 = "CPUCycleCount" [1..=255];
        reads: u32 = "ReadOperationCount" [1..=255];
        writes: u32 = "WriteOperationCount" [1..=255];
        read_kib: u32 = "ReadTransferKiloBytes" [1..=255];
        written_kib: u32 = "WriteTransferKiloBytes" [1..=255];
        hard_faults: u32 = "HardFaultCount" [1..=255];
        image: Text<'a> = "ImageName";
    }

    /// A thread begins.
    ThreadStart {
        pid: Pid = "ProcessID";
        tid: Tid = "ThreadID";
        stack_base: Pointer = "StackBase";
        stack_limit: Pointer = "StackLimit";
        user_stack_base: Pointer = "UserStackBase";
        user_stack_limit: Pointer = "UserStackLimit";
        start: Avma = "StartAddr";
        win32_start: Avma = "Win32StartAddr";
        teb: Pointer = "TebBase";
        sub_process_tag: u32 = "SubProcessTag" [1..=255];
    }

    /// A thread ends.
    ThreadStop {
        pid: Pid = "ProcessID";
        tid: Tid = "ThreadID";
        stack_base: Pointer = "StackBase";
        stack_limit: Pointer = "StackLimit";
        user_stack_base: Pointer = "UserStackBase";
        user_stack_limit: Pointer = "UserStackLimit";
        start: Avma = "StartAddr";
        win32_start: Avma = "Win32StartAddr";
        teb: Pointer = "TebBase";
        sub_process_tag: u32 = "SubProcessTag" [1..=255];
        cycles: u64 = "CycleTime" [1..=255];
    }

    /// An image is mapped or unmapped.
    MappedImage<'a> {
        base: Pointer = "ImageBase";
        size: Pointer = "ImageSize";
        pid: Pid = "ProcessID";
        checksum: u32 = "ImageCheckSum";
        timestamp: u32 = "TimeDateStamp";
        default_base: Pointer = "DefaultBase";
        path: Utf16Text<'a> = "ImageName";
    }

    /// A thread's priority is another.
    Priority {
        pid: Pid = "ProcessID";
        tid: Tid = "ThreadID";
        old: u8 = "OldPriority";
        new: u8 = "NewPriority";
    }
}

events! {
    /// An event of Windows' own manifests, decoded.
    WindowsEvent by id(Id) {
        KERNEL_PROCESS {
            1 [0..=4] => "ProcessStart/Start" ProcessStart(ProcessStart<'a>);
            2 [0..=2] => "ProcessStop/Stop" ProcessStop(ProcessStop<'a>);
            3 [0..=1] => "ThreadStart/Start" ThreadStart(ThreadStart);
            4 [0..=1] => "ThreadStop/Stop" ThreadStop(ThreadStop);
            5 [0..=0] => "ImageLoad" ImageLoad(MappedImage<'a>);
            6 [0..=0] => "ImageUnload" ImageUnload(MappedImage<'a>);
            7 [0..=0] => "CpuBasePriorityChange" CpuBasePriority(Priority);
            8 [0..=0] => "CpuPriorityChange" CpuPriority(Priority);
            9 [0..=0] => "PagePriorityChange" PagePriority(Priority);
            10 [0..=0] => "IoPriorityChange" IoPriority(Priority);
        }
    }
}

/// The name of a provider; none where it is not of the table.
pub fn provider_name(provider: Guid) -> Option<&'static str> {
    (provider == KERNEL_PROCESS).then_some("Microsoft-Windows-Kernel-Process")
}
