//! Innermost frames of 32-bit x86 code that has pushed what its rules don't count: their instructions tell where they return to.

use std::collections::HashMap;

use object::{Object, ObjectSection, ObjectSymbol};
use unwinder::x86::{Registers, X86};
use unwinder::{AddressSpace, CopiedStack, Mapping, StopReason, UnwindTable, Unwinder};

use crate::corpus::compile;

const TEXT: u64 = 0x40_0000;
const STACK: u32 = 0x7000_0000;

struct Space {
    code: Vec<u8>,
    labels: HashMap<String, u32>,
    table: UnwindTable<X86>,
}

impl AddressSpace<X86> for Space {
    fn lookup(&self, address: u64) -> Option<Mapping<'_, X86>> {
        let end = TEXT + self.code.len() as u64;
        let mapping = Mapping { start: TEXT, end, bias: 0, table: Some(&self.table) };
        (TEXT..end).contains(&address).then_some(mapping)
    }

    fn code(&self, address: u64, buffer: &mut [u8]) -> usize {
        let rest = address.checked_sub(TEXT).and_then(|at| self.code.get(usize::try_from(at).ok()?..));
        let rest = rest.unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        length
    }
}

impl Space {
    /// `None` where there is no compiler.
    fn new() -> Option<Self> {
        let (_folder, object) = compile::<X86>("pushes_x86.s", &["-c"])?;
        let bytes = std::fs::read(object).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let text = object.section_by_name(".text").unwrap();
        let at = |address: u64| u32::try_from(TEXT + address).unwrap();
        let labels = object.symbols().map(|symbol| (symbol.name().unwrap().to_owned(), at(symbol.address())));
        Some(Space {
            code: text.data().unwrap().to_vec(),
            labels: labels.collect(),
            table: UnwindTable::from_object(&*bytes, |index, _| (index == text.index().0).then_some(TEXT))
                .unwrap(),
        })
    }

    /// The callers of the frame at the label `from`, whether each is a guess, and how the stack, which has a word that was pushed
    /// above a return address to `in_outermost`, ends.
    fn walked(&self, from: &str, pushed: &[u32]) -> (Vec<(u64, bool)>, StopReason) {
        let words = pushed.iter().copied().chain([self.labels["in_outermost"], 0, 0, 0]);
        let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        let mut general = [0; 8];
        general[4] = STACK;
        let registers = Registers::new(self.labels[from], general);
        let mut frames = Vec::new();
        let stack = CopiedStack::new(STACK.into(), &bytes, 0);
        let stop = Unwinder::new()
            .unwind(self, &registers, &stack, |frame| frames.push((frame.address, frame.heuristic)));
        (frames.split_off(1), stop)
    }
}

#[test]
fn what_rules_do_not_count_is_told_by_code() {
    let Some(space) = Space::new() else { return };
    let caller = u64::from(space.labels["in_outermost"]);
    let guessed = (vec![(caller, true)], StopReason::Root);
    assert_eq!(space.walked("pushed", &[7]), guessed);
    assert_eq!(space.walked("counted_below", &[7]), guessed);
    // A rule that leads to code is believed,
    assert_eq!(space.walked("copy", &[]), (vec![(caller, false)], StopReason::Root));
    // and so is one where code does not tell more.
    assert_eq!(space.walked("left", &[7]), (vec![(7, false)], StopReason::NoMapping));
}
