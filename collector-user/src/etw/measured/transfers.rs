//! Requests to disks, operations on files, and what TCP and UDP transfer.
//!
//! - A disk tells of a request when it is done, with the time that took by the performance counter (`HighResResponseTime` of
//!   `DiskIo_TypeGroup1`: between initiation and completion, in its ticks) and with its bytes; who made it and with which stack is told when it is
//!   made (`DiskIo_TypeGroup2`), with the same `Irp`.
//! - A file system tells when an operation begins (`FileIo_ReadWrite`, `FileIo_SimpleOp`), and when it ends, with the same `IrpPtr`, its status and, in
//!   `ExtraInfo`, the bytes that were transferred (`FileIo_OpEnd`). A packet is used again: an operation that begins has ended the one before
//!   it, of which the end may have been lost.
//! - TCP and UDP tell bytes and addresses, and no times (`TcpIp_SendIPV4`, `UdpIp_TypeGroup1` and others). Of TCP `daddr` is the other side in
//!   both directions, of UDP it is who receives: so `PerfView` lists them of a real trace.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use collector_common::ids::Nanos;
use collector_common::record::Unit;
use windows_etw::decode::kernel::{DiskTransfer, FileOperation, FileTransfer, KernelEvent};

use super::{PATH, Said, Sink, error, value};
use crate::etw::files::{FileUse, Files};
use crate::etw::pending::Row;
use crate::etw::times::Times;

/// Requests and operations that are not done.
const MOST: usize = 1 << 20;

/// What is transferred, or done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::etw) enum Operation {
    Read,
    Write,
    /// Of a disk: of its cache.
    Flush,
    /// Of a file.
    Sync,
    Send,
    Receive,
}

impl Operation {
    const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Sync => "sync",
            Self::Send => "send",
            Self::Receive => "receive",
        }
    }
}

/// What an event tells.
#[derive(Clone, Copy, Debug)]
pub(in crate::etw) enum Transfer {
    DiskBegin {
        irp: u64,
    },
    DiskEnd {
        irp: u64,
        operation: Operation,
        disk: u32,
        bytes: u64,
        /// None where the trace does not tell how long a tick is.
        took: Option<Nanos>,
        file: Option<FileUse>,
    },
    FileBegin {
        irp: u64,
        operation: Operation,
        file: Option<FileUse>,
    },
    FileEnd {
        irp: u64,
        bytes: u64,
        status: u32,
    },
    /// Something that is not measured begins.
    OtherBegin {
        irp: u64,
    },
    Network {
        operation: Operation,
        protocol: &'static str,
        remote: SocketAddr,
        local_port: u16,
        bytes: u64,
    },
}

impl Transfer {
    pub(super) fn of(event: &KernelEvent<'_>, files: &mut Files, times: &Times) -> Option<Self> {
        use KernelEvent as E;
        use Operation::{Flush, Read, Receive, Send, Sync, Write};
        let mut done = |operation, it: &DiskTransfer| Self::DiskEnd {
            irp: it.irp.0,
            operation,
            disk: it.disk,
            bytes: it.size.into(),
            took: times.span(it.response_time),
            file: files.of(it.file_object.0, None),
        };
        Some(match event {
            E::DiskReadInit(it) | E::DiskWriteInit(it) | E::DiskFlushInit(it) => {
                Self::DiskBegin { irp: it.irp.0 }
            }
            E::DiskRead(it) => done(Read, it),
            E::DiskWrite(it) => done(Write, it),
            E::DiskFlush(it) => Self::DiskEnd {
                irp: it.irp.0,
                operation: Flush,
                disk: it.disk,
                bytes: 0,
                took: times.span(it.response_time),
                file: None,
            },
            E::FileRead(it) => begun(Read, it, files),
            E::FileWrite(it) => begun(Write, it, files),
            E::FileFlush(FileOperation { irp, file_object, file_key, .. }) => Self::FileBegin {
                irp: irp.0,
                operation: Sync,
                file: files.of(file_key.0, Some(file_object.0)),
            },
            E::FileEnd(it) => Self::FileEnd { irp: it.irp.0, bytes: it.extra.0, status: it.status },
            E::TcpSend(it) => {
                network(Send, "tcp", (it.remote.into(), it.remote_port.0), it.local_port.0, it.size)
            }
            E::TcpReceive(it) => {
                network(Receive, "tcp", (it.remote.into(), it.remote_port.0), it.local_port.0, it.size)
            }
            E::TcpSendV6(it) => {
                network(Send, "tcp", (it.remote.into(), it.remote_port.0), it.local_port.0, it.size)
            }
            E::TcpReceiveV6(it) => {
                network(Receive, "tcp", (it.remote.into(), it.remote_port.0), it.local_port.0, it.size)
            }
            E::UdpSend(it) => {
                network(Send, "udp", (it.remote.into(), it.remote_port.0), it.local_port.0, it.size)
            }
            E::UdpSendV6(it) => {
                network(Send, "udp", (it.remote.into(), it.remote_port.0), it.local_port.0, it.size)
            }
            E::UdpReceive(it) => {
                network(Receive, "udp", (it.local.into(), it.local_port.0), it.remote_port.0, it.size)
            }
            E::UdpReceiveV6(it) => {
                network(Receive, "udp", (it.local.into(), it.local_port.0), it.remote_port.0, it.size)
            }
            _ => return None,
        })
    }

    /// What an operation that is not measured says of one that was.
    pub(super) const fn of_others(event: &KernelEvent<'_>) -> Option<Self> {
        use KernelEvent as E;
        let irp = match event {
            E::FileCreate(it) => it.irp.0,
            E::FileCleanup(it) | E::FileClose(it) => it.irp.0,
            E::FileSetInformation(it)
            | E::FileDelete(it)
            | E::FileRename(it)
            | E::FileQueryInformation(it)
            | E::FileSystemControl(it) => it.irp.0,
            E::FolderList(it) | E::FolderNotify(it) => it.irp.0,
            _ => return None,
        };
        Some(Self::OtherBegin { irp })
    }
}

fn begun(operation: Operation, it: &FileTransfer, files: &mut Files) -> Transfer {
    let file = files.of(it.file_key.0, Some(it.file_object.0));
    Transfer::FileBegin { irp: it.irp.0, operation, file }
}

fn network(
    operation: Operation,
    protocol: &'static str,
    remote: (IpAddr, u16),
    local_port: u16,
    bytes: u32,
) -> Transfer {
    Transfer::Network { operation, protocol, remote: remote.into(), local_port, bytes: bytes.into() }
}

/// An operation on a file that is not done.
#[derive(Clone, Copy, Debug)]
struct Begun {
    row: Row,
    operation: Operation,
    file: Option<FileUse>,
}

/// What is not done, by the address of its request packet.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    disks: HashMap<u64, Row>,
    files: HashMap<u64, Begun>,
    left_out: u64,
}

impl Transfers {
    pub(super) fn take(&mut self, transfer: &Transfer, row: &Row, sink: &mut Sink<'_>) {
        match *transfer {
            Transfer::DiskBegin { irp } => {
                if self.has_room(self.disks.len()) {
                    self.disks.insert(irp, *row);
                }
            }
            Transfer::DiskEnd { irp, operation, disk, bytes, took, file } => {
                let begun = self.disks.remove(&irp);
                let since = begun.map(|begun| Nanos(row.at.0.saturating_sub(begun.at.0)));
                let Some(took) = took.or(since) else { return };
                let device = format!("PhysicalDrive{disk}");
                let mut list =
                    vec![("device", Said::Text(&device)), ("operation", Said::Text(operation.name()))];
                list.extend(path(file));
                list.push(("bytes", Said::Number(i64::try_from(bytes).unwrap_or(i64::MAX))));
                let attributes = sink.attributes(&list);
                // A disk is done in a thread that has nothing to do with it.
                let made = begun.unwrap_or(*row);
                let row = Row { at: row.at, value: value(took), attributes, ..made };
                sink.sample(("block_io", Unit::Nanoseconds), &row);
            }
            Transfer::FileBegin { irp, operation, file } => {
                if self.has_room(self.files.len()) {
                    self.files.insert(irp, Begun { row: *row, operation, file });
                }
            }
            Transfer::FileEnd { irp, bytes, status } => {
                let Some(Begun { row: begun, operation, file }) = self.files.remove(&irp) else { return };
                let failed = error(status);
                let bytes = if failed.is_empty() && operation != Operation::Sync { bytes } else { 0 };
                let mut list = vec![("operation", Said::Text(operation.name()))];
                list.extend(path(file));
                list.push(("error", Said::Text(&failed)));
                list.push(("bytes", Said::Number(i64::try_from(bytes).unwrap_or(i64::MAX))));
                let attributes = sink.attributes(&list);
                let took = Nanos(row.at.0.saturating_sub(begun.at.0));
                let row = Row { at: row.at, value: value(took), attributes, ..begun };
                sink.sample(("file_io", Unit::Nanoseconds), &row);
            }
            Transfer::OtherBegin { irp } => drop(self.files.remove(&irp)),
            Transfer::Network { operation, protocol, remote, local_port, bytes } => {
                let address = format!("{protocol} {remote}");
                let attributes = sink.attributes(&[
                    ("operation", Said::Text(operation.name())),
                    ("address", Said::Text(&address)),
                    ("local_port", Said::Number(local_port.into())),
                ]);
                let value = i64::try_from(bytes).unwrap_or(i64::MAX);
                sink.sample(("network_io", Unit::Bytes), &Row { value, attributes, ..*row });
            }
        }
    }

    /// Events were lost: what ends from now on may be something that was not seen to begin.
    pub(super) fn lose(&mut self) {
        // To empty those that were large takes long, each time.
        (self.disks, self.files) = (HashMap::new(), HashMap::new());
    }

    pub(super) const fn left_out(&self) -> u64 {
        self.left_out
    }

    fn has_room(&mut self, len: usize) -> bool {
        self.left_out += u64::from(len >= MOST);
        len < MOST
    }
}

/// The number of a file, until its path is known.
fn path(file: Option<FileUse>) -> Option<(&'static str, Said<'static>)> {
    file.map(|file| (PATH, Said::Number(file.0.into())))
}
