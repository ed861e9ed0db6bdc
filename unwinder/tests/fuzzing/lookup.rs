//! Input: a byte that says which kind of unwind section follows (even: `.eh_frame`), and the section. Each function
//! start that can be read out of it is looked up, in a table that compiles on demand and in one that is compiled: they
//! must agree.

use unwinder::{CopiedStack, Frame, Mapping, StopReason, UnwindTable, Unwinder};

use super::image::{Machine, SECTION_ADDRESS, TEXT, with_section};
use super::{Everywhere, STACK, registers_at, within_memory};

/// Bytes held for each byte of input: two tables, and the file around it.
const PER_BYTE: u64 = 128;

pub(crate) fn run(data: &[u8]) {
    let Some((kind, section)) = data.split_first() else { return };
    let file = with_section(Machine::X86_64, section, kind % 2 == 1);
    within_memory(|| use_section(&file, section), |()| file.len() as u64 * PER_BYTE);
}

fn use_section(file: &[u8], section: &[u8]) {
    let (Ok(lazy), Ok(compiled)) = (<UnwindTable>::from_elf(file), <UnwindTable>::from_elf(file)) else {
        return;
    };
    compiled.compile_all();
    let mut asked = [Lookups::new(&lazy), Lookups::new(&compiled)];
    for address in addresses(section) {
        let [lazy, compiled] = asked.each_mut().map(|lookups| lookups.caller(address));
        assert_eq!(lazy, compiled, "at {address:#x}");
    }
}

/// What the words of a section could mean as addresses in the text: relative to themselves, and absolute.
fn addresses(section: &[u8]) -> impl Iterator<Item = u64> {
    let relative = section.windows(4).enumerate().step_by(4).filter_map(|(at, word)| {
        let distance = i32::from_le_bytes(word.try_into().ok()?);
        Some((SECTION_ADDRESS + at as u64).wrapping_add_signed(distance.into()))
    });
    let absolute =
        section.windows(8).step_by(8).filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)));
    // A row or two into the function.
    relative
        .chain(absolute)
        .flat_map(|start| [start, start.wrapping_add(5)])
        .filter(|address| TEXT.contains(address))
}

/// Looks addresses up by walking one step from each.
struct Lookups<'a> {
    space: Everywhere<'a>,
    unwinder: Unwinder,
    stack: Vec<u8>,
}

impl<'a> Lookups<'a> {
    fn new(table: &'a UnwindTable) -> Self {
        Lookups {
            space: Everywhere(Mapping { start: 0, end: u64::MAX, bias: 0, table: Some(table) }),
            unwinder: Unwinder::with_depth_limit(2),
            stack: (0..256_u64).flat_map(|word| (TEXT.start + 0x1000 + word).to_le_bytes()).collect(),
        }
    }

    fn caller(&mut self, address: u64) -> (Option<Frame>, StopReason) {
        let mut frames = Vec::with_capacity(2);
        let stack = CopiedStack::new(STACK, &self.stack, 0);
        let stop =
            self.unwinder.unwind(&self.space, &registers_at(address), &stack, |frame| frames.push(frame));
        assert!(matches!(frames.len(), 1 | 2), "{frames:?}");
        (frames.get(1).copied(), stop)
    }
}
