//! Names of the kernel's own locks, by their addresses: those that are variables of it, where `/proc/kallsyms` has them
//! (`CONFIG_KALLSYMS_ALL`). A lock that is part of something else has no name.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};

use rustc_hash::FxHashMap;

use crate::kernel::KALLSYMS;

/// Where the kernel's variables begin, and those of its modules: below is memory that was allocated. The kernel's image lies
/// at `__START_KERNEL_map` on x86-64, and above the linear map of all memory on aarch64 (`Documentation/arch/*/*/mm.rst`,
/// `memory.rst`).
const VARIABLES: u64 =
    if cfg!(target_arch = "x86_64") { 0xffff_ffff_8000_0000 } else { 0xffff_8000_0000_0000 };

/// Variables that are kept at most.
const MOST: usize = 1 << 20;

/// Bytes of a line that are looked at. The kernel's names have at most 512 (`KSYM_NAME_LEN`).
const MAX_LINE: usize = 4 << 10;

/// The names, read when the first is asked for.
#[derive(Default)]
pub(super) struct LockNames {
    variables: Option<FxHashMap<u64, Box<str>>>,
}

impl LockNames {
    /// The name of the variable at the address, or else the address.
    pub(super) fn name(&mut self, lock: u64) -> String {
        if lock < VARIABLES {
            return format!("{lock:#x}");
        }
        let variables = self.variables.get_or_insert_with(|| {
            // Without it, there are addresses.
            File::open(KALLSYMS).map(|file| variables(BufReader::new(file))).unwrap_or_default()
        });
        variables.get(&lock).map_or_else(|| format!("{lock:#x}"), ToString::to_string)
    }
}

/// Variables in the text of `/proc/kallsyms`, up to a line that can't be read. See `export`'s `symbolize::kernel` for its form.
fn variables(mut text: impl BufRead) -> FxHashMap<u64, Box<str>> {
    let mut variables = FxHashMap::default();
    let mut line = String::new();
    while variables.len() < MOST {
        line.clear();
        match text.by_ref().take(MAX_LINE as u64).read_line(&mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let mut words = line.split_whitespace();
        let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let is_variable = matches!(kind, "d" | "D" | "b" | "B");
        let address = u64::from_str_radix(address, 16).ok().filter(|&address| address != 0 && is_variable);
        if let Some(address) = address {
            variables.entry(address).or_insert_with(|| name.into());
        }
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_names_and_code_has_none() {
        let text = "ffffffff81000000 T _text\nffffffff82a00010 d rtnl_mutex\nffffffff82a00010 D other\n\
                    ffffffffc0000020 b pool_lock\t[module]\n0000000000000000 D hidden\nnonsense\n";
        let mut found: Vec<_> = variables(text.as_bytes()).into_iter().collect();
        found.sort();
        let expected = [(0xffff_ffff_82a0_0010, "rtnl_mutex"), (0xffff_ffff_c000_0020, "pool_lock")];
        assert_eq!(found, expected.map(|(address, name)| (address, name.into())));
    }

    #[test]
    fn what_was_allocated_has_its_address() {
        assert_eq!(LockNames::default().name(0xffff_0000_1234_5678), "0xffff000012345678");
    }
}
