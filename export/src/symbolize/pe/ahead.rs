//! Maps of what .NET compiled ahead (`ReadyToRun`), `NAME.ni.r2rmap`: which method an address of an image is in.
//!
//! In: lines `RVA LENGTH NAME` of UTF-8, the numbers in hexadecimal. The first ones are of the map itself: their numbers are none that
//! an image has, their lengths 0 (`docs/design/coreclr/botr/r2r-perfmap-format.md` of dotnet/runtime, version 1). Out: names as they
//! are written, `RESULT CLASS::METHOD(PARAMETERS)` without the result `void` (`SymbolFileBuilder` of `crossgen2`), which
//! [`readable`] makes readable.

use std::io::{self, BufRead as _, BufReader, Read, Seek};

use super::super::answer::Answer;
use super::super::map_lines::{Entry, MOST_OF_LINE, Unnamed};

/// Bytes that are looked at: the largest map of the framework has five million.
const MOST: u64 = 1 << 30;

/// Which map is an image's: the same signature is in both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AheadMapId {
    /// Mere bytes, and no GUID.
    pub signature: [u8; 16],
    /// The version of the map's format.
    pub version: u32,
    /// What the compiler called it.
    pub path: Vec<u8>,
}

impl AheadMapId {
    /// The folder of a symbol server's layout (`SSQP_Key_Conventions.md` of dotnet/symstore): the version, and the signature's digits.
    pub fn key(&self) -> String {
        format!("r2rmap-v{}-{:032x}", self.version, u128::from_be_bytes(self.signature))
    }

    /// The file's name: the last part of its path.
    pub fn name(&self) -> &[u8] {
        self.path.rsplit(|byte| matches!(byte, b'\\' | b'/')).next().unwrap_or_default()
    }
}

/// Why a map names nothing, or not all that it could.
#[derive(Debug, thiserror::Error)]
pub enum AheadMapError {
    /// Reading failed.
    #[error("reading failed: {0}")]
    Read(#[from] io::Error),
    /// Methods come before what is told of the map.
    #[error("it does not begin with a signature and a version")]
    NoHeader,
    /// It is of another image of this name.
    #[error("it has the signature {0:032x}, and is another build's")]
    OtherBuild(u128),
    /// It has a format that nothing is known of.
    #[error("it has version {0}, and 1 is read")]
    Version(u32),
}

/// Names the addresses that have none, which are relative to the image.
pub(in super::super) fn look_up(
    file: &mut (impl Read + Seek),
    id: &AheadMapId,
    answer: &mut Answer<'_>,
) -> Result<(), AheadMapError> {
    file.rewind()?;
    let mut lines = Lines { file: BufReader::new(Read::take(file, MOST)), line: Vec::new() };
    let mut unnamed = Unnamed::of(answer);
    let (mut is_right, mut has_version) = (false, false);
    while !unnamed.is_empty() {
        let Some(line) = lines.next()? else { break };
        let Some(entry) = Entry::parse_any(line) else { continue };
        let told = std::str::from_utf8(entry.name).unwrap_or_default();
        match entry.code.start {
            SIGNATURE => {
                let told = u128::from_str_radix(told, 16).map_err(|_| AheadMapError::NoHeader)?;
                if told.to_be_bytes() != id.signature {
                    return Err(AheadMapError::OtherBuild(told));
                }
                is_right = true;
            }
            VERSION => {
                let version = told.parse().map_err(|_| AheadMapError::NoHeader)?;
                if version != 1 {
                    return Err(AheadMapError::Version(version));
                }
                has_version = true;
            }
            FIRST_OF_MAP.. => {}
            _ if !is_right || !has_version => return Err(AheadMapError::NoHeader),
            _ if entry.code.is_empty() => {}
            _ => unnamed.name(Some(entry), answer),
        }
    }
    Ok(())
}

const SIGNATURE: u64 = 0xffff_ffff;
const VERSION: u64 = 0xffff_fffe;
/// From here on numbers are no addresses.
const FIRST_OF_MAP: u64 = 0xffff_ff00;

/// The lines of a file. Those that are too long are empty ones.
struct Lines<R> {
    file: BufReader<R>,
    line: Vec<u8>,
}

impl<R: Read> Lines<R> {
    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let mut is_too_long = false;
        loop {
            let left = (MOST_OF_LINE - self.line.len()) as u64;
            let read = Read::take(&mut self.file, left).read_until(b'\n', &mut self.line)?;
            if read == 0 && self.line.is_empty() && !is_too_long {
                return Ok(None);
            }
            if read == 0 || self.line.ends_with(b"\n") {
                break;
            }
            if self.line.len() == MOST_OF_LINE {
                is_too_long = true;
                self.line.clear();
            }
        }
        Ok(Some(if is_too_long { &[] } else { &self.line }))
    }
}

/// A name as it reads: without what the method returns. Types have spaces in brackets alone.
pub(in super::super) fn readable(written: &str) -> String {
    let Some((owner, method)) = written.split_once("::") else { return written.to_owned() };
    let mut depth = 0_u32;
    let mut begin = 0;
    for (at, char) in owner.char_indices() {
        match char {
            '<' | '[' | '(' => depth += 1,
            '>' | ']' | ')' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => begin = at + 1,
            _ => {}
        }
    }
    let owner = owner.get(begin..).filter(|owner| !owner.is_empty()).unwrap_or(owner);
    format!("{owner}.{method}")
}

#[cfg(test)]
mod tests;
