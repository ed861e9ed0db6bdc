//! Damaged PDBs, of a program that `clang` and `lld-link` make.

use std::io::Cursor;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::super::pe;
use super::*;

const SOURCE: &str = "
    static volatile int sink;
    static inline __attribute__((always_inline)) int twice(int value) { sink = value; return value * 2; }
    struct Square { int side; __attribute__((noinline)) int area() const { return twice(side) + 1; } };
    extern \"C\" int entry() { return Square{7}.area(); }
";

/// An image and its PDB; `None` where the tools are missing.
fn made(folder: &Path) -> Option<(Vec<u8>, Vec<u8>)> {
    std::fs::write(folder.join("a.cpp"), SOURCE).unwrap();
    let run = |program: &str, args: &[&str]| {
        Command::new(program).args(args).current_dir(folder).status().is_ok_and(|status| status.success())
    };
    let compile =
        ["--target=x86_64-pc-windows-msvc", "-O1", "-g", "-gcodeview", "-c", "a.cpp", "-o", "a.obj"];
    let link =
        ["/nologo", "/debug", "/nodefaultlib", "/entry:entry", "/subsystem:console", "/out:a.exe", "a.obj"];
    let made = run("clang-22", &compile) && run("lld-link-22", &link);
    assert!(made || std::env::var("CI").is_err(), "clang-22 and lld-link-22 are needed for this test");
    let read = |name| std::fs::read(folder.join(name)).ok();
    read("a.exe").zip(read("a.pdb")).filter(|_| made)
}

/// All code, some of which is inlined.
fn wanted() -> Vec<u64> {
    (0x1000..0x1040).collect()
}

fn names(pdb: &[u8], id: &PdbId) -> (Result<(), PdbError>, usize) {
    let wanted = wanted();
    let mut answer = Answer::new(&wanted);
    let outcome = look_up(&mut Cursor::new(pdb), id, true, &mut answer);
    (outcome, (0..wanted.len()).filter(|&at| !answer.lacks(at)).count())
}

#[test]
fn damaged_files_are_survived_in_bounded_time() {
    let folder = tempfile::tempdir().unwrap();
    let Some((image, whole)) = made(folder.path()) else { return };
    let id = pe::pdb_of(&mut Cursor::new(&image)).unwrap().unwrap();
    let (outcome, named) = names(&whole, &id);
    assert!(outcome.is_ok() && named >= 3, "{outcome:?} {named}");
    let started = Instant::now();
    let (mut errors, mut of_types) = (0, 0);
    // What tells of types has the names of inlined functions alone.
    let mut take = |spoilt: &[u8]| {
        let (outcome, still_named) = names(spoilt, &id);
        errors += usize::from(outcome.is_err());
        if let Err(PdbError::Damaged { stream: Some(2 | 4), .. }) = outcome {
            of_types += 1;
            assert_eq!(still_named, named);
        }
    };
    for at in (0..whole.len()).filter(|&at| whole[at] != 0).step_by(2) {
        for value in [0xff, 0, 0x7f, whole[at] ^ 1] {
            let mut spoilt = whole.clone();
            spoilt[at] = value;
            take(&spoilt);
            spoilt[at..].iter_mut().take(4).for_each(|byte| *byte = 0xff);
            take(&spoilt);
        }
    }
    for length in (0..whole.len()).step_by(500) {
        take(&whole[..length]);
    }
    assert!(errors > 100 && of_types > 0, "{errors} {of_types}");
    assert!(started.elapsed() < Duration::from_mins(2), "{:?}", started.elapsed());
}

#[test]
fn damaged_images_are_survived() {
    let folder = tempfile::tempdir().unwrap();
    let Some((whole, _)) = made(folder.path()) else { return };
    for at in 0..whole.len() {
        for value in [0xff, 0, whole[at] ^ 1] {
            let mut spoilt = whole.clone();
            spoilt[at] = value;
            let _ = pe::pdb_of(&mut Cursor::new(&spoilt));
            let _ = pe::look_up(&mut Cursor::new(&spoilt), &mut Answer::new(&wanted()));
        }
        let _ = pe::pdb_of(&mut Cursor::new(&whole[..at]));
    }
}

#[test]
fn a_pdb_of_another_build_names_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some((image, whole)) = made(folder.path()) else { return };
    let id = pe::pdb_of(&mut Cursor::new(&image)).unwrap().unwrap();
    let mut guid = id.guid;
    guid[0] ^= 1;
    for other in [PdbId { guid, ..id.clone() }, PdbId { age: id.age + 1, ..id.clone() }] {
        assert!(matches!(names(&whole, &other), (Err(PdbError::Other), 0)));
    }
    assert!(matches!(names(&image, &id), (Err(PdbError::NoPdb), 0)));
}
