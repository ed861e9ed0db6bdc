//! Code that lies at one address after other code, in images, of methods, and in processes of one number.

use collector_common::record::{Frame, ProcessId};
use export::import::Imported;

use crate::made::Made;

const CODE: u64 = 0x20_0000;

/// The names of the stack of each sample, innermost first, with its process.
fn stacks(imported: &Imported) -> Vec<(String, Vec<String>)> {
    let (machine, symbols) = (&imported.machine, &imported.symbols);
    machine
        .samples()
        .iter()
        .map(|sample| {
            let process = machine.process(machine.thread(sample.thread).process);
            let frames = machine.stacks().get(sample.stack).iter();
            let names = frames.map(|frame| symbols.name(*frame).function.to_owned()).collect();
            (machine.string(process.name).to_owned(), names)
        })
        .collect()
}

fn sampled(made: &mut Made, at: i64, addresses: &[u64]) {
    made.sample(at, 0, 71, addresses[0], 0);
    made.stack(at + 1, at as u64, 70, 71, addresses);
}

#[test]
fn one_address_is_one_method_after_the_other() {
    let mut made = Made::new();
    made.process(1, 1, 70, "made.exe");
    made.thread(2, 70, 71, "");
    sampled(&mut made, 10, &[CODE + 8]);
    made.method(20, 143, 70, CODE, "First");
    sampled(&mut made, 30, &[CODE + 8, CODE + 0x100]);
    made.method(40, 144, 70, CODE, "First");
    sampled(&mut made, 50, &[CODE + 8]);
    made.method(60, 143, 70, CODE, "Second");
    sampled(&mut made, 70, &[CODE + 8, CODE]);
    // Of another process.
    made.method(80, 143, 99, CODE, "Elsewhere");
    sampled(&mut made, 90, &[CODE + 8]);
    let imported = made.finish();
    let names: Vec<_> = stacks(&imported).into_iter().map(|(_, names)| names.join(" ")).collect();
    let expected = [
        "[unmapped]+0x200008",
        // The second one is a return address: the call is the last byte of the method.
        "Made.Type.First Made.Type.First",
        "[unmapped]+0x200008",
        "Made.Type.Second [unmapped]+0x1fffff",
        "Made.Type.Second",
    ];
    assert_eq!(names, expected);
}

#[test]
fn one_address_is_one_image_after_the_other() {
    let mut made = Made::new();
    made.process(1, 1, 70, "made.exe");
    made.thread(2, 70, 71, "");
    made.image(3, 10, 70, CODE, r"\Device\HarddiskVolume1\one.dll");
    sampled(&mut made, 10, &[CODE + 8]);
    made.image(20, 2, 70, CODE, r"\Device\HarddiskVolume1\one.dll");
    sampled(&mut made, 30, &[CODE + 8]);
    made.image(40, 10, 70, CODE + 0x1000, r"\??\C:\other\two.dll");
    sampled(&mut made, 50, &[CODE + 0x1008]);
    // A method of the image's native code.
    made.method(60, 143, 70, CODE + 0x1000, "Native");
    sampled(&mut made, 70, &[CODE + 0x1008, CODE + 0x2000]);
    let imported = made.finish();
    let names: Vec<_> = stacks(&imported).into_iter().map(|(_, names)| names.join(" ")).collect();
    let expected =
        ["one.dll+0x8", "[unmapped]+0x200008", "Made.Type.Native", "Made.Type.Native two.dll+0xfff"];
    assert_eq!(names, expected);
    let machine = &imported.machine;
    let paths: Vec<_> = machine.modules().iter().map(|module| machine.string(module.path)).collect();
    assert!(paths.contains(&r"C:\other\two.dll") && paths.contains(&r"\Device\HarddiskVolume1\one.dll"));
}

#[test]
fn a_number_that_is_used_again_is_another_process() {
    let mut made = Made::new();
    for (start, image) in [(100, "first.exe"), (200, "second.exe")] {
        made.process(start, 1, 70, image);
        made.thread(start + 1, 70, 71, "");
        made.image(start + 2, 10, 70, CODE, &format!(r"\??\C:\{image}"));
        sampled(&mut made, start + 10, &[CODE + 8]);
        made.process(start + 50, 2, 70, image);
    }
    let imported = made.finish();
    let found = stacks(&imported);
    let expected = ["first.exe", "second.exe"].map(|image| (image.to_owned(), vec![format!("{image}+0x8")]));
    assert_eq!(found, expected);
    let machine = &imported.machine;
    let lives: Vec<_> = machine
        .processes()
        .iter()
        // The records themselves do not tell whose they are.
        .filter(|process| machine.string(process.name) != "[unknown]")
        .map(|process| (process.pid.0, process.start.0, process.end.map(|end| end.0)))
        .collect();
    assert_eq!(lives, [(70, 100, Some(150)), (70, 200, Some(250))]);
    let program = machine.program(machine.programs_of(ProcessId(1)).next().unwrap());
    assert_eq!(machine.arguments(program).collect::<Vec<_>>(), ["second.exe", "--now"]);
}

#[test]
fn the_kernels_images_are_every_processs() {
    const DRIVER: u64 = 0xffff_8000_0010_0000;
    let mut made = Made::new();
    made.image(1, 10, 0, DRIVER, r"\SystemRoot\System32\drivers\made.sys");
    made.process(2, 1, 70, "made.exe");
    made.thread(3, 70, 71, "");
    sampled(&mut made, 10, &[DRIVER + 0x20, 0xffff_9000_0000_0000]);
    let imported = made.finish();
    let expected = ["made.sys+0x20", "[kernel]+0xffff8fffffffffff"];
    assert_eq!(stacks(&imported), [("made.exe".to_owned(), expected.map(str::to_owned).to_vec())]);
    let machine = &imported.machine;
    assert!(machine.frames().iter().all(Frame::is_kernel));
    let mapped: Vec<_> = machine.mappings().iter().map(|it| (it.process.0, it.start.0, it.bias)).collect();
    assert_eq!(mapped.len(), 2, "{mapped:?}");
    assert!(mapped.iter().all(|(_, start, bias)| (*start, *bias) == (DRIVER, DRIVER)));
}

/// Instructions of ARM64 begin at multiples of 4, those of x86 anywhere. Code of a process may be emulated.
#[test]
fn a_processor_is_known_by_its_kernels_code() {
    const KERNEL: u64 = 0xffff_8000_0010_0000;
    let architecture = |addresses: &[u64]| {
        let mut made = Made::new();
        sampled(&mut made, 10, addresses);
        made.finish().machine.system().architecture.clone()
    };
    let aligned: Vec<u64> = (0..40).map(|number| KERNEL + number * 36).collect();
    assert_eq!(architecture(&aligned), "aarch64");
    assert_eq!(architecture(&[&[0x40_1001, 0x40_2003][..], &aligned].concat()), "aarch64");
    // Too few to tell.
    assert_eq!(architecture(&aligned[..31]), "");
    assert_eq!(architecture(&[0x40_1001, 0x40_2003]), "");
    // One is no code.
    assert_eq!(architecture(&[&[u64::MAX][..], &aligned].concat()), "");
    let unaligned: Vec<u64> = (0..8).map(|number| KERNEL + number * 37).collect();
    assert_eq!(architecture(&unaligned), "x86_64");
}
