//! Where fields lie, as PerfView's `KernelTraceEventParser` and `SymbolTraceEventParser` read them: an offset, and how many pointers are
//! before it, each of which is 4 bytes more on 64-bit machines.

use collector_common::event::EventData;

use crate::decode::{Layout, specs};
use crate::record::PointerSize;

/// Event, versions, and fields with offset and pointers.
type Row = (&'static str, &'static [u8], &'static [(&'static str, u32, u32)]);

const OFFSETS: &[Row] = &[
    (
        "Process/Start",
        &[1],
        &[("ProcessId", 4, 1), ("ParentId", 8, 1), ("SessionId", 12, 1), ("UserSID", 20, 1)],
    ),
    (
        "Process/Stop",
        &[2],
        &[
            ("UniqueProcessKey", 0, 0),
            ("ProcessId", 4, 1),
            ("ParentId", 8, 1),
            ("SessionId", 12, 1),
            ("ExitStatus", 16, 1),
            ("UserSID", 20, 1),
        ],
    ),
    ("Process/DCStart", &[3], &[("ExitStatus", 16, 1), ("DirectoryTableBase", 20, 1), ("UserSID", 24, 2)]),
    ("Process/DCStop", &[4], &[("DirectoryTableBase", 20, 1), ("Flags", 24, 2), ("UserSID", 28, 2)]),
    (
        "Process/PerfCtr",
        &[2],
        &[
            ("HandleCount", 8, 0),
            ("PeakVirtualSize", 16, 0),
            ("PeakWorkingSetSize", 20, 1),
            ("PeakPagefileUsage", 24, 2),
            ("VirtualSize", 36, 5),
            ("WorkingSetSize", 40, 6),
            ("PagefileUsage", 44, 7),
            ("PrivatePageCount", 56, 10),
        ],
    ),
    (
        "Thread/Start",
        &[2, 3],
        &[
            ("StackBase", 8, 0),
            ("StackLimit", 12, 1),
            ("UserStackBase", 16, 2),
            ("UserStackLimit", 20, 3),
            ("StartAddr", 24, 4),
            ("Win32StartAddr", 28, 5),
            ("TebBase", 32, 6),
            ("SubProcessTag", 36, 7),
        ],
    ),
    (
        "Thread/DCStop",
        &[3],
        &[
            ("BasePriority", 40, 7),
            ("PagePriority", 41, 7),
            ("IoPriority", 42, 7),
            ("ThreadFlags", 43, 7),
            ("ThreadName", 44, 7),
        ],
    ),
    ("Thread/SetName", &[2], &[("ThreadName", 8, 0)]),
    (
        "Thread/CSwitch",
        &[2, 3],
        &[
            ("OldThreadId", 4, 0),
            ("NewThreadPriority", 8, 0),
            ("OldThreadPriority", 9, 0),
            ("OldThreadWaitReason", 12, 0),
            ("OldThreadWaitMode", 13, 0),
            ("OldThreadState", 14, 0),
            ("OldThreadWaitIdealProcessor", 15, 0),
            ("NewThreadWaitTime", 16, 0),
        ],
    ),
    (
        "Thread/CSwitch",
        &[1],
        &[("NewThreadQuantum", 10, 0), ("OldThreadQuantum", 11, 0), ("NewThreadWaitTime", 16, 0)],
    ),
    ("Dispatcher/ReadyThread", &[2], &[("AdjustReason", 4, 0), ("AdjustIncrement", 5, 0), ("Flag", 6, 0)]),
    ("Image/Load", &[1], &[("ImageSize", 4, 1), ("ProcessId", 8, 2), ("FileName", 12, 2)]),
    (
        "Image/DCStart",
        &[2, 3],
        &[
            ("ImageSize", 4, 1),
            ("ImageChecksum", 12, 2),
            ("TimeDateStamp", 16, 2),
            ("DefaultBase", 24, 2),
            ("FileName", 44, 3),
        ],
    ),
    ("PerfInfo/Sample", &[2], &[("ThreadId", 4, 1), ("Count", 8, 1), ("Flags", 10, 1), ("Rank", 11, 1)]),
    ("PerfInfo/PMCSample", &[2], &[("ThreadId", 4, 1), ("ProfileSource", 8, 1)]),
    ("PerfInfo/SetInterval", &[2], &[("NewInterval", 4, 0), ("OldInterval", 8, 0)]),
    ("PerfInfo/ISR", &[2], &[("Routine", 8, 0), ("ReturnValue", 12, 1), ("Vector", 13, 1)]),
    ("PerfInfo/DPC", &[2], &[("InitialTime", 0, 0), ("Routine", 8, 0)]),
    ("StackWalk/Stack", &[2], &[("StackThread", 12, 0), ("Stack", 16, 0)]),
    ("StackWalk/StackKeyUser", &[2], &[("EventTimeStamp", 0, 0), ("StackKey", 16, 0)]),
    ("StackWalk/KeyDelete", &[2], &[("StackKey", 0, 0), ("Stack", 4, 1)]),
    (
        "DiskIO/Read",
        &[2, 3],
        &[
            ("IrpFlags", 4, 0),
            ("TransferSize", 8, 0),
            ("ByteOffset", 16, 0),
            ("FileObject", 24, 0),
            ("Irp", 28, 1),
            ("HighResResponseTime", 32, 2),
        ],
    ),
    ("DiskIO/FlushBuffers", &[2], &[("HighResResponseTime", 8, 0), ("Irp", 16, 0)]),
    ("FileIO/Name", &[0, 1, 2], &[("FileName", 4, 1)]),
    (
        "FileIO/MapFile",
        &[2],
        &[("FileKey", 4, 1), ("MiscInfo", 8, 2), ("ViewSize", 16, 2), ("ProcessId", 20, 3)],
    ),
    ("FileIO/UnmapFile", &[3], &[("ViewSize", 16, 2), ("ByteOffset", 20, 3), ("ProcessId", 28, 3)]),
    (
        "FileIO/Create",
        &[2],
        &[
            ("TTID", 4, 1),
            ("FileObject", 8, 2),
            ("CreateOptions", 12, 3),
            ("FileAttributes", 16, 3),
            ("ShareAccess", 20, 3),
            ("OpenPath", 24, 3),
        ],
    ),
    (
        "FileIO/Create",
        &[3],
        &[
            ("FileObject", 4, 1),
            ("IssuingThreadId", 8, 2),
            ("CreateOptions", 12, 2),
            ("FileAttributes", 16, 2),
            ("ShareAccess", 20, 2),
            ("OpenPath", 24, 2),
        ],
    ),
    ("FileIO/Cleanup", &[2], &[("FileObject", 8, 2), ("FileKey", 12, 3)]),
    ("FileIO/Close", &[3], &[("FileObject", 4, 1), ("FileKey", 8, 2), ("IssuingThreadId", 12, 3)]),
    (
        "FileIO/Read",
        &[2],
        &[
            ("IrpPtr", 8, 0),
            ("TTID", 12, 1),
            ("FileObject", 16, 2),
            ("FileKey", 20, 3),
            ("IoSize", 24, 4),
            ("IoFlags", 28, 4),
        ],
    ),
    (
        "FileIO/Write",
        &[3],
        &[
            ("FileObject", 12, 1),
            ("FileKey", 16, 2),
            ("IssuingThreadId", 20, 3),
            ("IoSize", 24, 3),
            ("IoFlags", 28, 3),
        ],
    ),
    ("FileIO/QueryInfo", &[2], &[("FileKey", 12, 3), ("ExtraInfo", 16, 4), ("InfoClass", 20, 5)]),
    (
        "FileIO/Rename",
        &[3],
        &[("FileKey", 8, 2), ("ExtraInfo", 12, 3), ("IssuingThreadId", 16, 4), ("InfoClass", 20, 4)],
    ),
    (
        "FileIO/DirEnum",
        &[2],
        &[("Length", 16, 4), ("InfoClass", 20, 4), ("FileIndex", 24, 4), ("FileName", 28, 4)],
    ),
    (
        "FileIO/DirNotify",
        &[3],
        &[
            ("IssuingThreadId", 12, 3),
            ("Length", 16, 3),
            ("InfoClass", 20, 3),
            ("FileIndex", 24, 3),
            ("FileName", 28, 3),
        ],
    ),
    ("FileIO/OperationEnd", &[2], &[("ExtraInfo", 4, 1), ("NtStatus", 8, 2)]),
    (
        "TcpIp/Send",
        &[2],
        &[
            ("size", 4, 0),
            ("daddr", 8, 0),
            ("saddr", 12, 0),
            ("dport", 16, 0),
            ("sport", 18, 0),
            ("startime", 20, 0),
            ("endtime", 24, 0),
            ("seqnum", 28, 0),
            ("connid", 32, 0),
        ],
    ),
    (
        "TcpIp/Connect",
        &[2],
        &[
            ("mss", 20, 0),
            ("sackopt", 22, 0),
            ("tsopt", 24, 0),
            ("wsopt", 26, 0),
            ("rcvwin", 28, 0),
            ("rcvwinscale", 32, 0),
            ("sndwinscale", 34, 0),
            ("seqnum", 36, 0),
            ("connid", 40, 0),
        ],
    ),
    (
        "UdpIp/Send",
        &[0],
        &[
            ("saddr", 4, 1),
            ("sport", 8, 1),
            ("size", 10, 1),
            ("daddr", 12, 1),
            ("dport", 16, 1),
            ("dsize", 18, 1),
        ],
    ),
    (
        "UdpIp/Recv",
        &[1, 2],
        &[("size", 4, 0), ("daddr", 8, 0), ("saddr", 12, 0), ("dport", 16, 0), ("sport", 18, 0)],
    ),
    (
        "UdpIp/SendIPV6",
        &[2],
        &[
            ("daddr", 8, 0),
            ("saddr", 24, 0),
            ("dport", 40, 0),
            ("sport", 42, 0),
            ("seqnum", 44, 0),
            ("connid", 48, 0),
        ],
    ),
    ("Memory/CopyOnWrite", &[2], &[("ProgramCounter", 4, 1)]),
    (
        "Memory/HardFault",
        &[2],
        &[
            ("ReadOffset", 8, 0),
            ("VirtualAddress", 16, 0),
            ("FileObject", 20, 1),
            ("TThreadId", 24, 2),
            ("ByteCount", 28, 2),
        ],
    ),
    ("Memory/ImageLoadBacked", &[2], &[("DeviceChar", 4, 1), ("FileChar", 8, 1), ("LoadFlags", 10, 1)]),
    ("VirtualMem/Alloc", &[2], &[("RegionSize", 4, 1), ("Flags", 12, 2)]),
    (
        "EventTrace",
        &[2],
        &[
            ("ProviderVersion", 8, 0),
            ("EndTime", 16, 0),
            ("MaxFileSize", 28, 0),
            ("PointerSize", 44, 0),
            ("CPUSpeed", 52, 0),
            ("BootTime", 240, 2),
            ("PerfFreq", 248, 2),
            ("StartTime", 256, 2),
            ("ReservedFlags", 264, 2),
            ("BuffersLost", 268, 2),
            ("SessionNameString", 272, 2),
        ],
    ),
    (
        "SystemConfig/CPU",
        &[1],
        &[("ComputerName", 20, 0), ("DomainName", 532, 0), ("HyperThreadingFlag", 796, 0)],
    ),
    ("SystemConfig/CPU", &[2], &[("DomainName", 532, 0), ("HyperThreadingFlag", 800, 0)]),
    (
        "SystemConfig/PhyDisk",
        &[2],
        &[
            ("Cylinders", 16, 0),
            ("Manufacturer", 40, 0),
            ("PartitionCount", 552, 0),
            ("WriteCacheEnabled", 556, 0),
            ("BootDriveLetter", 558, 0),
            ("Spare", 564, 0),
        ],
    ),
    (
        "SystemConfig/LogDisk",
        &[2],
        &[
            ("DriveLetterString", 28, 0),
            ("PartitionNumber", 40, 0),
            ("BytesPerSector", 48, 0),
            ("NumberOfFreeClusters", 56, 0),
            ("FileSystem", 72, 0),
            ("VolumeExt", 104, 0),
        ],
    ),
    ("SystemConfig/NIC", &[1], &[("Index", 512, 0), ("PhysicalAddrLen", 516, 0)]),
    (
        "SystemConfig/NIC",
        &[2],
        &[("PhysicalAddrLen", 8, 0), ("Ipv4Index", 12, 0), ("Ipv6Index", 16, 0), ("NICDescription", 20, 0)],
    ),
    (
        "SystemConfig/Services",
        &[1],
        &[("DisplayName", 68, 0), ("ProcessName", 580, 0), ("ProcessId", 648, 0)],
    ),
    (
        "SystemConfig/Services",
        &[2],
        &[("ServiceState", 4, 0), ("SubProcessTag", 8, 0), ("ServiceName", 12, 0)],
    ),
    ("SystemConfig/PnP", &[2, 3], &[("DeviceID", 12, 0)]),
    ("SystemConfig/PnP", &[4], &[("DeviceID", 24, 0)]),
    ("SystemConfig/PnP", &[5], &[("DeviceID", 32, 0)]),
    ("SystemConfig/IDEChannel", &[2], &[("DeviceTimingMode", 8, 0), ("LocationInformation", 16, 0)]),
    ("SysConfig/BuildInfo", &[2], &[("BuildLab", 8, 0)]),
    (
        "ImageID",
        &[2],
        &[("ImageSize", 4, 1), ("ProcessId", 8, 2), ("TimeDateStamp", 12, 2), ("OriginalFileName", 16, 2)],
    ),
    (
        "ImageID/DbgID_RSDS",
        &[2],
        &[("ProcessId", 4, 1), ("GuidSig", 8, 1), ("Age", 24, 1), ("PdbFileName", 28, 1)],
    ),
    ("ImageID/FileVersion", &[2], &[("TimeDateStamp", 4, 0), ("OrigFileName", 8, 0)]),
];

#[test]
fn fields_lie_where_others_read_them() {
    let zeros = [0; 1200];
    let mut checked = 0;
    for (name, versions, fields) in OFFSETS {
        for version in *versions {
            let spec = specs().find(|spec| spec.name == *name && (spec.since..=spec.until).contains(version));
            let spec = spec.unwrap_or_else(|| panic!("{name}"));
            for (pointer, more) in [(PointerSize::Bits32, 0), (PointerSize::Bits64, 4)] {
                let format = spec.format(Layout { version: *version, pointer }).unwrap();
                let data = EventData::new(&zeros, &zeros, &format);
                for (field, offset, pointers) in *fields {
                    let reference =
                        format.field_ref(field).unwrap_or_else(|| panic!("{name} {version} {field}"));
                    let at =
                        data.try_get_slice(reference).unwrap().as_ptr() as usize - zeros.as_ptr() as usize;
                    assert_eq!(at as u32, offset + more * pointers, "{name} {version} {field} {pointer:?}");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 500, "{checked}");
}
