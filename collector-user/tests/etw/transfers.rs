//! What is read, written, sent and received, by records of which all is known, and by `PerfView`'s list of a real trace.

use std::io::Cursor;

use collector_common::event::Guid;
use collector_common::ids::{Pid, Tid};
use collector_common::record::EventKindId;
use windows_etw::decode::kernel::{DISK_IO, FILE_IO, LOST_EVENT, TCP_IP, UDP_IP};
use windows_etw::etl::EtlFile;
use windows_etw::record::Extended;

use crate::data::{baseline, bytes, counts, import, number, value};
use crate::made::{Made, Odd, Payload};
use crate::shown::{Shown, histograms, samples, table};

const IRP: u64 = 0xffff_8000_0000_1230;
const KEY: u64 = 0xffff_8000_0000_4560;
const OBJECT: u64 = 0xffff_8000_0000_7890;
const PATH: &str = r"\Device\HarddiskVolume3\data.db";

/// `DiskIo/Read` of 4096 bytes, or with opcode 11 `Write`, which took so many ticks.
fn disk(made: &mut Made, at: i64, opcode: u8, irp: u64, ticks: u64) {
    let payload = Payload::default().u32(&[1, 0, 4096, 0]).u64(&[0, KEY, irp, ticks]).u32(&[0]);
    made.classic(at, (DISK_IO, opcode, 3), 1, &payload);
}

fn disk_begins(made: &mut Made, at: i64, opcode: u8, irp: u64, tid: u32) {
    made.classic(at, (DISK_IO, opcode, 3), 0, &Payload::default().u64(&[irp]).u32(&[tid]));
}

/// `FileIo/Read`, or with opcode 68 `Write`.
fn file_begins(made: &mut Made, at: i64, opcode: u8, irp: u64, tid: u32) {
    let payload = Payload::default().u64(&[0, irp, OBJECT, KEY]).u32(&[tid, 1000, 0]);
    made.classic(at, (FILE_IO, opcode, 3), 0, &payload);
}

fn file_ends(made: &mut Made, at: i64, irp: u64, bytes: u64, status: u32) {
    made.classic(at, (FILE_IO, 76, 3), 0, &Payload::default().u64(&[irp, bytes]).u32(&[status]));
}

fn made() -> Made {
    let mut made = Made::of(&["io_monitoring"]);
    made.process(1, 1, 70, "made.exe");
    made.thread(2, 70, 71, "reader");
    made
}

#[test]
fn a_request_to_a_disk_is_of_who_made_it() {
    let mut made = made();
    disk_begins(&mut made, 1000, 12, IRP, 71);
    made.stack(1001, 1000, 70, 71, &[0x10_0010, 0x10_0020]);
    disk_begins(&mut made, 1500, 13, IRP + 0x100, 71);
    // Done by whoever ran there, and told of two more nanoseconds later than it was done.
    disk(&mut made, 9002, 10, IRP, 8000);
    disk(&mut made, 9500, 11, IRP + 0x100, 7000);
    // Nobody saw that it was made.
    disk(&mut made, 9900, 11, IRP + 0x200, 300);
    // What the file is called is told at the end.
    made.classic(10_000, (FILE_IO, 36, 2), 0, &Payload::default().u64(&[KEY]).wide(PATH));
    let machine = made.finish().machine;
    let all = samples(&machine, "block_io");
    let attributes = format!("device=PhysicalDrive1 operation=read path={PATH} bytes=4096");
    let addresses = vec![0x10_0010, 0x10_0020];
    assert_eq!(all[0], Shown { at: 1002, value: 8000, pid: 70, tid: 71, addresses, attributes });
    assert_eq!((all[1].value, all[1].tid, all[2].value, all.len()), (7000, 71, 300, 3));
    let times = histograms(&machine, "times of block requests");
    let expected =
        [("all devices", 3, 15_300), ("PhysicalDrive1 read", 1, 8000), ("PhysicalDrive1 write", 2, 7300)];
    assert_eq!(times, expected.map(|(label, count, sum)| (label.to_owned(), count, sum)));
    assert_eq!(histograms(&machine, "sizes of block requests")[0].2, 3 * 4096);
    assert_eq!(
        machine.string(machine.kinds()[usize::from(machine.shown_kind().unwrap().0)].name),
        "block_io"
    );
    // Each event is there for itself, too.
    assert_eq!(machine.event_records().iter().count(), 2 + 5 + 1);
}

/// As in `net.4.5.2.x64.etl`: an idle CPU, or a thread of the system, hands a request to the disk that another one has made.
#[test]
fn a_request_that_another_thread_hands_on_is_of_who_made_it() {
    const INIT: (Guid, u8, u8) = (DISK_IO, 13, 3);
    let mut made = made();
    let begins = |irp: u64, tid: u32| Payload::default().u64(&[irp]).u32(&[tid]);
    made.classic_of((Pid(0), Tid(0)), 1000, INIT, &begins(IRP, 71));
    made.classic_of((Pid(4), Tid(412)), 1100, INIT, &begins(IRP + 0x100, 71));
    made.stack(1101, 1100, 4, 412, &[0xffff_8000_0000_0010]);
    made.classic_of((Pid(70), Tid(71)), 1200, INIT, &begins(IRP + 0x200, 71));
    made.stack(1201, 1200, 70, 71, &[0x10_0010]);
    // No thread is told: it is that of the header, as before Windows 8.
    made.classic_of((Pid(70), Tid(71)), 1300, INIT, &begins(IRP + 0x300, 0));
    made.classic_of((Pid(70), Tid(71)), 1400, (DISK_IO, 13, 2), &begins(IRP + 0x400, 0));
    for number in 0..5 {
        disk(&mut made, 9000 + number as i64, 11, IRP + number * 0x100, 300);
    }
    let machine = made.finish().machine;
    let all: Vec<_> =
        samples(&machine, "block_io").into_iter().map(|it| (it.pid, it.tid, it.addresses)).collect();
    let bare = (70, 71, vec![]);
    let own = (70, 71, vec![0x10_0010]);
    assert_eq!(all, [bare.clone(), bare.clone(), own, bare.clone(), bare]);
}

#[test]
fn an_operation_on_a_file_takes_until_its_end() {
    let mut made = made();
    let opened = Payload::default().u64(&[1, OBJECT]).u32(&[71, 0, 0, 0]).wide(PATH);
    made.classic(500, (FILE_IO, 64, 3), 0, &opened);
    file_begins(&mut made, 1000, 67, IRP, 71);
    made.stack(1001, 1000, 70, 71, &[0x10_0010]);
    // Of another request in between.
    file_begins(&mut made, 1100, 68, IRP + 8, 71);
    file_ends(&mut made, 1600, IRP, 800, 0);
    file_ends(&mut made, 2100, IRP + 8, 0, 0xc000_007f);
    // It is not of what is measured, and one that does not end is no sample.
    file_ends(&mut made, 2200, IRP, 7, 0);
    file_begins(&mut made, 2300, 67, IRP, 71);
    let machine = made.finish().machine;
    let all = samples(&machine, "file_io");
    let attributes = format!("operation=read path={PATH} bytes=800");
    let addresses = vec![0x10_0010];
    assert_eq!(all[0], Shown { at: 1000, value: 600, pid: 70, tid: 71, addresses, attributes });
    assert_eq!(all[1].attributes, format!("operation=write path={PATH} error=0xc000007f bytes=0"));
    assert_eq!((all[1].value, all.len()), (1000, 2));
    let rows = table(&machine, "reads, writes and calls on sockets");
    let row = |label: &str, numbers: [u64; 6]| (label.to_owned(), numbers.to_vec());
    assert_eq!(rows, [row("write", [1, 1, 0, 1000, 1000, 1000]), row("read", [1, 0, 800, 600, 600, 600])]);
}

/// A request packet whose operation ended unseen is used again, or an event between the two was lost.
#[test]
fn an_operation_whose_end_was_lost_does_not_last_to_another_ones() {
    // `Create`, `Cleanup`, `Close`, `SetInfo`, `Delete`, `Rename`, `DirEnum`, `QueryInfo`, `FSControl`, `DirNotify`: all begin with the packet.
    let mut others: Vec<(u8, bool)> = [64, 65, 66, 69, 70, 71, 72, 74, 75, 77].map(|it| (it, true)).into();
    // `LostEvent/Event`, `Buffer`, `File`.
    others.extend([(32, false), (33, false), (34, false)]);
    for (opcode, is_operation) in others {
        let mut made = made();
        file_begins(&mut made, 1000, 67, IRP, 71);
        file_begins(&mut made, 1100, 68, IRP + 8, 71);
        disk_begins(&mut made, 1200, 12, IRP + 16, 71);
        if is_operation {
            let payload = Payload::default().u64(&[IRP, OBJECT, KEY, 0, 0, 0]).wide("");
            made.classic(9_000_000, (FILE_IO, opcode, 3), 0, &payload);
        } else {
            made.classic(9_000_000, (LOST_EVENT, opcode, 2), 0, &Payload::default());
        }
        file_ends(&mut made, 9_000_500, IRP, 0, 0);
        file_ends(&mut made, 9_000_600, IRP + 8, 0, 0);
        disk(&mut made, 9_000_700, 10, IRP + 16, 300);
        let machine = made.finish().machine;
        let values = |kind| samples(&machine, kind).iter().map(|it| (it.value, it.tid)).collect::<Vec<_>>();
        let (files, disks) = (values("file_io"), values("block_io"));
        // Of the others nothing was lost.
        let expected = if is_operation { vec![(8_999_500, 71)] } else { vec![] };
        assert_eq!(files, expected, "{opcode}");
        // Its time is told by the disk itself, and whose it was by what may have been lost.
        assert_eq!((disks[0].0, disks[0].1 == 71), (300, is_operation), "{opcode}");
    }
    let mut made = made();
    file_begins(&mut made, 1000, 67, IRP, 71);
    let after = Extended { is_after_loss: true, ..Extended::default() };
    let odd = Odd { at: 5000, provider: FILE_IO, id: None, opcode: 76, version: 3, number: 71 };
    made.odd_with(&odd, after, &[&IRP.to_le_bytes()[..], &[0; 12]].concat());
    assert!(samples(&made.finish().machine, "file_io").is_empty());
}

#[test]
fn networks_tell_bytes_and_addresses() {
    let mut made = made();
    let v4 = |pid: u32, size: u32, more: &[u32]| {
        let payload = Payload::default().u32(&[pid, size]).u8(&[10, 0, 0, 9, 10, 0, 0, 1]);
        payload.u8(&[0x01, 0xbb, 0xc0, 0x00]).u32(more).u64(&[0])
    };
    made.classic(1000, (TCP_IP, 10, 2), 0, &v4(70, 500, &[1, 1, 0]));
    made.classic(2000, (TCP_IP, 11, 2), 0, &v4(70, 900, &[0]));
    // Who sends a datagram is its `saddr`.
    made.classic(3000, (UDP_IP, 11, 2), 0, &v4(70, 60, &[0]));
    let machine = made.finish().machine;
    let all: Vec<_> =
        samples(&machine, "network_io").into_iter().map(|it| (it.value, it.pid, it.attributes)).collect();
    let said = |operation: &str, address: &str, port: u16| {
        format!("operation={operation} address={address} local_port={port}")
    };
    assert_eq!(
        all,
        [
            (500, 70, said("send", "tcp 10.0.0.9:443", 49_152)),
            (900, 70, said("receive", "tcp 10.0.0.9:443", 49_152)),
            (60, 70, said("receive", "udp 10.0.0.1:49152", 443)),
        ]
    );
    let row = |label: &str, bytes| (label.to_owned(), vec![1, bytes]);
    let expected = [row("receive tcp", 900), row("send tcp", 500), row("receive udp", 60)];
    assert_eq!(table(&machine, "sends and receives"), expected);
}

/// `DiskIo_TypeGroup2` has the request packet and, behind it, the thread. Three of them have another one in their header.
#[test]
fn requests_of_a_real_trace_are_of_the_threads_in_their_bytes() {
    const NET: &str = "net.4.5.2.x64.etl";
    let (Some(bytes), Some(imported)) = (bytes(NET), import(NET)) else { return };
    let mut file = EtlFile::open(Cursor::new(bytes)).unwrap();
    let (mut expected, mut differ) = (Vec::new(), 0);
    while let Some(record) = file.next_record().unwrap() {
        if record.provider == DISK_IO && record.descriptor.opcode == 13 {
            let tid = u32::from_le_bytes(*record.payload[8..].first_chunk().unwrap());
            differ += usize::from(record.tid != Some(Tid(tid)));
            expected.push(tid);
        }
    }
    assert_eq!((expected.len(), differ), (21, 3));
    let machine = &imported.machine;
    let kind = |id: EventKindId| machine.string(machine.event_kinds()[usize::from(id.0)].name);
    let all = machine
        .event_records()
        .iter()
        .filter(|(_, record, _)| kind(record.kind) == "Windows Kernel/DiskIO/WriteInit");
    let found: Vec<u32> = all.map(|(_, record, _)| machine.thread(record.thread).tid.0).collect();
    assert_eq!(found, expected);
}

/// `PerfView` lists the times of requests, their bytes, files and processes.
#[test]
fn requests_to_disks_are_as_they_are_listed() {
    let Some(imported) = import("net.4.5.2.x64.etl") else { return };
    let (machine, baseline) = (&imported.machine, baseline("net.4.5.2.x64.etl"));
    let all = samples(machine, "block_io");
    let count = |name: &str| {
        let name = format!("Windows Kernel/DiskIO/{name}");
        counts(&baseline).find_map(|(own, count)| (own == name).then_some(count)).unwrap() as usize
    };
    assert_eq!(all.len(), count("Read") + count("Write") + count("FlushBuffers"));
    let (start, mut listed) = (machine.system().start.0 as f64, 0);
    for operation in ["Read", "Write"] {
        let name = format!(" Windows Kernel/DiskIO/{operation} PID=");
        for line in baseline.lines().filter(|line| line.contains(&name)) {
            let millis: f64 = line[6..].split_once(": ").unwrap().0.replace(',', "").parse().unwrap();
            let took: f64 = value(line, "DiskServiceTimeMSec").replace(',', "").parse().unwrap();
            let path = value(line, "FileName").trim_end_matches("...");
            let is_it = |it: &&Shown| {
                let end = (it.at as f64 + it.value as f64 - start) / 1e6;
                (end - millis).abs() < 0.001
                    && (it.value as f64 / 1e6 - took).abs() < 0.001
                    && it.attributes.contains(&format!("operation={}", operation.to_lowercase()))
                    && it.attributes.contains(&format!(" path={path}"))
                    && it.attributes.ends_with(&format!(" bytes={}", number(value(line, "TransferSize"))))
            };
            assert_eq!(all.iter().filter(is_it).count(), 1, "{line}");
            listed += 1;
        }
    }
    assert!(listed >= 8, "{listed}");
    let sent = samples(machine, "network_io");
    let of = |name: &str| counts(&baseline).find(|(own, _)| *own == name).map_or(0, |(_, count)| count);
    let told =
        ["TcpIp/RecvIPV6", "TcpIp/SendIPV6", "UdpIp/Recv", "UdpIp/RecvIPV6", "UdpIp/Send", "UdpIp/SendIPV6"];
    assert_eq!(sent.len() as u64, told.iter().map(|name| of(&format!("Windows Kernel/{name}"))).sum::<u64>());
}
