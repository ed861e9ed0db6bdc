//! Which functions of a file allocate and free memory: those of the C library, and of jemalloc, tcmalloc and mimalloc under the
//! names that they have in libraries and in programs that hold them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use object::ReadRef as _;

use super::elf::Image;
use super::instructions::{Jump, cheapest_begin, only_jump};
use super::linkage::Linkage;
use super::machine::Machine;
use crate::modules::BoundedFile;

/// What a function takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    /// `malloc(size)`
    Allocates,
    /// `calloc(count, size)`
    AllocatesMany,
    /// `aligned_alloc(alignment, size)`
    AllocatesAligned,
    /// `posix_memalign(out, alignment, size)`
    AllocatesInto,
    /// `mi_heap_malloc(heap, size)`
    AllocatesInHeap,
    /// `mi_heap_calloc(heap, count, size)`
    AllocatesManyInHeap,
    /// `realloc(block, size)`
    Reallocates,
    /// `reallocarray(block, count, size)`
    ReallocatesMany,
    /// `mi_heap_realloc(heap, block, size)`
    ReallocatesInHeap,
    /// `mi_heap_recalloc(heap, block, count, size)`
    ReallocatesManyInHeap,
    /// `free(block)`
    Frees,
}

/// Names of the C library, which other allocators have with a prefix, too. Not `reallocarray`, which calls `realloc`, nor what makes a
/// block larger where it is (`xallocx` of jemalloc, `mi_expand` of mimalloc): that stays the block that it was.
const NAMES: [(&str, Shape); 16] = [
    ("malloc", Shape::Allocates),
    ("valloc", Shape::Allocates),
    ("pvalloc", Shape::Allocates),
    ("mallocx", Shape::Allocates),
    ("calloc", Shape::AllocatesMany),
    ("aligned_alloc", Shape::AllocatesAligned),
    ("memalign", Shape::AllocatesAligned),
    ("posix_memalign", Shape::AllocatesInto),
    ("realloc", Shape::Reallocates),
    ("rallocx", Shape::Reallocates),
    ("free", Shape::Frees),
    ("cfree", Shape::Frees),
    ("free_sized", Shape::Frees),
    ("free_aligned_sized", Shape::Frees),
    ("dallocx", Shape::Frees),
    ("sdallocx", Shape::Frees),
];

/// Of jemalloc, of Rust's builds of it, of tcmalloc, of mimalloc.
const PREFIXES: [&str; 5] = ["", "je_", "_rjem_", "tc_", "mi_"];

/// mimalloc's own names, without the prefix and the [`ENDINGS`], as `mimalloc.h` has them; and what those are like that have `heap_` in
/// front, and are given a heap before all else.
const OF_MIMALLOC: [(&str, Shape, Shape); 11] = [
    ("malloc", Shape::Allocates, Shape::AllocatesInHeap),
    ("zalloc", Shape::Allocates, Shape::AllocatesInHeap),
    ("alloc_new", Shape::Allocates, Shape::AllocatesInHeap),
    ("calloc", Shape::AllocatesMany, Shape::AllocatesManyInHeap),
    ("mallocn", Shape::AllocatesMany, Shape::AllocatesManyInHeap),
    ("alloc_new_n", Shape::AllocatesMany, Shape::AllocatesManyInHeap),
    ("realloc", Shape::Reallocates, Shape::ReallocatesInHeap),
    ("reallocf", Shape::Reallocates, Shape::ReallocatesInHeap),
    ("rezalloc", Shape::Reallocates, Shape::ReallocatesInHeap),
    ("reallocn", Shape::ReallocatesMany, Shape::ReallocatesManyInHeap),
    ("recalloc", Shape::ReallocatesMany, Shape::ReallocatesManyInHeap),
];

/// Those of which there are none for heaps.
const OF_MIMALLOC_ALONE: [(&str, Shape); 9] = [
    ("new", Shape::Allocates),
    ("new_n", Shape::AllocatesMany),
    ("new_realloc", Shape::Reallocates),
    ("new_reallocn", Shape::ReallocatesMany),
    ("reallocarray", Shape::ReallocatesMany),
    ("aligned_recalloc", Shape::ReallocatesMany),
    ("aligned_offset_recalloc", Shape::ReallocatesMany),
    ("free", Shape::Frees),
    ("free_size", Shape::Frees),
];

/// What says behind a name of mimalloc's where a block is to lie, and tells no more of what is given.
const ENDINGS: [&str; 5] = ["_aligned_nothrow", "_aligned_at", "_aligned", "_nothrow", "_small"];

/// `operator new` and `delete` begin so, and tcmalloc's own names of them, with and without `[]`, and then with what else they are
/// given: alignments, sizes, `std::nothrow`.
const OPERATORS: [(&str, Shape); 7] = [
    ("_Znwm", Shape::Allocates),
    ("_Znam", Shape::Allocates),
    ("_ZdlPv", Shape::Frees),
    ("_ZdaPv", Shape::Frees),
    ("tc_new", Shape::Allocates),
    ("tc_delete", Shape::Frees),
    ("tc_malloc_skip_new_handler", Shape::Allocates),
];

/// A function of an allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AllocatorFunction {
    /// Where it is probed in the file: where it begins, or a little behind (see [`cheapest_begin`]).
    pub(crate) offset: u64,
    pub(crate) shape: Shape,
    /// Whether it calls another one of the file, or may go on as one.
    pub(crate) nests: bool,
    /// Whether it gives nothing for an alignment that is none, however little is asked for.
    pub(crate) refuses: bool,
    /// Whether it throws an exception where it has nothing to give.
    pub(crate) throws: bool,
}

/// Bytes of names and symbols that are read of a file, while others wait: a million symbols have as many.
const MOST_SYMBOLS: u64 = 64 << 20;

/// As much of a function's code is looked at.
const LONGEST_FUNCTION: u64 = 64 << 10;

/// The functions of the allocator that a file has, without those that only jump to another; none for a file without one, or of another
/// architecture.
pub(crate) fn functions_of(file: &File) -> Vec<AllocatorFunction> {
    let Ok(file) = file.try_clone() else { return Vec::new() };
    let bounded = BoundedFile::new(file, MOST_SYMBOLS);
    let Ok(image) = Image::read(&bounded) else { return Vec::new() };
    let Some(machine) = image.machine.filter(|machine| Some(*machine) == Machine::OWN) else {
        return Vec::new();
    };
    let functions = || image.functions.iter().filter(|function| !function.is_resolver);
    let mut found: Vec<_> = functions().filter_map(|it| Some((shape_of(it.name)?, it))).collect();
    // The operators of the C++ library call the C library's functions.
    if !found.iter().any(|(shape, _)| *shape == Shape::Allocates) {
        return Vec::new();
    }
    found.extend(functions().filter_map(|it| Some((shape_of_operator(it.name)?, it))));
    found.sort_by_key(|(shape, function)| (function.address, *shape));
    // A function may have several names.
    let named = |is_so: fn(&str) -> bool| -> BTreeSet<u64> {
        let named = found.iter().filter(|(_, function)| is_so(function.name));
        named.map(|(_, function)| function.address).collect()
    };
    let (refusing, throwing) = (named(takes_alignment), named(throws));
    found.dedup_by_key(|(_, function)| function.address);
    let shapes = found.iter().map(|(shape, function)| (function.address, *shape)).collect();
    let others = Others { machine, linkage: Linkage::read(&bounded), shapes };
    let told = found.iter().filter_map(|&(shape, function)| {
        let offset = image.code_offset(function.address)?;
        let size = function.size.min(LONGEST_FUNCTION);
        let code = (&bounded).read_bytes_at(offset, size).unwrap_or_default();
        if others.has_the_same(shape, code, function.address) {
            return None;
        }
        let nests = others.are_called(code, function.address);
        let [refuses, throws] = [&refusing, &throwing].map(|them| them.contains(&function.address));
        let offset = offset + cheapest_begin(machine, code, function.address);
        Some(AllocatorFunction { offset, shape, nests, refuses, throws })
    });
    told.collect()
}

/// The functions of a file, as what one of them may call.
struct Others<'d> {
    machine: Machine,
    linkage: Linkage<'d>,
    /// By where they begin.
    shapes: BTreeMap<u64, Shape>,
}

impl Others<'_> {
    /// Whether the code of the function at `start` calls another one, or may go on as one.
    fn are_called(&self, code: &[u8], start: u64) -> bool {
        let is_other = |target: u64| target != start && self.shapes.contains_key(&target);
        let by_slot = |slot| self.linkage.behind_slot(slot).is_some_and(is_other);
        self.machine.branches(code, start).any(|target| is_other(self.behind(target)))
            || self.machine.slots(code, start).any(by_slot)
    }

    /// Whether the function at `start` is one jump to another one of its shape. Each of its calls is a call of that, so that it needs no
    /// probe: jemalloc's `new[]` and `delete` are such. Where a file that comes before this one has a function of the name, as a
    /// program that is linked with another allocator, that one is called, and probed there.
    fn has_the_same(&self, shape: Shape, code: &[u8], start: u64) -> bool {
        let target = match only_jump(self.machine, code, start) {
            Some(Jump::To(target)) => Some(self.behind(target)),
            Some(Jump::By(slot)) => self.linkage.behind_slot(slot),
            None => None,
        };
        target.is_some_and(|target| target != start && self.shapes.get(&target) == Some(&shape))
    }

    /// The function that a branch to an address leads to.
    fn behind(&self, target: u64) -> u64 {
        self.linkage.behind_stub(self.machine, target).unwrap_or(target)
    }
}

fn shape_of(name: &str) -> Option<Shape> {
    let of_all = PREFIXES.iter().find_map(|prefix| {
        let rest = name.strip_prefix(prefix)?;
        NAMES.iter().find(|(known, _)| *known == rest).map(|(_, shape)| *shape)
    });
    of_all.or_else(|| shape_of_mimalloc(name.strip_prefix("mi_")?))
}

fn shape_of_mimalloc(name: &str) -> Option<Shape> {
    let (name, in_heap) = match name.strip_prefix("heap_") {
        Some(rest) => (rest, true),
        None => (name, false),
    };
    let name = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    let of_both = OF_MIMALLOC.iter().find(|(known, ..)| *known == name);
    let shape = of_both.map(|&(_, shape, of_heap)| if in_heap { of_heap } else { shape });
    let alone = || OF_MIMALLOC_ALONE.iter().find(|(known, _)| !in_heap && *known == name);
    shape.or_else(|| alone().map(|(_, shape)| *shape))
}

/// Whether it says where the block is to lie. The operators of C++ have that from a type, which is right.
fn takes_alignment(name: &str) -> bool {
    name.contains("align") && !name.starts_with("_Z")
}

/// Whether it is an operator of C++, or does what one does.
fn throws(name: &str) -> bool {
    const BEGINS: [&str; 5] = ["_Znwm", "_Znam", "tc_new", "mi_new", "mi_heap_alloc_new"];
    BEGINS.iter().any(|begin| name.starts_with(begin)) && !name.contains("nothrow")
}

fn shape_of_operator(name: &str) -> Option<Shape> {
    OPERATORS.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, shape)| *shape)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn names_of_allocators() {
        for (name, shape) in [
            ("malloc", Some(Shape::Allocates)),
            ("_rjem_calloc", Some(Shape::AllocatesMany)),
            ("je_posix_memalign", Some(Shape::AllocatesInto)),
            ("mi_free", Some(Shape::Frees)),
            ("tc_memalign", Some(Shape::AllocatesAligned)),
            ("mallocx", Some(Shape::Allocates)),
            ("_rjem_sdallocx", Some(Shape::Frees)),
            ("tc_free_sized", Some(Shape::Frees)),
            ("mi_malloc_small", Some(Shape::Allocates)),
            ("mi_malloc_aligned", Some(Shape::Allocates)),
            ("mi_zalloc_aligned_at", Some(Shape::Allocates)),
            ("mi_new_aligned_nothrow", Some(Shape::Allocates)),
            ("mi_calloc_aligned", Some(Shape::AllocatesMany)),
            ("mi_mallocn", Some(Shape::AllocatesMany)),
            ("mi_realloc_aligned", Some(Shape::Reallocates)),
            ("mi_reallocf", Some(Shape::Reallocates)),
            ("mi_recalloc_aligned_at", Some(Shape::ReallocatesMany)),
            ("mi_new_reallocn", Some(Shape::ReallocatesMany)),
            ("mi_heap_zalloc", Some(Shape::AllocatesInHeap)),
            ("mi_heap_alloc_new_n", Some(Shape::AllocatesManyInHeap)),
            ("mi_heap_rezalloc_aligned", Some(Shape::ReallocatesInHeap)),
            ("mi_heap_reallocn", Some(Shape::ReallocatesManyInHeap)),
            ("mi_free_size_aligned", Some(Shape::Frees)),
            ("mi_heap_new", None),
            ("mi_malloc_size", None),
            ("mi_expand", None),
            ("xallocx", None),
            ("my_malloc", None),
            ("malloc_usable_size", None),
            ("reallocarray", None),
        ] {
            assert_eq!(shape_of(name), shape, "{name}");
        }
        assert_eq!(shape_of_operator("_ZnwmSt11align_val_t"), Some(Shape::Allocates));
        assert_eq!(shape_of_operator("_ZdlPvm"), Some(Shape::Frees));
        assert_eq!(shape_of_operator("tc_newarray_nothrow"), Some(Shape::Allocates));
        assert_eq!(shape_of_operator("tc_delete_sized_aligned"), Some(Shape::Frees));
        assert_eq!(shape_of_operator("_Znwj"), None);
        for (name, is_so) in [
            ("_Znwm", true),
            ("_ZnamSt11align_val_t", true),
            ("_ZnwmRKSt9nothrow_t", false),
            ("tc_newarray", true),
            ("tc_new_nothrow", false),
            ("mi_new_realloc", true),
            ("mi_new_aligned_nothrow", false),
            ("mi_heap_alloc_new_n", true),
            ("malloc", false),
        ] {
            assert_eq!(throws(name), is_so, "{name}");
        }
        for (name, takes) in [
            ("memalign", true),
            ("je_aligned_alloc", true),
            ("posix_memalign", true),
            ("mi_malloc_aligned_at", true),
            ("mi_malloc_aligned_nothrow", true),
            ("malloc", false),
            ("mi_heap_malloc", false),
            ("_ZnwmSt11align_val_t", false),
        ] {
            assert_eq!(takes_alignment(name), takes, "{name}");
        }
    }

    #[test]
    fn a_function_that_calls_another_is_told_and_one_that_is_another_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["own.c", "own"].map(|name| folder.path().join(name));
        let source = r#"
            __attribute__((visibility("hidden"))) void *malloc(unsigned long n) { return (void *)(n * 3); }
            void *calloc(unsigned long n, unsigned long m) { void *block = malloc(n * m); return block ? block : &malloc; }
            void *aligned_alloc(unsigned long a, unsigned long n) { return (void *)(n * a); }
            void *memalign(unsigned long a, unsigned long n) { return malloc(n); }
            void *valloc(unsigned long n) { return malloc(n); }
            void *pvalloc(unsigned long n) { return valloc(n); }
            void *realloc(void *block, unsigned long n) { return block ? 0 : malloc(n); }
            void *rallocx(void *block, unsigned long n) { return ((void *(*)(void *, unsigned long))aligned_alloc)(block, n); }
        "#;
        fs::write(&from, source).unwrap();
        let compile = |by: &str| {
            let options = ["-O2", "-fno-builtin", "-fno-inline", "-shared", "-fPIC", by, "-o"];
            assert!(Command::new("gcc").args(options).args([&to, &from]).status().unwrap().success());
            let functions = functions_of(&File::open(&to).unwrap());
            let mut told: Vec<_> = functions.iter().map(|it| (it.shape, it.nests)).collect();
            told.sort();
            told
        };
        let told = compile("-fplt");
        let aligned = Shape::AllocatesAligned;
        let resizes = Shape::Reallocates;
        // `valloc` and `pvalloc` are jumps to what is like them, and `rallocx` one to what is not.
        let expected = [
            (Shape::Allocates, false),
            (Shape::AllocatesMany, true),
            (aligned, false),
            (aligned, true),
            (resizes, true),
            (resizes, true),
        ];
        assert_eq!(told, expected, "a call, and a jump instead of a call");
        // One that another file may define, too, by way of the linker's table, and of its code.
        fs::write(&from, source.replace("__attribute__((visibility(\"hidden\")))", "")).unwrap();
        for by in ["-fplt", "-fno-plt", "-Wl,-z,now"] {
            assert_eq!(compile(by), expected, "{by}");
        }
    }

    #[test]
    fn a_file_with_an_allocator_of_its_own_has_its_operators_too() {
        let folder = tempfile::tempdir().unwrap();
        let compile = |name: &str, source: &str| {
            let [from, to] = [name.to_owned() + ".cpp", name.to_owned()].map(|name| folder.path().join(name));
            fs::write(&from, source).unwrap();
            let compiler = Command::new("g++").args(["-shared", "-fPIC", "-o"]).args([&to, &from]).status();
            assert!(compiler.unwrap().success());
            functions_of(&File::open(to).unwrap())
        };
        let new = "#include <cstddef>\nvoid *operator new(std::size_t n) { return (void *)(n * 8); }\n";
        assert!(compile("calls", new).is_empty(), "as the C++ library, which calls `malloc`");
        let own = r#"
            extern "C" void *malloc(std::size_t n) { return (void *)n; }
            extern "C" void *tc_malloc(std::size_t n) __attribute__((alias("malloc")));
            extern "C" void free(void *) {}
            static void *chosen(std::size_t n) { return (void *)n; }
            extern "C" { static void *(*choose(void))(std::size_t) { return chosen; } }
            extern "C" void *valloc(std::size_t n) __attribute__((ifunc("choose")));
        "#;
        let mut shapes: Vec<Shape> =
            compile("own", &(new.to_owned() + own)).iter().map(|it| it.shape).collect();
        shapes.sort();
        assert_eq!(shapes, [Shape::Allocates, Shape::Allocates, Shape::Frees], "two names of one are one");
    }
}
