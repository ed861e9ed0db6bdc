//! Relocatable objects: a program's stacks are walked with the rules of the object that it was linked from, each section
//! placed where the linker had put it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use unwinder::aarch64::Aarch64;
use unwinder::x86::X86;
use unwinder::x86_64::X86_64;
use unwinder::{TableError, UnwindTable, Unwinder};

use crate::corpus::{Platform, Run, compile, run_on};

/// A program that was run and the object that it was linked from.
struct Linked<A: Platform> {
    run: Run<A>,
    /// Where the linker put the object's sections, by number.
    places: HashMap<usize, u64>,
    folder: tempfile::TempDir,
}

impl<A: Platform> Linked<A> {
    fn new() -> Option<Self> {
        let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/both_sections.h");
        let flags = ["-ffunction-sections", "-include", header.to_str()?];
        let run = run_on::<A>("walks.c", &flags)?;
        let (folder, _) = compile::<A>("walks.c", &[&["-c"], &flags[..]].concat())?;
        let mut linked = Linked { run, places: HashMap::new(), folder };
        let bytes = linked.read("program");
        let object = object::File::parse(&*bytes).unwrap();
        let program = Arc::clone(&linked.run.program().elf);
        let program = object::File::parse(program.as_slice()).unwrap();
        let addresses: HashMap<_, _> =
            program.symbols().map(|symbol| (symbol.name().unwrap(), symbol.address())).collect();
        let functions = object.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
        linked.places = functions
            .filter_map(|symbol| {
                let start = addresses.get(symbol.name().unwrap())?.wrapping_sub(symbol.address());
                Some((symbol.section_index()?.0, start))
            })
            .collect();
        Some(linked)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.path().join(name)).unwrap()
    }

    /// The object as `objcopy` changes it.
    fn changed(&self, flags: &[&str]) -> Vec<u8> {
        let mut objcopy = A::tool("objcopy");
        let status =
            objcopy.args(flags).args(["program", "changed"]).current_dir(self.folder.path()).status();
        assert!(status.unwrap().success(), "{flags:?}");
        self.read("changed")
    }

    fn table(&self, object: &[u8]) -> UnwindTable<A> {
        UnwindTable::from_object(object, |index, _| self.places.get(&index).copied()).unwrap()
    }

    /// Walks all stacks with `table` as the program's.
    fn assert_complete(&mut self, table: UnwindTable<A>) {
        // On x86, glibc makes up how a context began (see `walks`).
        const UNWITNESSED: [&str; 2] = ["alternate_stack", "context"];
        let report = table.size_report();
        assert!(report.functions >= self.places.len() && self.places.len() > 10, "{report:?}");
        self.run.program().table = Some(Arc::new(table));
        for stack in self.run.stacks.iter().filter(|stack| !UNWITNESSED.contains(&&*stack.name)) {
            let (mut frames, mut guessed) = (Vec::new(), None);
            Unwinder::new().unwind(&self.run.space, &stack.registers, &stack.stack(), |frame| {
                if frame.heuristic {
                    guessed.get_or_insert(frames.len());
                }
                frames.push(frame.address);
            });
            // What called `main`'s caller is no part of the object.
            let known = stack.chain.len();
            assert_eq!(frames.get(..known), Some(&*stack.chain), "{}", stack.name);
            assert!(guessed.is_none_or(|first| first >= known), "{}", stack.name);
        }
    }
}

fn rules_hold_where_sections_were_placed<A: Platform>() {
    let Some(mut linked) = Linked::<A>::new() else { return };
    let changes: [&[&str]; 4] = [
        &[],
        &["-R", ".eh_frame"],
        &["-R", ".debug_frame"],
        &["--compress-debug-sections", "-R", ".eh_frame"],
    ];
    for flags in changes {
        let table = linked.table(&linked.changed(flags));
        linked.assert_complete(table);
    }
}

#[test]
fn rules_of_an_object_hold_where_its_sections_were_placed() {
    rules_hold_where_sections_were_placed::<X86_64>();
}

#[test]
fn rules_of_an_object_of_aarch64_hold_where_its_sections_were_placed() {
    rules_hold_where_sections_were_placed::<Aarch64>();
}

#[test]
fn rules_of_an_object_of_x86_hold_where_its_sections_were_placed() {
    rules_hold_where_sections_were_placed::<X86>();
}

#[test]
fn sections_that_were_not_loaded_have_no_rules() {
    let Some(linked) = Linked::<X86_64>::new() else { return };
    let bytes = linked.read("program");
    let object = object::File::parse(&*bytes).unwrap();
    let sizes = |name: &str| object.section_by_name(name).unwrap().size();
    let main = ".text.startup.main";
    for flags in [&[][..], &["-R", ".eh_frame"]] {
        let load = |_: usize, name: &str| (name == main).then_some(0xffff_ffff_c000_0000);
        let table = <UnwindTable>::from_object(&*linked.changed(flags), load).unwrap();
        let report = table.size_report();
        assert_eq!((report.functions, report.text_bytes as u64), (1, sizes(main)));
    }
    let nowhere = <UnwindTable>::from_object(&*bytes, |_, _| None);
    assert!(matches!(nowhere, Err(TableError::NoText)), "{nowhere:?}");
    let apart = <UnwindTable>::from_object(&*bytes, |index, _| Some((index as u64) << 32));
    assert!(matches!(apart, Err(TableError::TextTooLarge { .. })), "{apart:?}");
}

#[test]
fn only_relocatable_objects_are_placed() {
    let own = std::fs::read("/proc/self/exe").unwrap();
    let table = <UnwindTable>::from_object(&*own, |_, _| Some(0));
    assert!(matches!(table, Err(TableError::NotRelocatable { kind: 2 | 3 })), "{table:?}");
}
