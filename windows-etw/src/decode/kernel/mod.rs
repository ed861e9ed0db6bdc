//! Classic kernel events: told apart by the GUID of their class, an opcode and a version. Names are as PerfView prints them.

mod config;
mod control;
mod io;
mod memory;
mod perf;
mod process;

pub use collector_common::payload::Opaque;
pub use config::{
    Build, Cpu, Device, IdeChannel, InterruptLine, LogicalDisk, Network, NetworkCard, NetworkCardV1,
    PhysicalDisk, Platform, Power, Service, ServiceV1, SystemPaths, TraceExtension, TraceHeader, Video,
    VolumeMapping, processor_architecture,
};
pub use control::{DebugId, FileVersion, ImageId, NoDebugId};
pub use io::{
    DiskFlush, DiskRequest, DiskTransfer, FileCreate, FileEnd, FileInformation, FileMapping, FileName,
    FileOperation, FileTransfer, FolderList, NetworkFail, TcpConnectV4, TcpConnectV6, TcpFailV1, TcpSendV4,
    TcpSendV6, TcpV0, TcpV4, TcpV6, UdpV0, UdpV4, UdpV6,
};
pub use memory::{
    HardFault, Heap, HeapAlloc, HeapContract, HeapCreate, HeapExpand, HeapFree, HeapRange, HeapRangeCreate,
    HeapRanges, HeapRealloc, HeapSnapshot, ImageLoadBacked, PageFault, VirtualMemory,
};
pub use perf::{
    CounterProfile, DeferredCall, Empty, Interrupt, InterruptV1, Line, Mark, ProfileInterval, SampledProfile,
    StackDefinition, StackReference, StackWalk, SystemCallEnter, SystemCallExit,
};
pub use process::{
    ContextSwitch, Image, ImageV0, KernelBase, Process, ProcessCounters, ReadyThread, Thread, ThreadName,
    ThreadStartV1, ThreadStopV1, ThreadV0,
};

use collector_common::event::Guid;

use collector_common::events;
use collector_common::payload::guid;

/// The trace itself: `EventTrace`.
pub const EVENT_TRACE: Guid = guid(0x68fd_d900_4a3e_11d1_84f4_0000_f804_64e3);
/// `Process`.
pub const PROCESS: Guid = guid(0x3d6f_a8d0_fe05_11d0_9dda_00c0_4fd7_ba7c);
/// `Thread`.
pub const THREAD: Guid = guid(0x3d6f_a8d1_fe05_11d0_9dda_00c0_4fd7_ba7c);
/// `Image`.
pub const IMAGE: Guid = guid(0x2cb1_5d1d_5fc1_11d2_abe1_00a0_c911_f518);
/// `PerfInfo`.
pub const PERF_INFO: Guid = guid(0xce1d_bfb4_137e_4da6_87b0_3f59_aa10_2cbc);
/// `StackWalk`.
pub const STACK_WALK: Guid = guid(0xdef2_fe46_7bd6_4b80_bd94_f57f_e20d_0ce3);
/// `DiskIo`.
pub const DISK_IO: Guid = guid(0x3d6f_a8d4_fe05_11d0_9dda_00c0_4fd7_ba7c);
/// `FileIo`.
pub const FILE_IO: Guid = guid(0x90cb_dc39_4a3e_11d1_84f4_0000_f804_64e3);
/// `TcpIp`.
pub const TCP_IP: Guid = guid(0x9a28_0ac0_c8e0_11d1_84e2_00c0_4fb9_98a2);
/// `UdpIp`.
pub const UDP_IP: Guid = guid(0xbf3a_50c5_a9c9_4988_a005_2df0_b7c8_0f80);
/// `PageFault`.
pub const PAGE_FAULT: Guid = guid(0x3d6f_a8d3_fe05_11d0_9dda_00c0_4fd7_ba7c);
/// `HeapTrace`, of `ntdll`.
pub const HEAP: Guid = guid(0x2229_62ab_6180_4b88_a825_346b_75f2_a24a);
/// `SystemConfig`.
pub const SYSTEM_CONFIG: Guid = guid(0x0185_3a65_418f_4f36_aefc_dc0f_1d2f_d235);
/// `SysConfig`, which is added when a trace is merged.
pub const SYS_CONFIG: Guid = guid(0x9b79_ee91_b5fd_41c0_a243_4248_e266_e9d0);
/// `Lost_Event`.
pub const LOST_EVENT: Guid = guid(0x6a39_9ae0_4bc6_4de9_870b_3657_f894_7e7e);
/// `ImageID` of `KernelTraceControl`.
pub const IMAGE_ID: Guid = guid(0xb3e6_75d7_2554_4f18_830b_2762_7325_60de);
/// `MetaData` of `KernelTraceControl`.
pub const META_DATA: Guid = guid(0xbbcc_f6c1_6cd1_48c4_80ff_8394_82e3_7671);

events! {
    /// A classic event, decoded.
    KernelEvent by opcode(Opcode) {
        PERF_INFO {
            34 => "PerfInfo/Mark" Mark(Mark<'a>);
            46 => "PerfInfo/Sample" Sample(SampledProfile);
            47 => "PerfInfo/PMCSample" CounterSample(CounterProfile);
            50 => "PerfInfo/ISR" MessageInterrupt(Interrupt);
            51 => "PerfInfo/SysClEnter" SystemCallEnter(SystemCallEnter);
            52 => "PerfInfo/SysClExit" SystemCallExit(SystemCallExit);
            58 => "PerfInfo/DebuggerEnabled" DebuggerEnabled(Empty);
            66 => "PerfInfo/ThreadedDPC" ThreadedDpc(DeferredCall);
            67 [0..=1] => "PerfInfo/ISR" InterruptV1(InterruptV1);
            67 [2..=255] => "PerfInfo/ISR" Interrupt(Interrupt);
            68 => "PerfInfo/DPC" Dpc(DeferredCall);
            69 => "PerfInfo/TimerDPC" TimerDpc(DeferredCall);
            72 => "PerfInfo/SetInterval" SetInterval(ProfileInterval<'a>);
            73 => "PerfInfo/CollectionStart" CollectionStart(ProfileInterval<'a>);
            74 => "PerfInfo/CollectionEnd" CollectionEnd(ProfileInterval<'a>);
        }
        STACK_WALK {
            32 => "StackWalk/Stack" Stack(StackWalk<'a>);
            34 => "StackWalk/KeyCreate" StackKeyCreate(StackDefinition<'a>);
            35 => "StackWalk/KeyDelete" StackKeyDelete(StackDefinition<'a>);
            36 => "StackWalk/KeyRundown" StackKeyRundown(StackDefinition<'a>);
            37 => "StackWalk/StackKeyKernel" StackKeyKernel(StackReference);
            38 => "StackWalk/StackKeyUser" StackKeyUser(StackReference);
        }
        THREAD {
            1 [0..=0] => "Thread/Start" ThreadStartV0(ThreadV0);
            2 [0..=0] => "Thread/Stop" ThreadStopV0(ThreadV0);
            3 [0..=0] => "Thread/DCStart" ThreadDcStartV0(ThreadV0);
            4 [0..=0] => "Thread/DCStop" ThreadDcStopV0(ThreadV0);
            1 [1..=1] => "Thread/Start" ThreadStartV1(ThreadStartV1);
            2 [1..=1] => "Thread/Stop" ThreadStopV1(ThreadStopV1);
            3 [1..=1] => "Thread/DCStart" ThreadDcStartV1(ThreadStartV1);
            4 [1..=1] => "Thread/DCStop" ThreadDcStopV1(ThreadStopV1);
            1 [2..=255] => "Thread/Start" ThreadStart(Thread<'a>);
            2 [2..=255] => "Thread/Stop" ThreadStop(Thread<'a>);
            3 [2..=255] => "Thread/DCStart" ThreadDcStart(Thread<'a>);
            4 [2..=255] => "Thread/DCStop" ThreadDcStop(Thread<'a>);
            36 => "Thread/CSwitch" ContextSwitch(ContextSwitch);
            37 => "Thread/CompCS" CompactContextSwitch(Opaque<'a>);
            50 => "Dispatcher/ReadyThread" ReadyThread(ReadyThread);
            72 => "Thread/SetName" ThreadName(ThreadName<'a>);
        }
        PROCESS {
            1 => "Process/Start" ProcessStart(Process<'a>);
            2 => "Process/Stop" ProcessStop(Process<'a>);
            3 => "Process/DCStart" ProcessDcStart(Process<'a>);
            4 => "Process/DCStop" ProcessDcStop(Process<'a>);
            32 => "Process/PerfCtr" ProcessCounters(ProcessCounters);
            33 => "Process/PerfCtrRundown" ProcessCountersRundown(ProcessCounters);
            39 => "Process/Defunct" ProcessDefunct(Process<'a>);
        }
        IMAGE {
            2 => "Image/Unload" ImageUnload(Image<'a>);
            3 => "Image/DCStart" ImageDcStart(Image<'a>);
            4 => "Image/DCStop" ImageDcStop(Image<'a>);
            10 [0..=0] => "Image/Load" ImageLoadV0(ImageV0<'a>);
            10 [1..=255] => "Image/Load" ImageLoad(Image<'a>);
            33 => "Image/KernelBase" KernelBase(KernelBase);
        }
        DISK_IO {
            10 => "DiskIO/Read" DiskRead(DiskTransfer);
            11 => "DiskIO/Write" DiskWrite(DiskTransfer);
            12 => "DiskIO/ReadInit" DiskReadInit(DiskRequest);
            13 => "DiskIO/WriteInit" DiskWriteInit(DiskRequest);
            14 => "DiskIO/FlushBuffers" DiskFlush(DiskFlush);
            15 => "DiskIO/FlushInit" DiskFlushInit(DiskRequest);
        }
        FILE_IO {
            0 => "FileIO/Name" FileName(FileName<'a>);
            32 => "FileIO/FileCreate" FileNameCreate(FileName<'a>);
            35 => "FileIO/FileDelete" FileNameDelete(FileName<'a>);
            36 => "FileIO/FileRundown" FileNameRundown(FileName<'a>);
            37 => "FileIO/MapFile" FileMap(FileMapping);
            38 => "FileIO/UnmapFile" FileUnmap(FileMapping);
            39 => "FileIO/MapFileDCStart" FileMapDcStart(FileMapping);
            40 => "FileIO/MapFileDCStop" FileMapDcStop(FileMapping);
            64 => "FileIO/Create" FileCreate(FileCreate<'a>);
            65 => "FileIO/Cleanup" FileCleanup(FileOperation);
            66 => "FileIO/Close" FileClose(FileOperation);
            67 => "FileIO/Read" FileRead(FileTransfer);
            68 => "FileIO/Write" FileWrite(FileTransfer);
            69 => "FileIO/SetInfo" FileSetInformation(FileInformation);
            70 => "FileIO/Delete" FileDelete(FileInformation);
            71 => "FileIO/Rename" FileRename(FileInformation);
            72 => "FileIO/DirEnum" FolderList(FolderList<'a>);
            73 => "FileIO/Flush" FileFlush(FileOperation);
            74 => "FileIO/QueryInfo" FileQueryInformation(FileInformation);
            75 => "FileIO/FSControl" FileSystemControl(FileInformation);
            76 => "FileIO/OperationEnd" FileEnd(FileEnd);
            77 => "FileIO/DirNotify" FolderNotify(FolderList<'a>);
        }
        TCP_IP {
            10 [0..=0] => "TcpIp/Send" TcpSendV0(TcpV0);
            11 [0..=0] => "TcpIp/Recv" TcpReceiveV0(TcpV0);
            12 [0..=0] => "TcpIp/Connect" TcpConnectV0(TcpV0);
            13 [0..=0] => "TcpIp/Disconnect" TcpDisconnectV0(TcpV0);
            14 [0..=0] => "TcpIp/Retransmit" TcpRetransmitV0(TcpV0);
            15 [0..=0] => "TcpIp/Accept" TcpAcceptV0(TcpV0);
            10 [1..=255] => "TcpIp/Send" TcpSend(TcpSendV4);
            11 [1..=255] => "TcpIp/Recv" TcpReceive(TcpV4);
            12 [1..=255] => "TcpIp/Connect" TcpConnect(TcpConnectV4);
            13 [1..=255] => "TcpIp/Disconnect" TcpDisconnect(TcpV4);
            14 [1..=255] => "TcpIp/Retransmit" TcpRetransmit(TcpV4);
            15 [1..=255] => "TcpIp/Accept" TcpAccept(TcpConnectV4);
            16 => "TcpIp/Reconnect" TcpReconnect(TcpV4);
            17 [0..=1] => "TcpIp/Fail" TcpFailV1(TcpFailV1);
            17 [2..=255] => "TcpIp/Fail" TcpFail(NetworkFail);
            18 => "TcpIp/TCPCopy" TcpCopy(TcpV4);
            19 => "TcpIp/ARPCopy" TcpArpCopy(TcpV4);
            20 => "TcpIp/FullACK" TcpFullAcknowledgement(TcpV4);
            21 => "TcpIp/PartACK" TcpPartAcknowledgement(TcpV4);
            22 => "TcpIp/DupACK" TcpDuplicateAcknowledgement(TcpV4);
            26 => "TcpIp/SendIPV6" TcpSendV6(TcpSendV6);
            27 => "TcpIp/RecvIPV6" TcpReceiveV6(TcpV6);
            28 => "TcpIp/ConnectIPV6" TcpConnectV6(TcpConnectV6);
            29 => "TcpIp/DisconnectIPV6" TcpDisconnectV6(TcpV6);
            30 => "TcpIp/RetransmitIPV6" TcpRetransmitV6(TcpV6);
            31 => "TcpIp/AcceptIPV6" TcpAcceptV6(TcpConnectV6);
            32 => "TcpIp/ReconnectIPV6" TcpReconnectV6(TcpV6);
            34 => "TcpIp/TCPCopyIPV6" TcpCopyV6(TcpV6);
        }
        UDP_IP {
            10 [0..=0] => "UdpIp/Send" UdpSendV0(UdpV0);
            11 [0..=0] => "UdpIp/Recv" UdpReceiveV0(UdpV0);
            10 [1..=255] => "UdpIp/Send" UdpSend(UdpV4);
            11 [1..=255] => "UdpIp/Recv" UdpReceive(UdpV4);
            17 => "UdpIp/Fail" UdpFail(NetworkFail);
            26 => "UdpIp/SendIPV6" UdpSendV6(UdpV6);
            27 => "UdpIp/RecvIPV6" UdpReceiveV6(UdpV6);
        }
        PAGE_FAULT {
            10 => "Memory/TransitionFault" TransitionFault(PageFault);
            11 => "Memory/DemandZeroFault" DemandZeroFault(PageFault);
            12 => "Memory/CopyOnWrite" CopyOnWrite(PageFault);
            13 => "Memory/GuardMemory" GuardPageFault(PageFault);
            14 => "Memory/HardMemory" HardPageFault(PageFault);
            15 => "Memory/AccessViolation" AccessViolation(PageFault);
            32 => "Memory/HardFault" HardFault(HardFault);
            98 => "VirtualMem/Alloc" VirtualAlloc(VirtualMemory);
            99 => "VirtualMem/Free" VirtualFree(VirtualMemory);
            100 => "Memory/HeapRangeRundown" HeapRangeRundown(HeapRanges);
            101 => "Memory/HeapRangeCreate" HeapRangeCreate(HeapRangeCreate);
            102 => "Memory/HeapRangeReserve" HeapRangeReserve(HeapRange);
            103 => "Memory/HeapRangeRelease" HeapRangeRelease(HeapRange);
            104 => "Memory/HeapRangeDestroy" HeapRangeDestroy(Heap);
            105 => "Memory/ImageLoadBacked" ImageLoadBacked(ImageLoadBacked);
        }
        HEAP {
            32 => "Heap/Create" HeapCreate(HeapCreate);
            33 => "Heap/Alloc" HeapAlloc(HeapAlloc);
            34 => "Heap/ReAlloc" HeapRealloc(HeapRealloc);
            35 => "Heap/Destroy" HeapDestroy(Heap);
            36 => "Heap/Free" HeapFree(HeapFree);
            37 => "Heap/Expand" HeapExpand(HeapExpand);
            38 => "Heap/SnapShot" HeapSnapshot(HeapSnapshot);
            42 => "Heap/Contract" HeapContract(HeapContract);
            43 => "Heap/Lock" HeapLock(Heap);
            44 => "Heap/Unlock" HeapUnlock(Heap);
            45 => "Heap/Validate" HeapValidate(Heap);
            46 => "Heap/Walk" HeapWalk(Heap);
        }
        EVENT_TRACE {
            0 => "EventTrace" TraceHeader(TraceHeader<'a>);
            5 => "EventTrace/Extension" TraceExtension(TraceExtension);
            8 => "EventTrace/RundownComplete" RundownComplete(Empty);
            32 => "EventTrace/EndExtension" TraceEndExtension(TraceExtension);
        }
        SYSTEM_CONFIG {
            10 => "SystemConfig/CPU" Cpu(Cpu<'a>);
            11 => "SystemConfig/PhyDisk" PhysicalDisk(PhysicalDisk<'a>);
            12 => "SystemConfig/LogDisk" LogicalDisk(LogicalDisk<'a>);
            13 [0..=1] => "SystemConfig/NIC" NetworkCardV1(NetworkCardV1<'a>);
            13 [2..=255] => "SystemConfig/NIC" NetworkCard(NetworkCard<'a>);
            14 => "SystemConfig/Video" Video(Video<'a>);
            15 [0..=1] => "SystemConfig/Services" ServiceV1(ServiceV1<'a>);
            15 [2..=255] => "SystemConfig/Services" Service(Service<'a>);
            16 => "SystemConfig/Power" Power(Power);
            17 => "SystemConfig/Network" Network(Network);
            21 => "SystemConfig/IRQ" InterruptLine(InterruptLine<'a>);
            22 => "SystemConfig/PnP" Device(Device<'a>);
            23 => "SystemConfig/IDEChannel" IdeChannel(IdeChannel<'a>);
            25 => "SystemConfig/Platform" Platform(Platform<'a>);
        }
        SYS_CONFIG {
            32 => "SysConfig/BuildInfo" Build(Build<'a>);
            33 => "SysConfig/SystemPaths" SystemPaths(SystemPaths<'a>);
            34 => "SysConfig/UnknownVolume" UnknownVolume(Line<'a>);
            35 => "SysConfig/VolumeMapping" VolumeMapping(VolumeMapping<'a>);
            37 => "SysConfig/Opcode(37)" SysConfig37(Opaque<'a>);
        }
        LOST_EVENT {
            32 => "LostEvent/Event" LostEvent(Empty);
            33 => "LostEvent/Buffer" LostBuffer(Empty);
            34 => "LostEvent/File" LostFile(Empty);
        }
        IMAGE_ID {
            0 => "ImageID" ImageId(ImageId<'a>);
            32 => "ImageID/None" NoDebugId(NoDebugId);
            36 => "ImageID/DbgID_RSDS" DebugId(DebugId<'a>);
            37 => "ImageID/DbgID_ILRSDS" IlDebugId(DebugId<'a>);
            64 => "ImageID/FileVersion" FileVersion(FileVersion<'a>);
        }
        META_DATA {
            32 => "MetaData/EventInfo" EventInfo(Opaque<'a>);
            33 => "MetaData/EventMapInfo" EventMapInfo(Opaque<'a>);
        }
    }
}

/// What PerfView calls the provider of a class; none where the class is not known here.
pub fn provider_name(class: Guid) -> Option<&'static str> {
    Some(match class {
        IMAGE_ID | META_DATA => "KernelTraceControl",
        HEAP => "Heap Trace Provider",
        _ if KernelEvent::SPECS.iter().any(|spec| spec.provider == class) => "Windows Kernel",
        _ => return None,
    })
}
