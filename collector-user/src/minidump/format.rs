//! A file in, a recording and what names it out.

use std::path::Path;

use collector_common::record::ExportMachine;
use export::import::{Begin, ImportError, ImportFormat, Imported, Input, checked};

use super::error::DumpError;
use super::images::DumpFiles;
use super::machine::build;
use super::source::{Places as _, Source};
use super::streams::{SIGNATURE, Streams};

/// The reader of minidumps.
#[derive(Clone, Copy, Debug)]
pub struct Minidump;

/// A dump that was read.
#[derive(Debug)]
pub struct Dump {
    /// What it has: no function has a name yet.
    pub imported: Imported,
    /// What names them.
    pub files: DumpFiles,
}

impl Minidump {
    /// Reads a dump that lies in `folder`, where images and PDBs are looked for, too. Stacks are walked by the images that are found.
    ///
    /// # Errors
    /// When it can't be read, or is none of Windows.
    pub fn read(
        self,
        machine: ExportMachine,
        input: &mut dyn Input,
        folder: Option<&Path>,
    ) -> Result<Dump, ImportError> {
        let source = Source::new(input)?;
        if source.length() == 0 {
            return Err(ImportError::Empty);
        }
        let streams = Streams::read(&source)?;
        let (imported, files) = build(machine, &source, streams, folder);
        if let Some(error) = source.failure() {
            return Err(DumpError::Io(error).into());
        }
        Ok(Dump { imported: checked(imported)?, files })
    }
}

impl ImportFormat for Minidump {
    fn name(&self) -> &'static str {
        "minidump"
    }

    fn description(&self) -> &'static str {
        "Windows' .dmp"
    }

    fn endings(&self) -> &'static str {
        ".dmp .mdmp"
    }

    fn signature(&self) -> &'static [u8] {
        SIGNATURE
    }

    fn mark(&self) -> &'static str {
        "`MDMP`"
    }

    fn begins(&self, begin: &Begin<'_>) -> bool {
        begin.bytes.starts_with(SIGNATURE)
    }

    /// Without names: [`Minidump::read`] gives what names its functions, too.
    fn import_into(
        &self,
        machine: ExportMachine,
        input: &mut dyn Input,
        _: u64,
    ) -> Result<Imported, ImportError> {
        self.read(machine, input, None).map(|dump| dump.imported)
    }
}
