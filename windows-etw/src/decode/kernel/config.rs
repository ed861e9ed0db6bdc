//! The trace and the machine: classes `68fdd900-…` (`EventTrace`), `01853a65-…` (`SystemConfig`) and `9b79ee91-…` (`SysConfig`, which is added when a
//! trace is merged). Layouts are those of the MOF classes `EventTrace_Header`, `Header_Extension_TypeGroup` and
//! `SystemConfig_*`.

use collector_common::event::{FileTime, Guid, Utf16Text};
use collector_common::ids::Pid;
use collector_common::layout;
use collector_common::payload::{Fixed, Last, Pointer};

use super::SYSTEM_CONFIG;
use crate::record::{EtwRecord, Schema};

layout! {
    /// The first event of a trace: `TRACE_LOGFILE_HEADER`.
    TraceHeader<'a> {
        buffer_size: u32 = "BufferSize";
        system_version: u32 = "Version";
        provider_version: u32 = "ProviderVersion";
        processors: u32 = "NumberOfProcessors";
        end_time: FileTime = "EndTime";
        timer_resolution: u32 = "TimerResolution";
        most_file_size: u32 = "MaxFileSize";
        mode: u32 = "LogFileMode";
        buffers_written: u32 = "BuffersWritten";
        start_buffers: u32 = "StartBuffers";
        pointer_size: u32 = "PointerSize";
        events_lost: u32 = "EventsLost";
        cpu_speed: u32 = "CPUSpeed";
        logger_name: Pointer = "LoggerName";
        log_file_name: Pointer = "LogFileName";
        time_zone: &'a [u8; 176] = "TimeZoneInformation";
        boot_time: FileTime = "BootTime";
        frequency: u64 = "PerfFreq";
        start_time: FileTime = "StartTime";
        clock: u32 = "ReservedFlags";
        buffers_lost: u32 = "BuffersLost";
        session_name: Last<'a> = "SessionNameString";
        file_name: Last<'a> = "LogFileNameString";
    }

    /// Which kernel events are on.
    TraceExtension {
        group_masks: [u8; 32] = "GroupMasks";
        kernel_event_version: u32 = "KernelEventVersion";
    }

    /// The machine.
    Cpu<'a> {
        mhz: u32 = "MHz";
        processors: u32 = "NumberOfProcessors";
        memory: u32 = "MemSize";
        page_size: u32 = "PageSize";
        allocation_granularity: u32 = "AllocationGranularity";
        computer: Fixed<'a, 256> = "ComputerName";
        domain_v1: Fixed<'a, 132> = "DomainName" [0..=1];
        domain: Fixed<'a, 134> = "DomainName" [2..=255];
        hyper_threading: Pointer = "HyperThreadingFlag";
    }

    /// A disk.
    PhysicalDisk<'a> {
        disk: u32 = "DiskNumber";
        bytes_per_sector: u32 = "BytesPerSector";
        sectors_per_track: u32 = "SectorsPerTrack";
        tracks_per_cylinder: u32 = "TracksPerCylinder";
        cylinders: u64 = "Cylinders";
        scsi_port: u32 = "SCSIPort";
        scsi_path: u32 = "SCSIPath";
        scsi_target: u32 = "SCSITarget";
        scsi_lun: u32 = "SCSILun";
        manufacturer: Fixed<'a, 256> = "Manufacturer";
        partitions: u32 = "PartitionCount";
        write_cache: u8 = "WriteCacheEnabled";
        pad: u8 = "Pad";
        boot_drive: Fixed<'a, 3> = "BootDriveLetter";
        spare: Fixed<'a, 2> = "Spare";
    }

    /// A drive.
    LogicalDisk<'a> {
        start: u64 = "StartOffset";
        partition_size: u64 = "PartitionSize";
        disk: u32 = "DiskNumber";
        size: u32 = "Size";
        drive_type: u32 = "DriveType";
        letter: Fixed<'a, 4> = "DriveLetterString";
        pad1: u32 = "Pad1";
        partition: u32 = "PartitionNumber";
        sectors_per_cluster: u32 = "SectorsPerCluster";
        bytes_per_sector: u32 = "BytesPerSector";
        pad2: u32 = "Pad2";
        free_clusters: i64 = "NumberOfFreeClusters";
        clusters: i64 = "TotalNumberOfClusters";
        file_system: Fixed<'a, 16> = "FileSystem";
        volume_extents: u32 = "VolumeExt";
        pad3: u32 = "Pad3" [2..=255];
    }

    /// A network card, of versions 0 and 1.
    NetworkCardV1<'a> {
        card: Fixed<'a, 256> = "NICName";
        index: u32 = "Index";
        address_length: u32 = "PhysicalAddrLen";
        address: [u8; 16] = "PhysicalAddr";
        size: u32 = "Size";
        ip_address: u32 = "IpAddress";
        subnet_mask: u32 = "SubnetMask";
        dhcp_server: u32 = "DhcpServer";
        gateway: u32 = "Gateway";
    }

    /// A network card.
    NetworkCard<'a> {
        address: u64 = "PhysicalAddr";
        address_length: u32 = "PhysicalAddrLen";
        ipv4_index: u32 = "Ipv4Index";
        ipv6_index: u32 = "Ipv6Index";
        description: Utf16Text<'a> = "NICDescription";
        ip_addresses: Utf16Text<'a> = "IpAddresses";
        dns_servers: Utf16Text<'a> = "DnsServerAddresses";
    }

    /// A screen's card.
    Video<'a> {
        memory: u32 = "MemorySize";
        width: u32 = "XResolution";
        height: u32 = "YResolution";
        bits_per_pixel: u32 = "BitsPerPixel";
        refresh: u32 = "VRefresh";
        chip: Fixed<'a, 256> = "ChipType";
        dac: Fixed<'a, 256> = "DACType";
        adapter: Fixed<'a, 256> = "AdapterString";
        bios: Fixed<'a, 256> = "BiosString";
        device: Fixed<'a, 256> = "DeviceId";
        state: u32 = "StateFlags";
    }

    /// A service, of versions 0 and 1.
    ServiceV1<'a> {
        service: Fixed<'a, 34> = "ServiceName";
        display: Fixed<'a, 256> = "DisplayName";
        process: Fixed<'a, 34> = "ProcessName";
        pid: Pid = "ProcessId";
    }

    /// A service.
    Service<'a> {
        pid: Pid = "ProcessId";
        state: u32 = "ServiceState";
        sub_process_tag: u32 = "SubProcessTag";
        service: Utf16Text<'a> = "ServiceName";
        display: Utf16Text<'a> = "DisplayName";
        process: Utf16Text<'a> = "ProcessName";
    }

    /// Which states of sleep the machine has.
    Power {
        s1: u8 = "S1";
        s2: u8 = "S2";
        s3: u8 = "S3";
        s4: u8 = "S4";
        s5: u8 = "S5";
        pad: [u8; 3] = "Pad";
    }

    /// Settings of TCP.
    Network {
        tcb_table_partitions: u32 = "TcbTablePartitions";
        most_hash_table_size: u32 = "MaxHashTableSize";
        most_user_port: u32 = "MaxUserPort";
        time_wait_delay: u32 = "TcpTimedWaitDelay";
    }

    /// An interrupt's line.
    InterruptLine<'a> {
        affinity: u64 = "IRQAffinity";
        group: u16 = "IRQGroup" [3..=255];
        reserved: u16 = "Reserved" [3..=255];
        number: u32 = "IRQNum";
        description_length: u32 = "DeviceDescriptionLen";
        description: Utf16Text<'a> = "DeviceDescription";
    }

    /// A device.
    Device<'a> {
        class: Guid = "ClassGuid" [4..=255];
        id_length: u32 = "IDLength" [0..=3];
        description_length: u32 = "DescriptionLength" [0..=3];
        friendly_length: u32 = "FriendlyNameLength" [0..=3];
        upper_filters: u32 = "UpperFiltersCount" [4..=255];
        lower_filters: u32 = "LowerFiltersCount" [4..=255];
        status: u32 = "DevStatus" [5..=255];
        problem: u32 = "DevProblem" [5..=255];
        id: Utf16Text<'a> = "DeviceID";
        description: Utf16Text<'a> = "DeviceDescription";
        friendly: Utf16Text<'a> = "FriendlyName";
        object: Utf16Text<'a> = "PdoName" [4..=255];
        service: Utf16Text<'a> = "ServiceName" [4..=255];
    }

    /// A channel of disks.
    IdeChannel<'a> {
        target: u32 = "TargetId";
        device_type: u32 = "DeviceType";
        timing_mode: u32 = "DeviceTimingMode";
        location_length: u32 = "LocationInformationLen";
        location: Utf16Text<'a> = "LocationInformation";
    }

    /// Who made the machine.
    Platform<'a> {
        manufacturer: Utf16Text<'a> = "SystemManufacturer";
        product: Utf16Text<'a> = "SystemProductName";
        bios_date: Utf16Text<'a> = "BiosDate";
        bios_version: Utf16Text<'a> = "BiosVersion";
    }

    /// Which Windows it is.
    Build<'a> {
        installed: FileTime = "InstallDate";
        lab: Utf16Text<'a> = "BuildLab";
        product: Utf16Text<'a> = "ProductName";
    }

    /// Where Windows is.
    SystemPaths<'a> {
        system: Utf16Text<'a> = "SystemDirectory";
        windows: Utf16Text<'a> = "SystemWindowsDirectory";
    }

    /// What a device's path is to people.
    VolumeMapping<'a> {
        nt_path: Utf16Text<'a> = "NtPath";
        dos_path: Utf16Text<'a> = "DosPath";
    }
}

/// What kind of processor a machine has, as its `SystemConfig/CPU` tells: `PROCESSOR_ARCHITECTURE_*` of `winnt.h`. None of other events, and
/// of versions before 3.
///
/// Behind the fields of the MOF class such an event goes on with `HighestUserAddress`, a pointer, and this, a u16, as `CPU_CONFIG_RECORD` of
/// `ntwmi.h` in System Informer's `phnt` has it.
pub fn processor_architecture(record: &EtwRecord<'_>) -> Option<u16> {
    const NUMBERS_AND_NAMES: usize = 5 * 4 + (256 + 134) * 2;
    const OPCODE: u8 = 10;
    let is_cpu = record.provider == SYSTEM_CONFIG && record.descriptor.opcode == OPCODE;
    if !is_cpu || record.schema != Schema::Classic || record.descriptor.version < 3 {
        return None;
    }
    let at = NUMBERS_AND_NAMES + 2 * record.pointer_size.bytes();
    record.payload.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}
