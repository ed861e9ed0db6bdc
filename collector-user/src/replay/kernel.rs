//! Whose kernel's names are those of a recording.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use collector_common::ids::BuildId;

use crate::this_machine::{is_kernel, kernel_build_id};

/// Which kernel a recording is of, as far as it tells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelBuild<'a> {
    pub(crate) id: Option<BuildId>,
    pub(crate) release: Option<&'a str>,
    pub(crate) architecture: Option<&'a str>,
}

impl KernelBuild<'_> {
    /// Whether the one that runs may be it: where both tell a build id, by that alone. Without KASLR all kernels lie at one place, so
    /// that the place does not tell them apart.
    pub(crate) fn may_run_here(&self) -> bool {
        let ids = self.id.zip(kernel_build_id());
        ids.map_or_else(|| is_kernel(self.release, self.architecture), |(recorded, own)| recorded == own)
    }
}

/// Where a recording's kernel lay: `perf` writes a mapping `[kernel.kallsyms]_text`, the name being that of the symbol at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelPlace {
    pub(crate) symbol: Vec<u8>,
    pub(crate) address: u64,
}

/// What the kernel is called, and its mapping begins with.
pub(super) const KERNEL: &[u8] = b"[kernel.kallsyms]";

impl KernelPlace {
    /// Of a mapping of the kernel's own; `None` for that of a module.
    pub(super) fn of(path: &[u8], start: u64) -> Option<Self> {
        let symbol = path.strip_prefix(KERNEL).filter(|symbol| !symbol.is_empty())?;
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

    #[cfg(target_os = "linux")]
    #[test]
    fn another_kernel_is_told_by_its_build_id_or_else_by_its_release() {
        let own = rustix::system::uname().release().to_string_lossy().into_owned();
        let other = BuildId::new(&[7; 20]);
        let of = |id, release| KernelBuild { id, release, architecture: None };
        assert!(of(None, None).may_run_here(), "nothing is told");
        assert!(of(None, Some(&*own)).may_run_here());
        assert!(!of(None, Some("6.18.44-fc-v445-x")).may_run_here());
        if let Some(id) = kernel_build_id() {
            assert!(of(Some(id), Some("another name")).may_run_here());
            assert!(!of(other, Some(&*own)).may_run_here(), "another build of one release");
        }
    }

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
