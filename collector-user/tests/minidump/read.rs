//! Dumps that are made by hand: what becomes of them.

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::process::Command;

use collector_common::record::{ExportMachine, FrameFlags};
use collector_user::minidump::Minidump;
use export::import::{Begin, ImportError, ImportFormat as _, Imported};

use crate::made::{
    ARM64, BASE, DATE, EXCEPTION, MODULES, Made, Program, SIZE, STACK, THREADS, TIME, X64, X86, arm64, longs,
    text, words, x64,
};

pub(crate) fn import(bytes: &[u8], folder: Option<&Path>) -> Result<Imported, ImportError> {
    let dump = Minidump.read(ExportMachine::default(), &mut Cursor::new(bytes), folder);
    dump.map(|dump| dump.imported)
}

/// The frames of a sample's stack, innermost first: the file's name, the address in it, and whether it is guessed.
fn frames(machine: &ExportMachine, sample: usize) -> Vec<(String, u64, bool)> {
    let sample = machine.samples().iter().nth(sample).unwrap();
    let stack = machine.stacks().get(sample.stack).iter().map(|frame| machine.frames().get(*frame));
    stack
        .map(|frame| {
            let path = machine.string(machine.module(frame.module).path);
            let path = if frame.flags.has(FrameFlags::CUT) { "cut" } else { path };
            let name = path.rsplit('\\').next().unwrap();
            (name.to_owned(), frame.address.0, frame.flags.has(FrameFlags::HEURISTIC))
        })
        .collect()
}

fn expected(program: &Program) -> Vec<(String, u64, bool)> {
    program.frames.into_iter().map(|address| ("Twice.exe".to_owned(), address, false)).collect()
}

#[test]
fn a_dump_has_its_process_threads_and_modules() {
    let program = x64();
    let mut made = program.dump(true);
    let mut exception = words(&[4712, 0, 0xc000_0005, 0]);
    exception.extend(longs(&[0, BASE + 0x1015, 0]));
    exception.resize(168, 0);
    made.stream(EXCEPTION, &exception);
    let Imported { machine, left_out, .. } = import(&made.finish(), None).unwrap();

    let process = &machine.processes()[0];
    assert_eq!((process.pid.0, machine.string(process.name)), (4711, "Twice.exe"));
    let threads: Vec<(u32, &str)> =
        machine.threads().iter().map(|thread| (thread.tid.0, machine.string(thread.name))).collect();
    assert_eq!(threads, [(4712, "The worker"), (4713, "Twice.exe")]);
    let samples: Vec<_> = machine.samples().iter().collect();
    let exceptions: Vec<_> =
        samples.iter().map(|sample| machine.attribute(sample.attributes, "exception")).collect();
    assert_eq!(exceptions, [Some("0xc0000005 at 0x180001015".into()), None]);
    assert!(samples.iter().all(|sample| sample.value == 1));
    let kind = &machine.kinds()[usize::from(samples[0].kind.0)];
    assert_eq!((machine.string(kind.name), kind.unit.name()), ("thread", "count"));

    let mapping = &machine.mappings()[0];
    assert_eq!((mapping.start.0, mapping.end.0), (BASE, BASE + u64::from(SIZE)));
    let details = machine.details(mapping.module).unwrap();
    assert_eq!(details.version.as_deref(), Some("1.2.3.4"));
    let pdb = details.pdb.as_ref().unwrap();
    // The GUID's bytes are 1 to 16, and its first three numbers have their lowest bytes first.
    let told = (&*pdb.path, pdb.signature.to_string(), pdb.age);
    assert_eq!(told, (r"Q:\build\twice.pdb", "0403020106050807090A0B0C0D0E0F10".to_owned(), 3));

    let system = machine.system();
    let told = (&*system.kernel, &*system.architecture, system.cpus);
    assert_eq!(told, ("Windows 10.0.19045", "x86_64", 2));
    assert_eq!(system.clocks.unix_at(samples[0].time), Some(i128::from(TIME) * 1_000_000_000));
    assert_eq!(frames(&machine, 1), [("cut".to_owned(), 0, false)]);
    assert!(left_out[0].starts_with("threads without registers in the dump, "), "{left_out:?}");
}

/// The program's file is nowhere: the image is in the dump.
#[test]
fn images_in_memory_have_their_unwind_codes() {
    for program in [x64(), arm64()] {
        let Imported { machine, left_out, .. } = import(&program.dump(true).finish(), None).unwrap();
        assert_eq!(frames(&machine, 0), expected(&program), "{left_out:?}");
        assert!(left_out.iter().any(|line| line.contains("not_walked 1")), "{left_out:?}");
    }
}

#[test]
fn images_are_found_beside_the_dump_if_they_are_the_same() {
    for program in [x64(), arm64()] {
        let folder = tempfile::tempdir().unwrap();
        let dump = program.dump(false).finish();
        let image = folder.path().join("twice.exe");
        let frames = || frames(&import(&dump, Some(folder.path())).unwrap().machine, 0);
        // On ARM64 the frame pointer leads to the caller, which is a guess then.
        let is_known = |frames: &[(String, u64, bool)]| {
            assert_eq!(frames[0], expected(&program)[0]);
            frames[1..].iter().all(|(name, _, is_guessed)| name == "Twice.exe" && !is_guessed)
        };
        assert!(!is_known(&frames()), "it is not there");
        fs::write(&image, program.file()).unwrap();
        assert_eq!(frames(), expected(&program));
        // The date in its header.
        let mut other = program.file();
        other[0x48] ^= 1;
        fs::write(&image, other).unwrap();
        assert!(!is_known(&frames()), "it is another one");
    }
}

/// Where symbol servers have it; and what is said where it is nowhere.
#[test]
fn images_are_found_in_the_folders_of_the_symbol_path() {
    let program = x64();
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("x.dmp");
    fs::write(&dump, program.dump(false).finish()).unwrap();
    let convert = || {
        let symbols = folder.path().join("symbols");
        let mut collector = Command::new(env!("CARGO_BIN_EXE_collector"));
        collector.arg("convert").arg(&dump).args(["--format", "folded", "-o", "-"]);
        let output = collector.env("_NT_SYMBOL_PATH", format!("srv*{}", symbols.display())).output().unwrap();
        assert!(output.status.success());
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let [stacks, told] = convert();
    assert!(stacks.contains("The worker;[stack cut];Twice.exe+0x1015 1\n"), "{stacks}");
    assert!(told.contains("images on stacks are not here") && told.contains("Twice.exe"), "{told}");
    let stored = folder.path().join("symbols/Twice.exe").join(format!("{DATE:08X}{SIZE:x}"));
    fs::create_dir_all(&stored).unwrap();
    fs::write(stored.join("Twice.exe"), program.file()).unwrap();
    let [stacks, told] = convert();
    assert!(stacks.contains("The worker;Twice.exe+0x1008;Twice.exe+0x1015 1\n"), "{stacks}");
    assert!(!told.contains("images on stacks are not here"), "{told}");
}

/// It has no unwind codes; what is told says so.
#[test]
fn threads_of_x86_have_their_innermost_frame() {
    let mut made = Made::default();
    made.system(X86, 2);
    let mut context = vec![0; 716];
    context[..4].copy_from_slice(&words(&[0x1_0003]));
    context[0xb8..0xbc].copy_from_slice(&words(&[0x40_1234]));
    context[0xc4..0xc8].copy_from_slice(&words(&[STACK as u32]));
    let at = made.put(&context);
    let stack = made.put(&[0; 64]);
    let threads = [1, 7, 0, 0, 0, 0, 0, STACK as u32, 0, 64, stack, context.len() as u32, at];
    made.stream(THREADS, &words(&threads));
    let Imported { machine, left_out, .. } = import(&made.finish(), None).unwrap();
    let stack = frames(&machine, 0);
    assert_eq!(stack, [("[unmapped]".to_owned(), 0x40_1234, false), ("cut".to_owned(), 0, false)]);
    assert!(left_out.iter().any(|line| line.starts_with("threads in 32-bit code of x86, ")), "{left_out:?}");
    assert_eq!(machine.system().architecture, "x86");
}

/// Of a 32-bit program above 2 GiB, as a writer has them that extends addresses by their sign.
#[test]
fn addresses_of_x86_are_of_32_bits() {
    const CODE: u32 = 0xa000_0000;
    let extended = |address: u32| 0xffff_ffff_0000_0000 | u64::from(address);
    let mut made = Made::default();
    made.system(X86, 2);
    let path = made.put(&text(r"Q:\high.exe"));
    let mut module = [longs(&[extended(CODE)]), words(&[SIZE, 0, DATE, path])].concat();
    module.resize(108, 0);
    made.stream(MODULES, &[words(&[1]), module].concat());
    let mut context = vec![0; 716];
    context[..4].copy_from_slice(&words(&[0x1_0003]));
    context[0xb8..0xbc].copy_from_slice(&words(&[CODE + 0x1234]));
    let at = made.put(&context);
    made.stream(THREADS, &words(&[1, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, context.len() as u32, at]));
    let mut exception = words(&[7, 0, 0xc000_0005, 0]);
    exception.extend(longs(&[0, extended(CODE + 0x1234), 0]));
    exception.resize(168, 0);
    made.stream(EXCEPTION, &exception);
    let Imported { machine, .. } = import(&made.finish(), None).unwrap();
    assert_eq!(frames(&machine, 0)[0], ("high.exe".to_owned(), 0x1234, false));
    let exception = machine.attribute(machine.samples().iter().next().unwrap().attributes, "exception");
    assert_eq!(exception, Some("0xc0000005 at 0xa0001234".into()));
}

/// Each of 400 threads in an image of its own, with a name that would begin a line.
#[test]
fn images_that_are_too_many_are_told() {
    const THERE: u32 = 400;
    let mut made = Made::default();
    made.system(X64, 2);
    let (mut modules, mut threads) = (words(&[THERE]), words(&[THERE]));
    for index in 0..THERE {
        let base = BASE + u64::from(index * 0x1_0000);
        let path = made.put(&text(&format!("Q:\\{index}\nwarning: x.exe")));
        let mut module = [longs(&[base]), words(&[SIZE, 0, DATE, path])].concat();
        module.resize(108, 0);
        modules.extend(module);
        let mut context = x64().context;
        context[0xf8..0x100].copy_from_slice(&(base + 0x1015).to_le_bytes());
        let at = made.put(&context);
        threads.extend(words(&[index, 0, 0, 0, 0, 0, 0, 0, 0, 0, context.len() as u32, at]));
    }
    made.stream(MODULES, &modules);
    made.stream(THREADS, &threads);
    let Imported { left_out, .. } = import(&made.finish(), None).unwrap();
    assert!(
        left_out.iter().any(|line| line.ends_with("384 are the most that are opened: 16")),
        "{left_out:?}"
    );
    assert!(left_out.iter().any(|line| line.contains("warning: x.exe and 395 more")), "{left_out:?}");
    assert!(left_out.iter().all(|line| !line.contains('\n')), "{left_out:?}");
}

/// An image is in the dump's memory, and there is no place for its copy.
#[cfg(target_os = "linux")]
#[test]
fn an_image_that_can_not_be_copied_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("x.dmp");
    fs::write(&dump, x64().dump(true).finish()).unwrap();
    let mut collector = Command::new(env!("CARGO_BIN_EXE_collector"));
    collector.arg("convert").arg(&dump).args(["--format", "folded", "-o", "-"]);
    let output = collector.env("TMPDIR", folder.path().join("nowhere")).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && told.contains("could not be copied out of the dump's memory"),
        "{told}"
    );
}

#[test]
fn what_is_not_read_is_told() {
    let error = |bytes: &[u8]| import(bytes, None).unwrap_err().to_string();
    let mut linux = Made::default();
    linux.system(X64, 0x8201);
    assert!(error(&linux.finish()).contains("platform 0x8201"));
    let mut arm = Made::default();
    arm.system(5, 2);
    assert!(error(&arm.finish()).contains("processor architecture 5"));
    let mut without_threads = Made::default();
    without_threads.system(ARM64, 2);
    assert!(error(&without_threads.finish()).contains("it lacks the list of threads"));
    assert!(error(&Made::default().finish()).contains("the description of the system"));
    let whole = x64().dump(false).finish();
    assert!(Minidump.begins(&Begin::of(&whole)) && !Minidump.begins(&Begin::of(b"MDM")));
}
