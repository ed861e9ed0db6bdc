//! A Parquet file from its first byte to its last: pages as they come, and behind them the footer that says where they are.
//!
//! Each column of a row group is a dictionary, where there is one, and a page. Pages are compressed by gzip, which readers have to know
//! and which needs no further library here. Field numbers are those of parquet.thrift.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::thrift::Message;
use super::values::{Encoded, Encoding, Meaning, Physical};

const MAGIC: &[u8; 4] = b"PAR1";
/// The version of the format: pages are of the first kind, encodings those of the second version.
const VERSION: i32 = 2;
/// `CompressionCodec`.
const GZIP: i32 = 2;
/// `PageType`.
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;

/// How often a part of the schema is there (`FieldRepetitionType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repetition {
    Required = 0,
    Optional = 1,
    Repeated = 2,
}

/// A part of the schema: a column, or a group of those that follow it. The first is the group of all.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) name: &'static str,
    /// None of that which holds all others.
    pub(super) repetition: Option<Repetition>,
    /// Of a column how it is stored.
    pub(super) physical: Option<Physical>,
    pub(super) meaning: Meaning,
    /// Of a group the number of its parts.
    pub(super) children: i32,
    pub(super) is_map: bool,
}

/// A column of a row group.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) path: Vec<&'static str>,
    pub(super) physical: Physical,
    /// Values, and places that have none.
    pub(super) count: u32,
    /// Places that have none.
    pub(super) nulls: u32,
    /// Which they are, as a page tells it.
    pub(super) levels: Vec<u8>,
    pub(super) encoded: Encoded,
}

/// Where a part of the file is, and how long: of headers and pages, uncompressed, and as it is.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    raw: u64,
    stored: u64,
}

/// A file on its way out.
pub(super) struct File<'a> {
    out: &'a mut dyn Write,
    position: u64,
    /// The row groups' part of the footer, and how many there are.
    groups: Vec<u8>,
    count: usize,
    rows: u64,
}

impl<'a> File<'a> {
    pub(super) fn begin(out: &'a mut dyn Write) -> io::Result<Self> {
        let mut file = Self { out, position: 0, groups: Vec::new(), count: 0, rows: 0 };
        file.write(MAGIC)?;
        Ok(file)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.position += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Writes a group of rows, column by column.
    pub(super) fn group(&mut self, rows: u32, chunks: impl Iterator<Item = Chunk>) -> io::Result<()> {
        let begin = self.position;
        let mut columns = Vec::new();
        let mut count = 0;
        let mut all = Sizes::default();
        for chunk in chunks {
            let sizes = self.chunk(&chunk, &mut columns)?;
            all = Sizes { raw: all.raw + sizes.raw, stored: all.stored + sizes.stored };
            count += 1;
        }
        Message::write(&mut self.groups, |group| {
            group.written(1, count, &columns);
            group.i64(2, all.raw as i64);
            group.i64(3, rows.into());
            group.i64(5, begin as i64);
            group.i64(6, all.stored as i64);
        });
        self.count += 1;
        self.rows += u64::from(rows);
        Ok(())
    }

    /// Writes a column's pages and appends what the footer has of it.
    fn chunk(&mut self, chunk: &Chunk, columns: &mut Vec<u8>) -> io::Result<Sizes> {
        let Chunk { encoded, .. } = chunk;
        let begin = self.position;
        let mut raw = 0;
        if let Some(entries) = &encoded.dictionary {
            raw += self.page(DICTIONARY_PAGE, &[&entries.bytes], |page| {
                page.message(7, |header| {
                    header.i32(1, entries.count as i32);
                    header.i32(2, Encoding::Plain as i32);
                });
            })?;
        }
        let data = self.position;
        raw += self.page(DATA_PAGE, &[&chunk.levels, &encoded.bytes], |page| {
            page.message(5, |header| {
                header.i32(1, chunk.count as i32);
                header.i32(2, encoded.encoding as i32);
                header.i32(3, Encoding::Runs as i32);
                header.i32(4, Encoding::Runs as i32);
            });
        })?;
        let sizes = Sizes { raw, stored: self.position - begin };
        let mut encodings = vec![encoded.encoding as i32, Encoding::Runs as i32];
        if encoded.dictionary.is_some() {
            encodings.push(Encoding::Plain as i32);
        }
        Message::write(columns, |column| {
            // Where a copy of what follows would be.
            column.i64(2, 0);
            column.message(3, |about| {
                about.i32(1, chunk.physical as i32);
                about.integers(2, &encodings);
                about.texts(3, &chunk.path);
                about.i32(4, GZIP);
                about.i64(5, chunk.count.into());
                about.i64(6, sizes.raw as i64);
                about.i64(7, sizes.stored as i64);
                about.i64(9, data as i64);
                if data > begin {
                    about.i64(11, begin as i64);
                }
                about.message(12, |statistics| {
                    statistics.i64(3, chunk.nulls.into());
                    if let Some([least, most]) = &encoded.bounds {
                        statistics.bytes(5, most);
                        statistics.bytes(6, least);
                    }
                });
            });
        });
        Ok(sizes)
    }

    /// Writes a page, with the header that `describe` ends. Out: its length with the header, uncompressed.
    fn page(
        &mut self,
        kind: i32,
        parts: &[&[u8]],
        describe: impl FnOnce(&mut Message<'_>),
    ) -> io::Result<u64> {
        let raw: usize = parts.iter().map(|part| part.len()).sum();
        let length =
            |bytes: usize| i32::try_from(bytes).map_err(|_| io::Error::other("a page is above 2 GiB"));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        parts.iter().try_for_each(|part| encoder.write_all(part))?;
        let packed = encoder.finish()?;
        let lengths = [length(raw)?, length(packed.len())?];
        let mut header = Vec::new();
        Message::write(&mut header, |page| {
            page.i32(1, kind);
            page.i32(2, lengths[0]);
            page.i32(3, lengths[1]);
            describe(page);
        });
        self.write(&header)?;
        self.write(&packed)?;
        Ok((header.len() + raw) as u64)
    }

    /// Writes the footer.
    pub(super) fn finish(mut self, schema: &[Element], facts: &[(&str, String)]) -> io::Result<()> {
        let mut footer = Vec::new();
        Message::write(&mut footer, |file| {
            file.i32(1, VERSION);
            file.messages(2, schema.iter(), |out, element| element.write(out));
            file.i64(3, self.rows as i64);
            file.written(4, self.count, &self.groups);
            file.messages(5, facts.iter(), |out, (key, value)| {
                out.bytes(1, key.as_bytes());
                out.bytes(2, value.as_bytes());
            });
            file.bytes(6, concat!("collector version ", env!("CARGO_PKG_VERSION")).as_bytes());
            // Bounds are by the order of each column's type.
            let leaves = schema.iter().filter(|element| element.physical.is_some()).count();
            file.messages(7, 0..leaves, |out, _| out.message(1, |_| {}));
        });
        self.write(&footer)?;
        self.write(&(footer.len() as u32).to_le_bytes())?;
        self.write(MAGIC)?;
        self.out.flush()
    }
}

impl Element {
    fn write(&self, out: &mut Message<'_>) {
        if let Some(physical) = self.physical {
            out.i32(1, physical as i32);
        }
        if let Some(repetition) = self.repetition {
            out.i32(3, repetition as i32);
        }
        out.bytes(4, self.name.as_bytes());
        if self.physical.is_none() {
            out.i32(5, self.children);
        }
        // What it means is told twice: as old readers know it (`ConvertedType`), and as new ones do (`LogicalType`).
        match (self.is_map, self.meaning) {
            (true, _) => {
                out.i32(6, 1);
                out.message(10, |kind| kind.message(2, |_| {}));
            }
            (false, Meaning::Text) => {
                out.i32(6, 0);
                out.message(10, |kind| kind.message(1, |_| {}));
            }
            (false, Meaning::Unsigned) => {
                out.i32(6, 14);
                out.message(10, |kind| {
                    kind.message(10, |integer| {
                        integer.byte(1, 64);
                        integer.flag(2, false);
                    });
                });
            }
            (false, Meaning::Time) => out.message(10, |kind| {
                kind.message(8, |time| {
                    time.flag(1, true);
                    time.message(2, |unit| unit.message(3, |_| {}));
                });
            }),
            (false, Meaning::Plain) => {}
        }
    }
}
