//! jitdump: the files in which runtimes tell of the code that they made, when, and from which lines of the source.
//!
//! In: a file, and the addresses that are of interest. Out: for each of these all code that ever held it, in the order of time, and
//! on demand its name and lines. Format: `tools/perf/Documentation/jitdump-specification.txt` of Linux, version 1.
//!
//! ```text
//! header: magic, version, size, machine, -, pid: u32; time, flags: u64
//! record: id, size: u32; time: u64; then by id
//!   0 load   pid, tid: u32; -, address, size, index: u64; name\0; code
//!   1 move   pid, tid: u32; -, from, to, size, index: u64
//!   2 lines  address, count: u64; { address: u64; line, column: u32; file\0 }     of the next code that is loaded
//!   3 close
//!   4 rules for unwinding, which are not read
//! ```
//!
//! A file is written while the program runs: it ends with the last record that is whole.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use crate::table::Table;
use collector_common::ids::Nanos;
use object::{Endian as _, Endianness};

const MAGIC: u32 = 0x4a69_5444;
const VERSION: u32 = 1;
const HEADER: u64 = 40;
const PREFIX: u64 = 16;
const LOAD: u32 = 0;
const MOVE: u32 = 1;
const LINES: u32 = 2;
const CLOSE: u32 = 3;

/// Sizes of the fixed parts behind the prefix.
const LOAD_FIXED: u64 = 40;
const MOVE_FIXED: u64 = 48;
const LINES_FIXED: u64 = 16;

/// Header flag: times are a counter of the processor's, which no sample has.
const OF_PROCESSOR: u64 = 1;

/// Pieces of code that are known of at most, and pairs of a piece and an address of interest that it holds.
const MOST_CODES: usize = 1 << 20;
const MOST_PAIRS: usize = 1 << 22;

/// Bytes of a name, or of a file's, that are read, and bytes of lines.
const MOST_OF_NAME: u64 = 4 << 10;
const MOST_OF_LINES: u64 = 16 << 20;

/// Bytes of lines that are read of one file: code that was moved has those that it had before.
const MOST_OF_ALL_LINES: u64 = 256 << 20;

/// Addresses of lines are those that they have in an ELF file of the function alone, behind its header: V8 and LLVM add its size,
/// others do not.
const ELF_HEADER: u64 = 0x40;

/// Instead of the name of a file: the same as before.
const SAME_FILE: &[u8] = &[0xff];

/// Why a file could not be read, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum JitDumpError {
    /// Reading failed.
    #[error("reading failed: {0}")]
    Read(#[from] io::Error),
    /// It is something else.
    #[error("it begins with {magic:#010x}, which is no jitdump's")]
    Magic {
        /// Its first bytes.
        magic: u32,
    },
    /// It is of a version that is not known.
    #[error("it is a jitdump of version {version}, not {VERSION}")]
    Version {
        /// Which.
        version: u32,
    },
    /// A header or record claims a size that it can't have.
    #[error("what begins at byte {at} claims {size} bytes")]
    Size {
        /// Where it begins.
        at: u64,
        /// What it claims.
        size: u64,
    },
    /// There is more code than any runtime makes.
    #[error(
        "it has more than {MOST_CODES} functions, or too many of one address: byte {at} is the first that was not read"
    )]
    TooMany {
        /// The first byte that was not read.
        at: u64,
    },
}

/// A piece of code at the place where it lay for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitCode {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// When it was made, or moved here.
    pub since: Nanos,
    /// When it was moved away.
    pub until: Nanos,
    /// Where its name is in the file.
    name_at: u64,
    /// How long that may be.
    name_room: u64,
    /// Where its lines are in the file, and how long those are; 0 for none.
    lines_at: u64,
    lines_len: u64,
}

/// Where an address is in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitLine {
    /// The file as it was told.
    pub file: String,
    /// From 1; 0 where not known.
    pub line: u32,
    /// From 1; 0 where not known.
    pub column: u32,
}

/// A jitdump, as far as it is about the addresses of interest.
#[derive(Debug)]
pub struct JitDump<F> {
    file: Reader<F>,
    codes: Vec<JitCode>,
    /// Positions of addresses of interest and of codes that hold them, sorted by address, then time.
    pairs: Vec<(u32, u32)>,
    has_system_clock: bool,
    /// What is to be taken off addresses of lines.
    skew: u64,
    /// Bytes of lines that may still be read.
    lines_left: u64,
    damage: Option<JitDumpError>,
}

impl<F: Read + Seek> JitDump<F> {
    /// Reads what a file tells of the `wanted` addresses, which are sorted.
    ///
    /// # Errors
    /// When it is no jitdump. One that is damaged is read up to there: see [`Self::damage`].
    pub fn read(file: F, wanted: &[u64]) -> Result<Self, JitDumpError> {
        let mut file = Reader::new(file)?;
        let has_system_clock = file.header()? & OF_PROCESSOR == 0;
        let mut reading = Reading::default();
        let damage = reading.records(&mut file, wanted).err();
        let Reading { codes, mut pairs, lines_at_start, .. } = reading;
        pairs.sort_by_key(|&(position, code)| {
            (position, codes.get(code as usize).map(|code| code.since), code)
        });
        let skew = if lines_at_start == Some(true) { 0 } else { ELF_HEADER };
        Ok(Self { file, codes, pairs, has_system_clock, skew, lines_left: MOST_OF_ALL_LINES, damage })
    }

    /// Whether times are those of the system's monotonic clock, not of a counter.
    pub const fn has_system_clock(&self) -> bool {
        self.has_system_clock
    }

    /// Why reading ended before the file does.
    pub const fn damage(&self) -> Option<&JitDumpError> {
        self.damage.as_ref()
    }

    /// Codes that held the wanted address at a position, oldest first.
    pub fn codes_at(&self, position: usize) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let first = self.pairs.partition_point(|&(at, _)| (at as usize) < position);
        let pairs = self.pairs.get(first..).unwrap_or_default();
        let count = pairs.partition_point(|&(at, _)| at as usize == position);
        pairs.iter().take(count).map(|&(_, code)| code)
    }

    /// The code at a position.
    pub fn code(&self, code: u32) -> Option<&JitCode> {
        self.codes.get(code as usize)
    }

    /// The name of a code, as it was told.
    ///
    /// # Errors
    /// When reading fails.
    pub fn name(&mut self, code: u32) -> Result<String, JitDumpError> {
        let Some(&JitCode { name_at, name_room, .. }) = self.code(code) else { return Ok(String::new()) };
        let mut bytes = self.file.bytes(name_at, name_room.min(MOST_OF_NAME))?;
        bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()));
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Where addresses of a code are in the source. Of lines of which some are not the code's, none is believed.
    ///
    /// # Errors
    /// When reading fails.
    pub fn lines(&mut self, code: u32, addresses: &[u64]) -> Result<Vec<Option<JitLine>>, JitDumpError> {
        let mut found = vec![None; addresses.len()];
        let most = MOST_OF_LINES.min(self.lines_left);
        let Some(&code) = self.code(code).filter(|code| (1..=most).contains(&code.lines_len)) else {
            return Ok(found);
        };
        self.lines_left -= code.lines_len;
        let bytes = self.file.bytes(code.lines_at, code.lines_len)?;
        let Some(entries) = self.entries(&bytes, code.end - code.start) else { return Ok(found) };
        for (address, found) in addresses.iter().zip(&mut found) {
            let offset = address.wrapping_sub(code.start);
            let before = entries.partition_point(|entry| entry.offset <= offset);
            *found = before.checked_sub(1).and_then(|at| entries.get(at)).map(|entry| JitLine {
                file: String::from_utf8_lossy(entry.file).into_owned(),
                line: entry.line,
                column: entry.column,
            });
        }
        Ok(found)
    }

    /// Lines sorted by offset in the code, which is `size` long; `None` if they are damaged.
    fn entries<'a>(&self, bytes: &'a [u8], size: u64) -> Option<Vec<Entry<'a>>> {
        let order = self.file.order;
        let (start, rest) = bytes.split_first_chunk()?;
        let (count, mut rest) = rest.split_first_chunk()?;
        let (start, count) = (order.read_u64(*start), order.read_u64(*count));
        let mut entries: Vec<Entry<'_>> = Vec::new();
        for _ in 0..count {
            let (address, after) = rest.split_first_chunk()?;
            let (line, after) = after.split_first_chunk()?;
            let (column, after) = after.split_first_chunk()?;
            let len = after.iter().position(|&byte| byte == 0)?;
            let (name, after) = after.split_at(len);
            rest = &after[1..];
            let file =
                if name == SAME_FILE { entries.last().map_or(&[][..], |last| last.file) } else { name };
            let offset = order.read_u64(*address).checked_sub(start)?.checked_sub(self.skew)?;
            if offset > size || file.len() as u64 > MOST_OF_NAME {
                return None;
            }
            entries.push(Entry {
                offset,
                line: order.read_u32(*line),
                column: order.read_u32(*column),
                file,
            });
        }
        entries.sort_by_key(|entry| entry.offset);
        Some(entries)
    }
}

/// A line of the source, and where its code begins.
struct Entry<'a> {
    offset: u64,
    line: u32,
    column: u32,
    file: &'a [u8],
}

/// What has been read so far.
#[derive(Default)]
struct Reading {
    codes: Vec<JitCode>,
    pairs: Vec<(u32, u32)>,
    /// Where the code of an index is now.
    by_index: Table<u64, JitCode>,
    /// The last of the codes with that index, if it holds an address of interest.
    kept: Table<u64, u32>,
    /// Lines that were told last: the code's address, where they are in the file, and how long they are.
    lines: Option<(u64, u64, u64)>,
    /// Whether any lines begin before the end of an ELF file's header; `None` where there are none.
    lines_at_start: Option<bool>,
}

impl Reading {
    fn records<F: Read + Seek>(&mut self, file: &mut Reader<F>, wanted: &[u64]) -> Result<(), JitDumpError> {
        while file.left() >= PREFIX {
            let at = file.at;
            let [id, size] = file.u32s()?;
            let time = Nanos(file.u64()?);
            let body =
                u64::from(size).checked_sub(PREFIX).ok_or(JitDumpError::Size { at, size: size.into() })?;
            if body > file.left() || id == CLOSE {
                break;
            }
            let least = match id {
                LOAD => LOAD_FIXED + 1,
                MOVE => MOVE_FIXED,
                LINES => LINES_FIXED,
                _ => 0,
            };
            if body < least {
                return Err(JitDumpError::Size { at, size: size.into() });
            }
            if self.by_index.len().max(self.codes.len()) >= MOST_CODES || self.pairs.len() >= MOST_PAIRS {
                return Err(JitDumpError::TooMany { at });
            }
            let end = at + u64::from(size);
            match id {
                LOAD => self.load(file, time, end, wanted)?,
                MOVE => self.moved(file, time, wanted)?,
                LINES => self.lines(file, body)?,
                _ => {}
            }
            file.skip_to(end)?;
        }
        Ok(())
    }

    fn load<F: Read + Seek>(
        &mut self,
        file: &mut Reader<F>,
        since: Nanos,
        end: u64,
        wanted: &[u64],
    ) -> Result<(), JitDumpError> {
        let [_pid, _tid] = file.u32s()?;
        let [_, start, size, index] = file.u64s()?;
        let lines = self.lines.take().filter(|&(of, ..)| of == start);
        let (lines_at, lines_len) = lines.map_or((0, 0), |(_, at, len)| (at, len));
        let code = JitCode {
            start,
            end: start.saturating_add(size),
            since,
            until: Nanos(u64::MAX),
            name_at: file.at,
            // The code is behind it, unless it was left out.
            name_room: (end - file.at).checked_sub(size).filter(|&room| room > 0).unwrap_or(end - file.at),
            lines_at,
            lines_len,
        };
        self.add(code, index, wanted);
        Ok(())
    }

    fn moved<F: Read + Seek>(
        &mut self,
        file: &mut Reader<F>,
        time: Nanos,
        wanted: &[u64],
    ) -> Result<(), JitDumpError> {
        let [_pid, _tid] = file.u32s()?;
        let [_, from, to, _, index] = file.u64s()?;
        let Some(&code) = self.by_index.get(&index).filter(|code| code.start == from) else { return Ok(()) };
        if let Some(code) = self.kept.get(&index).and_then(|&at| self.codes.get_mut(at as usize)) {
            code.until = time;
        }
        let end = to.saturating_add(code.end - code.start);
        self.add(JitCode { start: to, end, since: time, ..code }, index, wanted);
        Ok(())
    }

    fn add(&mut self, code: JitCode, index: u64, wanted: &[u64]) {
        self.by_index.insert(index, code);
        let first = wanted.partition_point(|&address| address < code.start);
        let behind = wanted.partition_point(|&address| address < code.end);
        if first >= behind {
            self.kept.remove(&index);
            return;
        }
        let at = self.codes.len() as u32;
        self.kept.insert(index, at);
        self.codes.push(code);
        let room = MOST_PAIRS.saturating_sub(self.pairs.len());
        self.pairs.extend((first..behind).take(room).map(|position| (position as u32, at)));
    }

    fn lines<F: Read + Seek>(&mut self, file: &mut Reader<F>, body: u64) -> Result<(), JitDumpError> {
        let at = file.at;
        let [start, count] = file.u64s()?;
        self.lines = Some((start, at, body));
        if count > 0 && body >= LINES_FIXED + 8 {
            let is_at_start = file.u64()?.wrapping_sub(start) < ELF_HEADER;
            self.lines_at_start = Some(self.lines_at_start.unwrap_or(false) | is_at_start);
        }
        Ok(())
    }
}

/// Numbers and bytes at places in a file.
#[derive(Debug)]
struct Reader<F> {
    file: BufReader<F>,
    at: u64,
    /// As the file was long when reading began.
    len: u64,
    order: Endianness,
}

impl<F: Read + Seek> Reader<F> {
    fn new(mut file: F) -> io::Result<Self> {
        let len = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(0))?;
        Ok(Self { file: BufReader::with_capacity(64 << 10, file), at: 0, len, order: Endianness::Little })
    }

    /// Goes to the first record, and gives the flags.
    fn header(&mut self) -> Result<u64, JitDumpError> {
        let [magic] = self.u32s()?;
        self.order = match magic {
            MAGIC => Endianness::Little,
            _ if magic.swap_bytes() == MAGIC => Endianness::Big,
            _ => return Err(JitDumpError::Magic { magic }),
        };
        let [version, size, _machine, _, _pid] = self.u32s()?;
        if version != VERSION {
            return Err(JitDumpError::Version { version });
        }
        let [_time, flags] = self.u64s()?;
        if u64::from(size) < HEADER {
            return Err(JitDumpError::Size { at: 0, size: size.into() });
        }
        self.skip_to(size.into())?;
        Ok(flags)
    }

    fn left(&self) -> u64 {
        self.len.saturating_sub(self.at)
    }

    fn fixed<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn u32s<const N: usize>(&mut self) -> io::Result<[u32; N]> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.order.read_u32(self.fixed()?);
        }
        Ok(numbers)
    }

    fn u64s<const N: usize>(&mut self) -> io::Result<[u64; N]> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.u64()?;
        }
        Ok(numbers)
    }

    fn u64(&mut self) -> io::Result<u64> {
        Ok(self.order.read_u64(self.fixed()?))
    }

    /// Goes to a place that is not behind what follows.
    fn skip_to(&mut self, at: u64) -> io::Result<()> {
        self.file.seek_relative(at.wrapping_sub(self.at).cast_signed())?;
        self.at = at;
        Ok(())
    }

    /// Up to `len` bytes from a place on; fewer where the file ends.
    fn bytes(&mut self, at: u64, len: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(at))?;
        (&mut self.file).take(len).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;
