//! A file that is larger than memory should hold.

use std::io::{self, Read, Seek, SeekFrom};

use windows_etw::etl::EtlFile;

use crate::written::{Buffer, Trace, event};

/// Bytes of a buffer, the largest that there are.
const BUFFER: u64 = 16 << 20;

/// A file of 7.5 GiB of which most is padding, that is made while it is read. The buffers of two CPUs are in it by turns, the
/// later half of them first.
struct Large {
    first: Vec<u8>,
    buffers: u64,
    at: u64,
}

impl Large {
    fn new(buffers: u64) -> Self {
        let trace = Trace { buffers_written: buffers as u32 + 1, ..Trace::default() };
        Self { first: trace.first_buffer(), buffers, at: 0 }
    }

    /// What is not padding of a buffer.
    fn buffer(&self, number: u64) -> Vec<u8> {
        let order = (number + self.buffers / 2) % self.buffers;
        let ticks = 2000 + order as i64 / 2 * 100;
        let records = (0..20).map(|record| event(19, 0, ticks + 5 * record, b"", &number.to_le_bytes()));
        let size = 8192;
        let mut bytes = Buffer { size, cpu: (number % 2) as u16, ..Buffer::default() }
            .bytes(&records.collect::<Vec<_>>());
        bytes[..4].copy_from_slice(&(BUFFER as u32).to_le_bytes());
        bytes
    }

    fn length(&self) -> u64 {
        self.first.len() as u64 + self.buffers * BUFFER
    }
}

impl Read for Large {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.length().saturating_sub(self.at);
        let (bytes, at, end) = if let Some(in_buffers) = self.at.checked_sub(self.first.len() as u64) {
            let bytes = if left == 0 { Vec::new() } else { self.buffer(in_buffers / BUFFER) };
            (bytes, in_buffers % BUFFER, BUFFER)
        } else {
            (self.first.clone(), self.at, self.first.len() as u64)
        };
        let length = left.min(end - at).min(into.len() as u64) as usize;
        for (offset, byte) in into[..length].iter_mut().enumerate() {
            *byte = bytes.get(at as usize + offset).copied().unwrap_or(0xff);
        }
        self.at += length as u64;
        Ok(length)
    }
}

impl Seek for Large {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::End(behind) => self.length().saturating_add_signed(behind),
            SeekFrom::Current(behind) => self.at.saturating_add_signed(behind),
        };
        Ok(self.at)
    }
}

#[test]
fn a_file_larger_than_memory() {
    let large = Large::new(480);
    assert!(large.length() > 7 << 30);
    let mut records = 0;
    let used = allocation_counter::measure(|| {
        let mut file = EtlFile::open(large).unwrap();
        let mut last = i64::MIN;
        while let Some(record) = file.next_record().unwrap() {
            assert!(last <= record.ticks);
            last = record.ticks;
            records += 1;
        }
        assert!(file.losses().is_none(), "{:?}", file.losses());
    });
    assert_eq!(records, 1 + 480 * 20);
    assert!(used.bytes_max < 256 << 10, "{used:?}");
}
