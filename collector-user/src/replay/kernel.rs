//! Whose kernel's names are those of a recording.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

/// Where a recording's kernel lay: `perf` writes a mapping `[kernel.kallsyms]_text`, the name being that of the symbol at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelPlace {
    pub(crate) symbol: Vec<u8>,
    pub(crate) address: u64,
}

/// What the name of the kernel's mapping begins with.
const PREFIX: &[u8] = b"[kernel.kallsyms]";

impl KernelPlace {
    /// Of a mapping of the kernel's own; `None` for that of a module.
    pub(super) fn of(path: &[u8], start: u64) -> Option<Self> {
        let symbol = path.strip_prefix(PREFIX).filter(|symbol| !symbol.is_empty())?;
        Some(Self { symbol: symbol.to_owned(), address: start })
    }

    /// The first of some lists of symbols, as `/proc/kallsyms` has them, in which the kernel lies there: names and
    /// addresses change with each build and with each start of the machine.
    pub(crate) fn find(&self, lists: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
        lists.into_iter().find(|path| self.is_in(path))
    }

    fn is_in(&self, list: &Path) -> bool {
        let Ok(file) = File::open(list) else { return false };
        let mut lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
        let address = lines.find_map(|line| {
            let (address, rest) = line.split_at_checked(16)?;
            let name = rest.get(3..)?;
            (name == self.symbol).then(|| u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok())?
        });
        address == Some(self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_known_by_its_place() {
        let list = tempfile::NamedTempFile::new().unwrap();
        let text = "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffffc0001000 t f [mod]\n";
        std::fs::write(list.path(), text).unwrap();
        let find = |name: &[u8], address| {
            KernelPlace::of(name, address).and_then(|place| place.find([list.path().to_owned()]))
        };
        assert!(find(b"[kernel.kallsyms]_text", 0xffff_ffff_8100_0000).is_some());
        assert!(
            find(b"[kernel.kallsyms]_text", 0xffff_ffff_9100_0000).is_none(),
            "another start of the machine"
        );
        assert!(find(b"[kernel.kallsyms]_other", 0xffff_ffff_8100_0000).is_none());
        assert!(find(b"[mod]", 0xffff_ffff_c000_1000).is_none());
    }
}
