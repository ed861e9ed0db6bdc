//! A process of nothing but one piece of assembly, linked to [`TEXT`], with the rules that it has for itself.

use std::collections::HashMap;

use object::{Object, ObjectSection, ObjectSymbol};
use unwinder::{AddressSpace, Mapping, UnwindTable};

use crate::corpus::{Platform, compile};

const TEXT: u64 = 0x40_0000;

pub(super) struct Assembled<A: Platform> {
    code: Vec<u8>,
    pub(super) labels: HashMap<String, u64>,
    table: UnwindTable<A>,
}

impl<A: Platform> Assembled<A> {
    /// `None` where there is no compiler.
    pub(super) fn new(file: &str) -> Option<Self> {
        let (_folder, object) = compile::<A>(file, &["-c"])?;
        let bytes = std::fs::read(object).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let text = object.section_by_name(".text").unwrap();
        let labels =
            object.symbols().map(|symbol| (symbol.name().unwrap().to_owned(), TEXT + symbol.address()));
        Some(Assembled {
            code: text.data().unwrap().to_vec(),
            labels: labels.collect(),
            table: UnwindTable::from_object(&*bytes, |index, _| (index == text.index().0).then_some(TEXT))
                .unwrap(),
        })
    }
}

impl<A: Platform> AddressSpace<A> for Assembled<A> {
    fn lookup(&self, address: u64) -> Option<Mapping<'_, A>> {
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
