//! What a debugger needs to find an image's symbols.

use collector_common::event::Guid;

/// The PDB of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdbId {
    /// Its signature.
    pub signature: Guid,
    /// How often it was written since.
    pub age: u32,
    /// Its path on the machine that linked the image.
    pub path: Box<str>,
}

/// By what an image is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageIds {
    /// The PDB of its native code.
    pub pdb: Option<PdbId>,
    /// The PDB of its intermediate language.
    pub il_pdb: Option<PdbId>,
    /// The name that it was linked with.
    pub original_name: Option<Box<str>>,
    /// When it was linked, by its header.
    pub timestamp: Option<u32>,
}

impl ImageIds {
    /// Takes from `other` what is not known.
    pub(super) fn complete(&mut self, other: Self) {
        self.pdb = self.pdb.take().or(other.pdb);
        self.il_pdb = self.il_pdb.take().or(other.il_pdb);
        self.original_name = self.original_name.take().or(other.original_name);
        self.timestamp = self.timestamp.or(other.timestamp);
    }
}
