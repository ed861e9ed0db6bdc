//! An event in, the process and thread that it is of out: as its header tells, else as its fields do. Those that come when a device is done,
//! or of lists at a trace's beginning and end, have nobody in their header. Of disks the fields come first where they tell a thread: a request may be
//! handed to the device by another one, of the system or of an idle CPU, which is the one in the header then.

use collector_common::ids::{Pid, Tid};
use windows_etw::decode::kernel::KernelEvent;
use windows_etw::record::EtwRecord;

/// A thread as an event tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Whose {
    pub(super) pid: Option<Pid>,
    pub(super) tid: Option<Tid>,
}

impl Whose {
    /// None where neither header nor fields tell.
    pub(super) fn of(record: &EtwRecord<'_>, event: Option<&KernelEvent<'_>>) -> Option<Self> {
        if let Some(issuing) = event.and_then(issuing_thread) {
            return Some(Self { pid: None, tid: Some(issuing) });
        }
        if record.pid.is_some() || record.tid.is_some() {
            return Some(Self { pid: record.pid, tid: record.tid });
        }
        let whose = event.map(by_fields).unwrap_or_default();
        (whose != Self::default()).then_some(whose)
    }
}

/// The thread that made a request to a disk, which is told since Windows 8.
fn issuing_thread(event: &KernelEvent<'_>) -> Option<Tid> {
    use KernelEvent as E;
    let tid = match event {
        E::DiskRead(it) | E::DiskWrite(it) => it.tid,
        E::DiskFlush(it) => it.tid,
        E::DiskReadInit(it) | E::DiskWriteInit(it) | E::DiskFlushInit(it) => it.tid,
        _ => None,
    };
    // That of idle CPUs makes none.
    tid.filter(|tid| *tid != Tid(0))
}

fn by_fields(event: &KernelEvent<'_>) -> Whose {
    use KernelEvent as E;
    let of_process = |pid| Whose { pid: Some(pid), tid: None };
    let of_thread = |tid| Whose { pid: None, tid };
    match event {
        E::FileRead(it) | E::FileWrite(it) => of_thread(it.tid),
        E::FileFlush(it) => of_thread(it.tid),
        E::HardFault(it) => of_thread(Some(it.tid)),
        E::ThreadStart(it) | E::ThreadStop(it) | E::ThreadDcStart(it) | E::ThreadDcStop(it) => {
            Whose { pid: Some(it.pid), tid: Some(it.tid) }
        }
        E::ThreadName(it) => Whose { pid: Some(it.pid), tid: Some(it.tid) },
        // One that is defunct has ended before.
        E::ProcessStart(it) | E::ProcessStop(it) | E::ProcessDcStart(it) | E::ProcessDcStop(it) => {
            of_process(it.pid.0)
        }
        E::ProcessCounters(it) | E::ProcessCountersRundown(it) => of_process(it.pid),
        E::ImageLoad(it) | E::ImageUnload(it) | E::ImageDcStart(it) | E::ImageDcStop(it) => {
            of_process(it.pid)
        }
        E::VirtualAlloc(it) | E::VirtualFree(it) => of_process(it.pid),
        E::TcpSend(it) => of_process(it.pid),
        E::TcpConnect(it) | E::TcpAccept(it) => of_process(it.pid),
        E::TcpReceive(it)
        | E::TcpDisconnect(it)
        | E::TcpRetransmit(it)
        | E::TcpReconnect(it)
        | E::TcpCopy(it) => of_process(it.pid),
        E::TcpSendV6(it) => of_process(it.pid),
        E::TcpConnectV6(it) | E::TcpAcceptV6(it) => of_process(it.pid),
        E::TcpReceiveV6(it)
        | E::TcpDisconnectV6(it)
        | E::TcpRetransmitV6(it)
        | E::TcpReconnectV6(it)
        | E::TcpCopyV6(it) => of_process(it.pid),
        E::UdpSend(it) | E::UdpReceive(it) => of_process(it.pid),
        E::UdpSendV6(it) | E::UdpReceiveV6(it) => of_process(it.pid),
        _ => Whose::default(),
    }
}
