//! Real buffers again and again, each time with later times. In: an `.etl` file that is whole. Out: one as it could be.
//!
//! What it knows of the format it knows by itself: nothing here is the reader's.

/// Bytes of a buffer's header.
const HEADER: usize = 0x48;

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The buffers of a file.
fn buffers(file: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = file;
    std::iter::from_fn(move || {
        let (buffer, behind) =
            rest.split_at(if rest.is_empty() { return None } else { u32_at(rest, 0) as usize });
        rest = behind;
        Some(buffer)
    })
}

/// The same file without packed buffers.
pub(crate) fn unpacked(file: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for buffer in buffers(file) {
        let flags = u16_at(buffer, 0x34);
        if flags & 0x40 == 0 {
            out.extend(buffer);
            continue;
        }
        let used = u32_at(buffer, 0x30) as usize;
        let size = used.next_multiple_of(1 << 16);
        let begin = out.len();
        out.extend(&buffer[..HEADER]);
        out[begin..begin + 4].copy_from_slice(&(size as u32).to_le_bytes());
        out[begin + 0x34..begin + 0x36].copy_from_slice(&(flags & !0x40).to_le_bytes());
        unpack(&buffer[HEADER..], used - HEADER, &mut out);
        out.resize(begin + size, 0xff);
    }
    out
}

/// Plain LZ77 of [MS-XCA], step by step.
fn unpack(packed: &[u8], length: usize, out: &mut Vec<u8>) {
    let (mut at, mut half, end) = (0, None, out.len() + length);
    let mut next = |bytes: usize| {
        at += bytes;
        packed[at - bytes..at].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
    };
    loop {
        let flags = next(4);
        for bit in (0..32).rev() {
            if out.len() == end {
                return;
            }
            if flags >> bit & 1 == 0 {
                out.push(next(1) as u8);
                continue;
            }
            let word = next(2);
            let mut length = word & 7;
            if length == 7 {
                length = if let Some(upper) = half.take() {
                    upper
                } else {
                    let byte = next(1);
                    half = Some(byte >> 4);
                    byte & 15
                };
                if length == 15 {
                    length = match next(1) {
                        255 => match next(2) {
                            0 => next(4) - 22,
                            word => word - 22,
                        },
                        byte => byte,
                    } + 15;
                }
                length += 7;
            }
            for _ in 0..length + 3 {
                out.push(out[out.len() - (word >> 3) - 1]);
            }
        }
    }
}

/// Where the records of a buffer are, and where each has its time.
fn times(buffer: &[u8]) -> Vec<usize> {
    let (mut at, used, mut times) = (HEADER, u32_at(buffer, 0x30) as usize, Vec::new());
    while at < used && u32_at(buffer, at) != u32::MAX {
        let (size, time) = match buffer[at + 2] {
            1..=4 => (4, 16),
            16 | 17 => (4, 8),
            _ => (0, 16),
        };
        times.push(at + time);
        at += usize::from(u16_at(buffer, at + size)).next_multiple_of(8);
    }
    times
}

fn ticks_at(buffer: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(buffer[at..at + 8].try_into().unwrap())
}

/// How many records the first buffer has.
pub(crate) fn first_records(file: &[u8]) -> u64 {
    times(buffers(file).next().unwrap()).len() as u64
}

/// The first buffer, then the others so many times, each time later than all of the time before.
pub(crate) fn repeated(file: &[u8], rounds: usize) -> Vec<u8> {
    let first = buffers(file).next().unwrap();
    let all: Vec<(&[u8], Vec<usize>)> = buffers(file).skip(1).map(|buffer| (buffer, times(buffer))).collect();
    let ticks = || all.iter().flat_map(|(buffer, times)| times.iter().map(|at| ticks_at(buffer, *at)));
    let span = ticks().max().unwrap() - ticks().min().unwrap() + 1;
    let mut out = first.to_vec();
    for round in 0..rounds {
        for (buffer, times) in &all {
            let begin = out.len();
            out.extend(*buffer);
            for at in times {
                let later = ticks_at(buffer, *at) + span * round as i64;
                out[begin + at..begin + at + 8].copy_from_slice(&later.to_le_bytes());
            }
        }
    }
    out
}
