//! What is known of the addresses of one module that have code which was made at run time.

use crate::table::Table;

/// Where an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JitPlace {
    /// A position among the names.
    pub name: u32,
    /// A position among the source files, where that is known.
    pub file: Option<u32>,
    /// From 1; 0 where not known.
    pub line: u32,
    /// From 1; 0 where not known.
    pub column: u32,
}

/// Functions of addresses.
#[derive(Clone, Debug, Default)]
pub struct JitNames {
    names: Vec<String>,
    files: Vec<String>,
    file_index: Table<String, u32>,
    places: Table<u64, JitPlace>,
}

impl JitNames {
    /// Adds a name as it was told, and gives its position.
    pub fn add_name(&mut self, name: String) -> u32 {
        self.names.push(name);
        self.names.len() as u32 - 1
    }

    /// The position of a source file, which is added if it is new.
    pub fn add_file(&mut self, path: &str) -> u32 {
        if let Some(&known) = self.file_index.get(path) {
            return known;
        }
        self.files.push(path.to_owned());
        let position = self.files.len() as u32 - 1;
        self.file_index.insert(path.to_owned(), position);
        position
    }

    /// Says what an address is in.
    pub fn set(&mut self, address: u64, place: JitPlace) {
        self.places.insert(address, place);
    }

    /// What an address is in.
    pub fn at(&self, address: u64) -> Option<JitPlace> {
        self.places.get(&address).copied()
    }

    /// The name at a position.
    pub fn name(&self, position: u32) -> &str {
        self.names.get(position as usize).map_or("", String::as_str)
    }

    /// The source file at a position.
    pub fn file(&self, position: u32) -> &str {
        self.files.get(position as usize).map_or("", String::as_str)
    }
}
