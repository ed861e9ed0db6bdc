//! Payloads written by hand after the MOF classes of Windows' documentation, in each version and with both widths of pointers.

use std::net::Ipv4Addr;

use collector_common::event::Guid;
use collector_common::ids::{Avma, Pid, Tid};

use crate::decode::kernel::{
    KernelEvent, PERF_INFO, PROCESS, STACK_WALK, SYSTEM_CONFIG, TCP_IP, processor_architecture,
};
use crate::decode::windows::{KERNEL_PROCESS, WindowsEvent};
use crate::decode::{Pointer, Port};
use crate::record::{Descriptor, EtwRecord, Extended, PointerSize, Schema};

/// A payload.
struct Written {
    bytes: Vec<u8>,
    pointer: PointerSize,
}

impl Written {
    fn new(pointer: PointerSize) -> Self {
        Self { bytes: Vec::new(), pointer }
    }

    fn u32(mut self, value: u32) -> Self {
        self.bytes.extend(value.to_le_bytes());
        self
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    fn pointer(mut self, value: u64) -> Self {
        self.bytes.extend(value.to_le_bytes().iter().take(self.pointer.bytes()));
        self
    }

    fn wide(mut self, text: &str) -> Self {
        self.bytes.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        self
    }

    /// `TOKEN_USER`, and the SID of the system, `S-1-5-18`.
    fn user(self) -> Self {
        self.pointer(0x1234_5678).pointer(0).raw(&[1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0])
    }

    fn record(&self, class: Guid, opcode: u8, version: u8) -> EtwRecord<'_> {
        EtwRecord {
            provider: class,
            descriptor: Descriptor { version, opcode, ..Descriptor::default() },
            schema: Schema::Classic,
            pointer_size: self.pointer,
            pid: None,
            tid: None,
            cpu: 0,
            ticks: 0,
            activity: Guid([0; 16]),
            extended: Extended::default(),
            payload: &self.bytes,
        }
    }

    fn decode(&self, class: Guid, opcode: u8, version: u8) -> KernelEvent<'_> {
        KernelEvent::decode(&self.record(class, opcode, version)).unwrap().unwrap()
    }
}

const WIDTHS: [PointerSize; 2] = [PointerSize::Bits32, PointerSize::Bits64];
const KEY: u64 = 0xffff_fa83_0bcf_b380;

#[test]
fn processes_of_all_versions() {
    for width in WIDTHS {
        let key = if width == PointerSize::Bits32 { KEY & 0xffff_ffff } else { KEY };
        let payloads = [
            Written::new(width).pointer(3676).pointer(3508).user().raw(b"Test.exe\0"),
            Written::new(width)
                .pointer(0x558f_b000)
                .u32(3676)
                .u32(3508)
                .u32(1)
                .u32(259)
                .user()
                .raw(b"Test.exe\0"),
            Written::new(width)
                .pointer(KEY)
                .u32(3676)
                .u32(3508)
                .u32(1)
                .u32(259)
                .user()
                .raw(b"Test.exe\0")
                .wide("Test 1"),
            Written::new(width)
                .pointer(KEY)
                .u32(3676)
                .u32(3508)
                .u32(1)
                .u32(259)
                .pointer(0x558f_b000)
                .user()
                .raw(b"Test.exe\0")
                .wide("Test 1"),
            Written::new(width)
                .pointer(KEY)
                .u32(3676)
                .u32(3508)
                .u32(1)
                .u32(259)
                .pointer(0x558f_b000)
                .u32(2)
                .user()
                .raw(b"Test.exe\0")
                .wide("Test 1")
                .wide("Package")
                .wide("App"),
        ];
        for (payload, version) in payloads.iter().zip(0..) {
            let KernelEvent::ProcessStart(process) = payload.decode(PROCESS, 1, version) else { panic!() };
            assert_eq!((process.pid.0, process.parent.0), (Pid(3676), Pid(3508)));
            assert_eq!(process.user.unwrap().to_string(), "S-1-5-18");
            assert_eq!(process.image.to_str(), Ok("Test.exe"));
            assert_eq!(
                (process.session, process.exit_status),
                if version > 0 { (Some(1), Some(259)) } else { (None, None) }
            );
            assert_eq!(process.unique_process_key, (version > 1).then_some(Pointer(key)));
            let base = process.page_directory_base.or(process.directory_table_base);
            assert_eq!(base, [1, 3, 4].contains(&version).then_some(Pointer(0x558f_b000)));
            assert_eq!(
                process.command_line.map(|text| text.to_string()).as_deref(),
                (version > 1).then_some("Test 1")
            );
            assert_eq!(process.flags, (version > 3).then_some(2));
            assert_eq!(
                process.package.map(|text| text.to_string()).as_deref(),
                (version > 3).then_some("Package")
            );
            assert_eq!(
                process.application.map(|text| text.to_string()).as_deref(),
                (version > 3).then_some("App")
            );
        }
        // A process without a user, as the system's own.
        let payload =
            Written::new(width).pointer(KEY).u32(4).u32(0).u32(0).u32(0).u32(0).raw(b"System\0").wide("");
        let KernelEvent::ProcessDcStart(process) = payload.decode(PROCESS, 3, 2) else { panic!() };
        assert_eq!((process.user, process.image.to_str()), (None, Ok("System")));
    }
}

#[test]
fn samples_and_stacks() {
    for width in WIDTHS {
        let sample = Written::new(width).pointer(0x7654_3210).u32(1234).raw(&[1, 0, 0x42, 7]);
        let KernelEvent::Sample(sample) = sample.decode(PERF_INFO, 46, 2) else { panic!() };
        assert_eq!((sample.instruction, sample.tid, sample.count), (Avma(0x7654_3210), Tid(1234), 1));
        assert_eq!((sample.flags, sample.rank), (0x42, 7));
        let stack =
            Written::new(width).raw(&77_u64.to_le_bytes()).u32(4).u32(8).pointer(0x8000_0001).pointer(0x1000);
        let KernelEvent::Stack(stack) = stack.decode(STACK_WALK, 32, 2) else { panic!() };
        assert_eq!((stack.event_ticks, stack.pid, stack.tid), (77, Pid(4), Tid(8)));
        assert!(stack.frames.iter().eq([0x8000_0001, 0x1000]));
        // What is no whole address is left out.
        let cut = Written::new(width).pointer(5).pointer(6).raw(&[1, 2]);
        let KernelEvent::StackKeyRundown(stack) = cut.decode(STACK_WALK, 36, 2) else { panic!() };
        assert_eq!(stack.key, Pointer(5));
        assert!(stack.frames.iter().eq([6]));
    }
}

/// The first two versions have their fields in another order.
#[test]
fn connections_of_all_versions() {
    let ends = [10, 0, 0, 1, 10, 0, 0, 2, 1, 187, 0xc0, 1];
    for width in WIDTHS {
        let payload = Written::new(width).raw(&ends).u32(100).u32(4);
        let KernelEvent::TcpReceiveV0(tcp) = payload.decode(TCP_IP, 11, 0) else { panic!() };
        assert_eq!((tcp.remote, tcp.remote_port, tcp.pid), (Ipv4Addr::new(10, 0, 0, 1), Port(443), Pid(4)));
        let payload = Written::new(width).u32(4).u32(100).raw(&ends).u32(7).u32(8);
        let KernelEvent::TcpReceive(tcp) = payload.decode(TCP_IP, 11, 1) else { panic!() };
        assert_eq!((tcp.connection_v1, tcp.sequence, tcp.connection), (Some(7), 8, None));
        let payload = Written::new(width).u32(4).u32(100).raw(&ends).u32(8).pointer(7);
        let KernelEvent::TcpReceive(tcp) = payload.decode(TCP_IP, 11, 2) else { panic!() };
        assert_eq!((tcp.connection_v1, tcp.sequence, tcp.connection), (None, 8, Some(Pointer(7))));
        assert_eq!((tcp.local, tcp.local_port, tcp.size), (Ipv4Addr::new(10, 0, 0, 2), Port(0xc001), 100));
    }
}

/// `CPU_CONFIG_RECORD` of an ARM64 machine, in Windows' own alignment.
#[test]
fn the_processor_is_told_behind_what_is_documented() {
    for (width, size) in [(PointerSize::Bits32, 820), (PointerSize::Bits64, 828)] {
        let numbers = [2400, 8, 16_384, 4096, 65_536].into_iter().fold(Written::new(width), Written::u32);
        let names = numbers.raw(&[0; 2 * 256]).raw(&[0; 2 * 134]);
        let whole = names.pointer(0).pointer(0x7fff_fffe_ffff).raw(&[12, 0, 8, 0, 3, 0, 1, 0]).u32(2133);
        assert_eq!(whole.bytes.len(), size);
        assert!(matches!(whole.decode(SYSTEM_CONFIG, 10, 3), KernelEvent::Cpu(cpu) if cpu.processors == 8));
        assert_eq!(processor_architecture(&whole.record(SYSTEM_CONFIG, 10, 3)), Some(12));
        assert_eq!(processor_architecture(&whole.record(SYSTEM_CONFIG, 10, 2)), None);
        assert_eq!(processor_architecture(&whole.record(SYSTEM_CONFIG, 11, 3)), None);
        let cut = Written { bytes: whole.bytes[..size - 11].to_vec(), pointer: width };
        assert_eq!(processor_architecture(&cut.record(SYSTEM_CONFIG, 10, 3)), None);
    }
}

/// An error says what it is of, and where.
#[test]
fn a_cut_is_told() {
    let payload = Written::new(PointerSize::Bits64).pointer(KEY).u32(4).u32(0).u32(0).u32(0).user();
    let error = KernelEvent::decode(&payload.record(PROCESS, 1, 2)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "event Process/Start, version 2: field ImageFileName at byte 52 of 52: no NUL ends its text"
    );
}

/// After the manifest as Windows 10 and 11 have it: with numbers that are not used again, tokens, and a label of 12 or 16 bytes.
#[test]
fn processes_of_the_kernels_manifest() {
    const LABEL: [u8; 12] = [1, 1, 0, 0, 0, 0, 0, 16, 0, 48, 0, 0];
    const LONG: [u8; 16] = [1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 32, 2, 0, 0];
    let decode = |written: &Written, id: u16, version: u8| {
        let mut record = written.record(KERNEL_PROCESS, 0, version);
        (record.schema, record.descriptor.id) = (Schema::Manifest, id);
        WindowsEvent::decode(&record).map(|event| event.map(|event| event.shown()))
    };
    let of = |shown: &[(&'static str, String)], name: &str| {
        shown.iter().find(|(own, _)| *own == name).map(|(_, value)| value.clone())
    };
    for (version, label, shown_label) in [(3, &LABEL[..], "S-1-16-12288"), (4, &LONG[..], "S-1-5-32-544")] {
        let start = Written::new(PointerSize::Bits64).u32(4321);
        let start = start.raw(&7_u64.to_le_bytes()).raw(&133_485_408_001_234_567_u64.to_le_bytes());
        let start = start.u32(1234).raw(&6_u64.to_le_bytes()).u32(2).u32(1).u32(3).u32(1).raw(label);
        let start = start.wide(r"\Device\HarddiskVolume4\cmd.exe").u32(8).u32(9).wide("").wide("App");
        let start = if version > 3 { start.u32(77) } else { start };
        let shown = decode(&start, 1, version).unwrap().unwrap();
        for (name, value) in [
            ("ProcessID", "4321"),
            ("ProcessSequenceNumber", "7"),
            ("CreateTime", "2024-01-01T00:00:00.1234567Z"),
            ("ParentProcessID", "1234"),
            ("ParentProcessSequenceNumber", "6"),
            ("SessionID", "2"),
            ("MandatoryLabel", shown_label),
            ("ImageName", r#""\\Device\\HarddiskVolume4\\cmd.exe""#),
            ("TimeDateStamp", "9"),
            ("PackageRelativeAppId", "\"App\""),
        ] {
            assert_eq!(of(&shown, name).as_deref(), Some(value), "{name}");
        }
        assert_eq!(of(&shown, "SecurityMitigations"), (version > 3).then(|| "77".to_owned()));
        assert_eq!(decode(&start, 1, 5), Ok(None), "nobody knows what that has");
    }
    let stop = Written::new(PointerSize::Bits64).u32(4321).raw(&7_u64.to_le_bytes()).raw(&[0; 16]);
    let stop = stop.u32(0xc000_0005).raw(&[0; 8 + 16 + 8 + 5 * 4]).raw(b"cmd.exe\0");
    let shown = decode(&stop, 2, 2).unwrap().unwrap();
    assert_eq!(of(&shown, "ExitCode").as_deref(), Some("3221225477"));
    assert_eq!(of(&shown, "ImageName").as_deref(), Some("\"cmd.exe\""));
    assert_eq!(decode(&stop, 2, 3), Ok(None));
}
