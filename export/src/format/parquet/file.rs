//! A Parquet file from its first byte to its last, as the crate `parquet` writes it: groups of rows, and behind them the footer.
//!
//! The crate wants a `Write` that is `Send`, which a format's is not: each group goes through memory.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, GzipLevel, Type as Physical};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

/// A group of rows on its way out.
pub(super) type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

/// A dictionary of more bytes would be given up, and each text be there as often as rows have it. A group has fewer of them.
const LARGEST_DICTIONARY: usize = 1 << 30;

/// A file on its way out.
pub(super) struct File<'a> {
    out: &'a mut dyn Write,
    writer: SerializedFileWriter<Vec<u8>>,
}

impl<'a> File<'a> {
    pub(super) fn begin(out: &'a mut dyn Write, columns: Vec<TypePtr>) -> io::Result<Self> {
        let schema = Type::group_type_builder("recording").with_fields(columns).build()?;
        let schema = Arc::new(schema);
        let properties = Arc::new(properties(&schema)?);
        Ok(Self { out, writer: SerializedFileWriter::new(Vec::new(), schema, properties)? })
    }

    /// Writes a group of rows.
    pub(super) fn group(&mut self, write: impl FnOnce(&mut Group<'_>) -> Result<()>) -> io::Result<()> {
        let mut group = self.writer.next_row_group()?;
        write(&mut group)?;
        group.close()?;
        self.writer.flush()?;
        let written = self.writer.inner_mut();
        self.out.write_all(written)?;
        written.clear();
        Ok(())
    }

    /// Writes the footer.
    pub(super) fn finish(mut self, facts: Vec<(&str, String)>) -> io::Result<()> {
        for (key, value) in facts {
            self.writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        self.out.write_all(&self.writer.into_inner()?)?;
        self.out.flush()
    }
}

/// How values are spelled: texts as positions in a dictionary, integers as differences to the one before. Pages are packed by gzip, which
/// readers have to know and which is in the tree for other formats. An index of pages would be held until the end.
fn properties(schema: &TypePtr) -> Result<WriterProperties> {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("collector version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::GZIP(GzipLevel::try_new(1)?))
        .set_dictionary_page_size_limit(LARGEST_DICTIONARY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    for column in SchemaDescriptor::new(Arc::clone(schema)).columns() {
        if column.physical_type() == Physical::INT64 {
            properties = properties
                .set_column_dictionary_enabled(column.path().clone(), false)
                .set_column_encoding(column.path().clone(), Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(properties.build())
}
