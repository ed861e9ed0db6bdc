//! Disks, files and networks: classes `3d6fa8d4-…` (`DiskIo`), `90cbdc39-…` (`FileIo`), `9a280ac0-…` (`TcpIp`) and `bf3a50c5-…` (`UdpIp`).
//! Layouts are those of the MOF classes of the same names. Windows 8 added the thread to those of disks.

use std::net::{Ipv4Addr, Ipv6Addr};

use collector_common::event::Utf16Text;
use collector_common::ids::{Avma, Pid, Tid};

use collector_common::layout;
use collector_common::payload::{Pointer, Port};

layout! {
    /// A disk has read or written.
    DiskTransfer {
        disk: u32 = "DiskNumber";
        irp_flags: u32 = "IrpFlags";
        size: u32 = "TransferSize";
        reserved: u32 = "Reserved";
        offset: u64 = "ByteOffset";
        file_object: Pointer = "FileObject";
        irp: Pointer = "Irp";
        response_time: u64 = "HighResResponseTime";
        tid: Tid = "IssuingThreadId" [3..=255];
    }

    /// A disk is asked to read, write or flush.
    DiskRequest {
        irp: Pointer = "Irp";
        tid: Tid = "IssuingThreadId" [3..=255];
    }

    /// A disk has flushed.
    DiskFlush {
        disk: u32 = "DiskNumber";
        irp_flags: u32 = "IrpFlags";
        response_time: u64 = "HighResResponseTime";
        irp: Pointer = "Irp";
        tid: Tid = "IssuingThreadId" [3..=255];
    }

    /// The name of a file object.
    FileName<'a> {
        file_object: Pointer = "FileObject";
        path: Utf16Text<'a> = "FileName";
    }

    /// A file is opened or made.
    FileCreate<'a> {
        irp: Pointer = "IrpPtr";
        thread: Pointer = "TTID" [0..=2];
        file_object: Pointer = "FileObject";
        tid: Tid = "IssuingThreadId" [3..=255];
        options: u32 = "CreateOptions";
        attributes: u32 = "FileAttributes";
        share_access: u32 = "ShareAccess";
        path: Utf16Text<'a> = "OpenPath";
    }

    /// A file is closed, cleaned up or flushed.
    FileOperation {
        irp: Pointer = "IrpPtr";
        thread: Pointer = "TTID" [0..=2];
        file_object: Pointer = "FileObject";
        file_key: Pointer = "FileKey";
        tid: Tid = "IssuingThreadId" [3..=255];
    }

    /// A file is read or written.
    FileTransfer {
        offset: u64 = "Offset";
        irp: Pointer = "IrpPtr";
        thread: Pointer = "TTID" [0..=2];
        file_object: Pointer = "FileObject";
        file_key: Pointer = "FileKey";
        tid: Tid = "IssuingThreadId" [3..=255];
        size: u32 = "IoSize";
        flags: u32 = "IoFlags";
    }

    /// What is known of a file is asked or set.
    FileInformation {
        irp: Pointer = "IrpPtr";
        thread: Pointer = "TTID" [0..=2];
        file_object: Pointer = "FileObject";
        file_key: Pointer = "FileKey";
        extra: Pointer = "ExtraInfo";
        tid: Tid = "IssuingThreadId" [3..=255];
        class: u32 = "InfoClass";
    }

    /// A folder is listed or watched.
    FolderList<'a> {
        irp: Pointer = "IrpPtr";
        thread: Pointer = "TTID" [0..=2];
        file_object: Pointer = "FileObject";
        file_key: Pointer = "FileKey";
        tid: Tid = "IssuingThreadId" [3..=255];
        length: u32 = "Length";
        class: u32 = "InfoClass";
        index: u32 = "FileIndex";
        pattern: Utf16Text<'a> = "FileName";
    }

    /// An operation on a file is done.
    FileEnd {
        irp: Pointer = "IrpPtr";
        extra: Pointer = "ExtraInfo";
        status: u32 = "NtStatus";
    }

    /// A file is mapped or unmapped.
    FileMapping {
        base: Avma = "ViewBase";
        file_key: Pointer = "FileKey";
        misc: u64 = "MiscInfo";
        size: Pointer = "ViewSize";
        pid_v2: Pid = "ProcessId" [0..=2];
        offset: u64 = "ByteOffset" [3..=255];
        pid: Pid = "ProcessId" [3..=255];
    }

    /// Bytes over a TCP connection, of version 0.
    TcpV0 {
        remote: Ipv4Addr = "daddr";
        local: Ipv4Addr = "saddr";
        remote_port: Port = "dport";
        local_port: Port = "sport";
        size: u32 = "size";
        pid: Pid = "PID";
    }

    /// Bytes over a TCP connection, or what happens to it. Version 1 has its last two fields in another order.
    TcpV4 {
        pid: Pid = "PID";
        size: u32 = "size";
        remote: Ipv4Addr = "daddr";
        local: Ipv4Addr = "saddr";
        remote_port: Port = "dport";
        local_port: Port = "sport";
        connection_v1: u32 = "connid" [1..=1];
        sequence: u32 = "seqnum";
        connection: Pointer = "connid" [2..=255];
    }

    /// Bytes sent over a TCP connection.
    TcpSendV4 {
        pid: Pid = "PID";
        size: u32 = "size";
        remote: Ipv4Addr = "daddr";
        local: Ipv4Addr = "saddr";
        remote_port: Port = "dport";
        local_port: Port = "sport";
        start_time: u32 = "startime";
        end_time: u32 = "endtime";
        connection_v1: u32 = "connid" [1..=1];
        sequence: u32 = "seqnum";
        connection: Pointer = "connid" [2..=255];
    }

    /// A TCP connection is made or accepted.
    TcpConnectV4 {
        pid: Pid = "PID";
        size: u32 = "size";
        remote: Ipv4Addr = "daddr";
        local: Ipv4Addr = "saddr";
        remote_port: Port = "dport";
        local_port: Port = "sport";
        segment: u16 = "mss";
        selective_acknowledgement: u16 = "sackopt";
        timestamps: u16 = "tsopt";
        window_scaling: u16 = "wsopt";
        receive_window: u32 = "rcvwin";
        receive_scale: i16 = "rcvwinscale";
        send_scale: i16 = "sndwinscale";
        connection_v1: u32 = "connid" [1..=1];
        sequence: u32 = "seqnum";
        connection: Pointer = "connid" [2..=255];
    }

    /// What failed, of TCP of version 1.
    TcpFailV1 {
        protocol: u32 = "Proto";
    }

    /// What failed, of TCP or UDP.
    NetworkFail {
        protocol: u16 = "Proto";
        code: u16 = "FailureCode";
    }

    /// Bytes over a TCP connection, or what happens to it, by IPv6.
    TcpV6 {
        pid: Pid = "PID";
        size: u32 = "size";
        remote: Ipv6Addr = "daddr";
        local: Ipv6Addr = "saddr";
        remote_port: Port = "dport";
        local_port: Port = "sport";
        sequence: u32 = "seqnum";
        connection: Pointer = "connid";
    }

    /// Bytes sent over a TCP connection by IPv6.
    TcpSendV6 {
        pid: Pid = "PID";
        size: u32 = "size";
        remote: Ipv6Addr = "daddr";
        local: Ipv6Addr = "saddr";
        remote_port: Port = "dport";
        local_port: Port = "sport";
        start_time: u32 = "startime";
        end_time: u32 = "endtime";
        sequence: u32 = "seqnum";
        connection: Pointer = "connid";
    }

    /// A TCP connection is made or accepted by IPv6.
    TcpConnectV6 {
        pid: Pid = "PID";
        size: u32 = "size";
        remote: Ipv6Addr = "daddr";
        local: Ipv6Addr = "saddr";
        remote_port: Port = "dport";
        local_port: Port = "sport";
        segment: u16 = "mss";
        selective_acknowledgement: u16 = "sackopt";
        timestamps: u16 = "tsopt";
        window_scaling: u16 = "wsopt";
        receive_window: u32 = "rcvwin";
        receive_scale: i16 = "rcvwinscale";
        send_scale: i16 = "sndwinscale";
        sequence: u32 = "seqnum";
        connection: Pointer = "connid";
    }

    /// A datagram, of version 0.
    UdpV0 {
        context: Pointer = "context";
        local: Ipv4Addr = "saddr";
        local_port: Port = "sport";
        size: u16 = "size";
        remote: Ipv4Addr = "daddr";
        remote_port: Port = "dport";
        remote_size: u16 = "dsize";
    }

    /// A datagram.
    UdpV4 {
        pid: Pid = "PID";
        size: u32 = "size";
        remote: Ipv4Addr = "daddr";
        local: Ipv4Addr = "saddr";
        remote_port: Port = "dport";
        local_port: Port = "sport";
        sequence: u32 = "seqnum" [2..=255];
        connection: Pointer = "connid" [2..=255];
    }

    /// A datagram by IPv6.
    UdpV6 {
        pid: Pid = "PID";
        size: u32 = "size";
        remote: Ipv6Addr = "daddr";
        local: Ipv6Addr = "saddr";
        remote_port: Port = "dport";
        local_port: Port = "sport";
        sequence: u32 = "seqnum";
        connection: Pointer = "connid";
    }
}
