//! Which functions of a file allocate and free memory: those of the C library, and of jemalloc, tcmalloc and mimalloc under the
//! names that they have in libraries and in programs that hold them.

use std::collections::BTreeSet;
use std::fs::File;

use object::ReadRef as _;

use super::elf::Image;
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
    /// `realloc(block, size)`
    Reallocates,
    /// `free(block)`
    Frees,
}

/// Names of the C library, which other allocators have with a prefix, too. Not `reallocarray`, which calls `realloc`.
const NAMES: [(&str, Shape); 13] = [
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
    ("dallocx", Shape::Frees),
    ("sdallocx", Shape::Frees),
];

/// Of jemalloc, of Rust's builds of it, of tcmalloc, of mimalloc.
const PREFIXES: [&str; 5] = ["", "je_", "_rjem_", "tc_", "mi_"];

/// `operator new` and `delete` begin so, with and without `[]`, and then with what else they are given: alignments, sizes,
/// `std::nothrow`.
const OPERATORS: [(&str, Shape); 4] = [
    ("_Znwm", Shape::Allocates),
    ("_Znam", Shape::Allocates),
    ("_ZdlPv", Shape::Frees),
    ("_ZdaPv", Shape::Frees),
];

/// tcmalloc's own names of those.
const OF_TCMALLOC: [(&str, Shape); 4] = [
    ("tc_new", Shape::Allocates),
    ("tc_newarray", Shape::Allocates),
    ("tc_delete", Shape::Frees),
    ("tc_deletearray", Shape::Frees),
];

/// A function of an allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AllocatorFunction {
    /// Where it begins in the file.
    pub(crate) offset: u64,
    pub(crate) shape: Shape,
    /// Whether it calls another one of the file, or goes on as one.
    pub(crate) nests: bool,
}

/// Bytes of names and symbols that are read of a file, while others wait: a million symbols have as many.
const MOST_SYMBOLS: u64 = 64 << 20;

/// As much of a function's code is looked at.
const LONGEST_FUNCTION: u64 = 64 << 10;

/// The functions of the allocator that a file has; none for a file without one, or of another architecture.
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
    found.dedup_by_key(|(_, function)| function.address);
    let begins: BTreeSet<u64> = found.iter().map(|(_, function)| function.address).collect();
    let told = found.iter().filter_map(|&(shape, function)| {
        let offset = image.code_offset(function.address)?;
        let size = function.size.min(LONGEST_FUNCTION);
        let code = (&bounded).read_bytes_at(offset, size).unwrap_or_default();
        let nests = machine
            .branches(code, function.address)
            .any(|target| target != function.address && begins.contains(&target));
        Some(AllocatorFunction { offset, shape, nests })
    });
    told.collect()
}

fn shape_of(name: &str) -> Option<Shape> {
    PREFIXES.iter().find_map(|prefix| {
        let rest = name.strip_prefix(prefix)?;
        NAMES.iter().find(|(known, _)| *known == rest).map(|(_, shape)| *shape)
    })
}

fn shape_of_operator(name: &str) -> Option<Shape> {
    let known = OPERATORS.iter().find(|(prefix, _)| name.starts_with(prefix));
    known.or_else(|| OF_TCMALLOC.iter().find(|(known, _)| *known == name)).map(|(_, shape)| *shape)
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
            ("my_malloc", None),
            ("malloc_usable_size", None),
            ("reallocarray", None),
        ] {
            assert_eq!(shape_of(name), shape, "{name}");
        }
        assert_eq!(shape_of_operator("_ZnwmSt11align_val_t"), Some(Shape::Allocates));
        assert_eq!(shape_of_operator("_ZdlPvm"), Some(Shape::Frees));
        assert_eq!(shape_of_operator("_Znwj"), None);
    }

    #[test]
    fn a_function_that_calls_another_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["own.c", "own"].map(|name| folder.path().join(name));
        let source = r#"
            __attribute__((visibility("hidden"))) void *malloc(unsigned long n) { return (void *)(n * 3); }
            void *calloc(unsigned long n, unsigned long m) { void *block = malloc(n * m); return block ? block : &malloc; }
            void *aligned_alloc(unsigned long a, unsigned long n) { return (void *)(n * a); }
            void *memalign(unsigned long a, unsigned long n) { return malloc(n); }
        "#;
        fs::write(&from, source).unwrap();
        let options = ["-O2", "-fno-builtin", "-fno-inline", "-shared", "-fPIC", "-o"];
        assert!(Command::new("gcc").args(options).args([&to, &from]).status().unwrap().success());
        let functions = functions_of(&File::open(to).unwrap());
        let mut told: Vec<_> = functions.iter().map(|it| (it.shape, it.nests)).collect();
        told.sort();
        let aligned = Shape::AllocatesAligned;
        let expected =
            [(Shape::Allocates, false), (Shape::AllocatesMany, true), (aligned, false), (aligned, true)];
        assert_eq!(told, expected, "a call, and a jump instead of a call");
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
