//! Code of PE images that Linux programs map, as .NET's runtime does, with names of their PDBs.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;

use crate::prerequisites::live_with;
use crate::programs::{compile, folder};
use crate::recording::{Recorded, record_in};

const SOURCE: &str = "namespace image {
static inline __attribute__((always_inline)) unsigned long step(unsigned long x) { return x * 6364136223846793005ul + 1; }
extern \"C\" unsigned long spin(unsigned long rounds) {
  unsigned long x = rounds;
  for (unsigned long i = 0; i < rounds; i++) x = step(x);
  return x | 1;
}
}
";

#[test]
fn code_of_an_image_is_named_by_its_pdb() {
    let test = "code_of_an_image_is_named_by_its_pdb";
    let Some(_live) = live_with(test, &["clang-22", "lld-link-22"]) else { return };
    let folder = folder();
    let program = compile(folder.path(), "image", "image.c", &[]);
    fs::write(folder.path().join("spin.cpp"), SOURCE).unwrap();
    let run = |program: &str, args: &[&str]| {
        assert!(Command::new(program).args(args).current_dir(folder.path()).status().unwrap().success());
    };
    run(
        "clang-22",
        &["--target=x86_64-pc-windows-msvc", "-O1", "-g", "-gcodeview", "-c", "spin.cpp", "-o", "spin.obj"],
    );
    run(
        "lld-link-22",
        &["/nologo", "/debug", "/nodefaultlib", "/dll", "/entry:spin", "/noimplib", "spin.obj"],
    );
    let image = folder.path().join("spin.dll");
    let recorded = |symbols: &OsStr| {
        record_in(folder.path(), ["--".as_ref(), program.as_os_str(), image.as_os_str()], |recorder| {
            recorder.env("_NT_SYMBOL_PATH", symbols);
        })
    };
    let has = |recorded: &Recorded, name: &str| {
        let frames = recorded.stacks.iter().flat_map(|stack| &stack.frames);
        frames.filter(|frame| *frame == name).count() > 0
    };
    let beside = recorded(OsStr::new(""));
    assert!(has(&beside, "spin") && has(&beside, "image::step_[i]"), "{:?}", beside.stacks);
    let elsewhere = folder.path().join("symbols");
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(folder.path().join("spin.pdb"), elsewhere.join("spin.pdb")).unwrap();
    assert!(!has(&recorded(OsStr::new("")), "image::step_[i]"));
    assert!(has(&recorded(elsewhere.as_os_str()), "image::step_[i]"));
}
