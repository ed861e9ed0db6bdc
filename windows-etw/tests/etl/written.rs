//! `.etl` files as they are documented (`ntwmi.h`, `evntrace.h`, `evntcons.h`): bytes of buffers and records, for tests.

use windows_etw::record::PointerSize;

/// The time of a file's first record.
pub(crate) const TICKS: i64 = 1000;

/// Bytes of a buffer's header.
const HEADER: usize = 0x48;

/// Of a file's header, what tests vary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trace {
    pub(crate) pointer_size: PointerSize,
    pub(crate) buffer_size: u32,
    /// `ReservedFlags`.
    pub(crate) clock: u32,
    pub(crate) frequency: u64,
    pub(crate) mhz: u32,
    /// A `FILETIME`.
    pub(crate) start: u64,
    pub(crate) mode: u32,
    pub(crate) buffers_written: u32,
    pub(crate) events_lost: u32,
    pub(crate) buffers_lost: u32,
}

impl Default for Trace {
    fn default() -> Self {
        Self {
            pointer_size: PointerSize::Bits64,
            buffer_size: 512,
            clock: 1,
            frequency: 10_000_000,
            mhz: 3000,
            start: 132_404_548_206_200_000,
            mode: 1,
            buffers_written: 0,
            events_lost: 0,
            buffers_lost: 0,
        }
    }
}

impl Trace {
    /// `TRACE_LOGFILE_HEADER` with the names `session` and `file`.
    pub(crate) fn payload(self) -> Vec<u8> {
        let is_wide = self.pointer_size == PointerSize::Bits64;
        let mut out = Vec::new();
        let mut words = |words: &[u32]| words.iter().for_each(|word| out.extend(word.to_le_bytes()));
        let end = self.start + 50_000_000;
        words(&[self.buffer_size, u32::from_le_bytes([10, 0, 1, 5]), 19_045, 8]);
        words(&[end as u32, (end >> 32) as u32, 156_250, 500, self.mode, self.buffers_written, 1]);
        words(&[if is_wide { 8 } else { 4 }, self.events_lost, self.mhz]);
        out.resize(if is_wide { 0x48 } else { 0x40 }, 0);
        let zone = out.len();
        out.extend((-60_i32).to_le_bytes());
        out.extend(utf16("here"));
        out.resize(zone + 0x54, 0);
        out.extend(1_i32.to_le_bytes());
        out.extend(utf16("there"));
        out.resize(zone + 0xa8, 0);
        out.extend((-61_i32).to_le_bytes());
        // The next number is one of 64 bits.
        out.resize(out.len().next_multiple_of(8), 0);
        for number in [self.start - 7, self.frequency, self.start] {
            out.extend(number.to_le_bytes());
        }
        out.extend(self.clock.to_le_bytes());
        out.extend(self.buffers_lost.to_le_bytes());
        out.extend(utf16("session"));
        out.extend(utf16("file"));
        out
    }

    /// The first buffer.
    pub(crate) fn first_buffer(self) -> Vec<u8> {
        let kind = if self.pointer_size == PointerSize::Bits64 { 2 } else { 1 };
        let record = System { kind, ..System::default() }.bytes(TICKS, &self.payload());
        Buffer { kind: 4, size: self.buffer_size.max(0x280), ..Buffer::default() }.bytes(&[record])
    }

    /// A file with these buffers.
    pub(crate) fn file(self, buffers: &[Vec<u8>]) -> Vec<u8> {
        let written = Self { buffers_written: buffers.len() as u32 + 1, ..self };
        [written.first_buffer(), buffers.concat()].concat()
    }
}

/// With its zero.
pub(crate) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// `WMI_BUFFER_HEADER`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    pub(crate) size: u32,
    pub(crate) cpu: u16,
    pub(crate) flags: u16,
    pub(crate) kind: u16,
}

impl Default for Buffer {
    fn default() -> Self {
        Self { size: 512, cpu: 0, flags: 0x20, kind: 0 }
    }
}

impl Buffer {
    /// As it is.
    pub(crate) fn bytes(self, records: &[Vec<u8>]) -> Vec<u8> {
        let records = aligned(records);
        let used = HEADER + records.len();
        let mut out = self.header(self.size, used as u32);
        out.extend(records);
        assert!(out.len() <= self.size as usize, "{} bytes do not fit", out.len());
        out.resize(self.size as usize, 0xff);
        out
    }

    /// Packed: every second byte that is like the one before it goes with it, up to ten; so there are lengths of both widths.
    pub(crate) fn packed(self, records: &[Vec<u8>]) -> Vec<u8> {
        let records = aligned(records);
        let stored = packed(&records);
        let packed = Self { flags: self.flags | 0x40, ..self };
        let mut out = packed.header((HEADER + stored.len()) as u32, (HEADER + records.len()) as u32);
        out.extend(stored);
        out
    }

    fn header(self, size: u32, used: u32) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(size.to_le_bytes());
        out.extend(used.to_le_bytes());
        out.resize(0x28, 0);
        out.extend(self.cpu.to_le_bytes());
        out.extend(7_u16.to_le_bytes());
        out.extend(3_u32.to_le_bytes());
        out.extend(used.to_le_bytes());
        out.extend(self.flags.to_le_bytes());
        out.extend(self.kind.to_le_bytes());
        out.resize(HEADER, 0xee);
        out
    }
}

fn aligned(records: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for record in records {
        out.extend(record);
        out.resize(out.len().next_multiple_of(8), 0);
    }
    out
}

/// Plain LZ77 of [MS-XCA], of rows of one byte alone.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut flags_at, mut left, mut flags) = (vec![0; 4], 0, 32, 0_u32);
    let mut at = 0;
    while at < bytes.len() {
        if left == 0 {
            out.splice(flags_at..flags_at + 4, flags.to_le_bytes());
            (flags_at, left, flags) = (out.len(), 32, 0);
            out.extend([0; 4]);
        }
        left -= 1;
        let row = bytes[at..].iter().take_while(|byte| at > 0 && **byte == bytes[at - 1]).count().min(9);
        if row < 3 {
            out.push(bytes[at]);
            at += 1;
        } else {
            flags |= 1 << left;
            out.extend((row as u16 - 3).to_le_bytes());
            at += row;
        }
    }
    // Behind the end all flags are 1.
    flags |= (1_u64 << left).wrapping_sub(1) as u32;
    out.splice(flags_at..flags_at + 4, flags.to_le_bytes());
    out
}

/// `SYSTEM_TRACE_HEADER` in its long (1, 2) and short (3, 4) form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct System {
    pub(crate) kind: u8,
    pub(crate) version: u16,
    pub(crate) group: u8,
    pub(crate) opcode: u8,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
}

impl Default for System {
    fn default() -> Self {
        Self { kind: 2, version: 2, group: 0, opcode: 0, pid: 5, tid: 6 }
    }
}

impl System {
    pub(crate) fn bytes(self, ticks: i64, payload: &[u8]) -> Vec<u8> {
        let is_short = self.kind >= 3;
        let header = if is_short { 0x18 } else { 0x20 };
        let mut out = hook(self.version, self.kind, header + payload.len(), self.opcode, self.group);
        out.extend(self.tid.to_le_bytes());
        out.extend(self.pid.to_le_bytes());
        out.extend(ticks.to_le_bytes());
        out.resize(header, 0x77);
        out.extend(payload);
        out
    }
}

/// `PERFINFO_TRACE_HEADER`, 16 or 17.
pub(crate) fn perf_info(
    kind: u8,
    version: u16,
    (group, opcode): (u8, u8),
    ticks: i64,
    behind: &[u8],
) -> Vec<u8> {
    let mut out = hook(version, kind, 16 + behind.len(), opcode, group);
    out.extend(ticks.to_le_bytes());
    out.extend(behind);
    out
}

fn hook(version: u16, kind: u8, size: usize, opcode: u8, group: u8) -> Vec<u8> {
    let mut out = version.to_le_bytes().to_vec();
    out.extend([kind, 0xc0]);
    out.extend((size as u16).to_le_bytes());
    out.extend([opcode, group]);
    out
}

/// `EVENT_HEADER`, 18 or 19, with all of the descriptor: id 0x102, version 3, channel 4, level 5, opcode 6, task 0x708, keyword
/// `0x90a_0b0c`; process 1, thread 2.
pub(crate) fn event(kind: u8, flags: u16, ticks: i64, extended: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = ((0x50 + extended.len() + payload.len()) as u16).to_le_bytes().to_vec();
    out.extend([kind, 0xc0]);
    out.extend(flags.to_le_bytes());
    out.extend([0, 0]);
    out.extend(2_u32.to_le_bytes());
    out.extend(1_u32.to_le_bytes());
    out.extend(ticks.to_le_bytes());
    out.extend(PROVIDER_IN_FILE);
    out.extend(0x102_u16.to_le_bytes());
    out.extend([3, 4, 5, 6]);
    out.extend(0x708_u16.to_le_bytes());
    out.extend(0x090a_0b0c_u64.to_le_bytes());
    out.extend([0x77; 8]);
    out.extend(ACTIVITY_IN_FILE);
    out.extend(extended);
    out.extend(payload);
    out
}

/// The provider of [`event`] and [`classic`] as it is printed, and as it stands in a file.
pub(crate) const PROVIDER: &str = "00112233-4455-6677-8899-aabbccddeeff";
pub(crate) const PROVIDER_IN_FILE: [u8; 16] =
    [0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];
/// The activity of [`event`], likewise.
pub(crate) const ACTIVITY: &str = "d0d1d2d3-d4d5-d6d7-d8d9-dadbdcdddedf";
pub(crate) const ACTIVITY_IN_FILE: [u8; 16] =
    [0xd3, 0xd2, 0xd1, 0xd0, 0xd5, 0xd4, 0xd7, 0xd6, 0xd8, 0xd9, 0xda, 0xdb, 0xdc, 0xdd, 0xde, 0xdf];

/// An extended item.
pub(crate) fn item(kind: u16, has_next: bool, data: &[u8]) -> Vec<u8> {
    let size = (8 + data.len()).next_multiple_of(8);
    let mut out = Vec::new();
    for number in [size as u16, kind, u16::from(has_next), data.len() as u16] {
        out.extend(number.to_le_bytes());
    }
    out.extend(data);
    out.resize(size, 0);
    out
}

/// `EVENT_TRACE_HEADER`, 10 or 20, with opcode 1, level 2, version `0x0403`; process 1, thread 2. `behind` is what an instance
/// (11, 21) goes on with, and the payload.
pub(crate) fn classic(kind: u8, ticks: i64, behind: &[u8]) -> Vec<u8> {
    let mut out = ((0x30 + behind.len()) as u16).to_le_bytes().to_vec();
    out.extend([kind, 0xc0, 1, 2, 3, 4]);
    out.extend(2_u32.to_le_bytes());
    out.extend(1_u32.to_le_bytes());
    out.extend(ticks.to_le_bytes());
    out.extend(PROVIDER_IN_FILE);
    out.extend([0x77; 8]);
    out.extend(behind);
    out
}

/// `MESSAGE_TRACE_HEADER` of message 9.
pub(crate) fn message(flags: u16, behind: &[u8]) -> Vec<u8> {
    let mut out = ((8 + behind.len()) as u16).to_le_bytes().to_vec();
    out.extend([0, 0x90, 9, 0]);
    out.extend(flags.to_le_bytes());
    out.extend(behind);
    out
}
