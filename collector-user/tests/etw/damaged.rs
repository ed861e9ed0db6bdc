//! Files that are cut, spoilt or others: an error, or what is there with what is not.

use std::fs;
use std::io::Cursor;
use std::process::Command;

use collector_common::record::EventRecords;
use collector_user::etw::Etl;
use export::import::{Begin, ImportFormat as _, Imported};
use proptest::prelude::*;
use windows_etw::decode::{EventKey, specs};

use crate::data::bytes;
use crate::made::{Made, Odd};

fn import(bytes: Vec<u8>) -> Option<Imported> {
    Etl.import_with_events(&mut Cursor::new(bytes), EventRecords::LIMIT).ok()
}

#[test]
fn a_cut_file_tells_so() {
    let Some(whole) = bytes("net.4.5.2.x64.etl") else { return };
    let whole_samples = import(whole.clone()).unwrap().machine.samples().len();
    for parts in [3, 2] {
        let cut = whole.len() / parts + 777;
        let imported = import(whole[..cut].to_vec()).unwrap();
        let samples = imported.machine.samples().len();
        assert!(samples > 0 && samples < whole_samples, "{samples} of {whole_samples}");
        let told = imported.left_out.join("\n");
        assert!(told.contains("it is cut, or was not closed"), "{told}");
        assert!(told.contains("the file ends in the buffer at byte"), "{told}");
    }
}

/// By both commands that read it.
#[test]
fn what_a_cut_file_lacks_is_said() {
    let Some(whole) = bytes("net.4.5.2.x64.etl") else { return };
    let folder = tempfile::tempdir().unwrap();
    let said = |args: &[&str]| {
        let mut collector = Command::new(env!("CARGO_BIN_EXE_collector"));
        let output = collector.args(args).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let commands = [&["report", "x.etl"][..], &["convert", "x.etl", "-o", "x.folded"]];
    fs::write(folder.path().join("x.etl"), &whole).unwrap();
    for command in commands {
        let said = said(command);
        assert!(!said.contains("it is cut"), "{said}");
    }
    fs::write(folder.path().join("x.etl"), &whole[..2_000_000]).unwrap();
    for command in commands {
        let said = said(command);
        assert!(said.contains("warning: ") && said.contains("it is cut, or was not closed"), "{said}");
        let lost = said.split("samples, ").nth(1).unwrap();
        assert!(!lost.starts_with("0 lost") && lost.contains(" lost"), "{said}");
    }
}

#[test]
fn small_files_may_be_cut_and_spoilt_anywhere() {
    for name in ["gcevents.etl", "primitive-types.etl"] {
        let Some(whole) = bytes(name) else { return };
        let used = whole.len().min(16 << 10);
        for at in (0..used).step_by(37) {
            import(whole[..at].to_vec());
            let mut spoilt = whole.clone();
            for byte in spoilt.iter_mut().skip(at).take(4) {
                *byte ^= 0xff;
            }
            import(spoilt);
        }
    }
}

/// Each byte of a file that has everything, here and there.
#[test]
fn a_large_file_may_be_spoilt_anywhere() {
    let Some(whole) = bytes("net.4.5.2.x64.etl") else { return };
    // The seed of a linear congruential generator, by Knuth.
    let mut random = 1_u64;
    for _ in 0..4 {
        let mut spoilt = whole.clone();
        for _ in 0..2000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (random >> 16) as usize % spoilt.len();
            spoilt[at] = (random >> 8) as u8;
        }
        import(spoilt);
    }
}

#[test]
fn what_is_no_etl_is_told_apart() {
    let Some(whole) = bytes("primitive-types.etl") else { return };
    assert!(Etl.begins(&Begin::of(&whole[..(16 << 10).min(whole.len())])));
    let cut = "it is cut short: it ends at byte ";
    let others = [
        (&b""[..], "it is empty; "),
        (b"PERFILE2", cut),
        (b"Nettrace\0\0\0\0", cut),
        (&[b'x'; 100], "not a Windows' .etl, or a damaged one: at byte 0, "),
        (&[0; 4096], "not a Windows' .etl, or a damaged one: at byte 0, "),
        (&whole[..72], cut),
    ];
    for (other, told) in others {
        assert!(!Etl.begins(&Begin::of(other)));
        let error = Etl.import(&mut Cursor::new(other)).unwrap_err().to_string();
        assert!(error.starts_with(told), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.etl");
    fs::write(&file, &whole[72..]).unwrap();
    let convert = Command::new(env!("CARGO_BIN_EXE_collector"))
        .args(["convert".as_ref(), file.as_os_str(), "-o".as_ref(), folder.path().join("x.html").as_os_str()])
        .output()
        .unwrap();
    let told = String::from_utf8(convert.stderr).unwrap();
    assert_eq!(convert.status.code(), Some(1), "{told}");
    assert!(told.contains("x.etl can't be converted: ") && told.contains("Windows' .etl"), "{told}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any event with any bytes, at any time.
    #[test]
    fn any_records_are_survived(
        records in proptest::collection::vec(
            (any::<prop::sample::Index>(), 0_u8..6, any::<i64>(), 0_u32..6, proptest::collection::vec(any::<u8>(), 0..160)),
            0..200,
        ),
        are_late in any::<bool>(),
    ) {
        let all: Vec<_> = specs().collect();
        let mut made = Made::new();
        for (index, version, ticks, number, payload) in &records {
            let spec = index.get(&all);
            let (id, opcode) = match spec.key {
                EventKey::Opcode(opcode) => (None, opcode),
                EventKey::Id(id) => (Some(id), 0),
            };
            let at = if are_late { *ticks } else { ticks.rem_euclid(1 << 20) };
            made.odd(&Odd { at, provider: spec.provider, id, opcode, version: *version, number: *number }, payload);
        }
        let Imported { machine, .. } = made.finish();
        prop_assert!(machine.event_records().len() <= records.len());
        for sample in machine.samples().iter() {
            prop_assert!((sample.thread.0 as usize) < machine.threads().len());
            prop_assert!((sample.stack.0 as usize) < machine.stacks().len());
            prop_assert!(usize::from(sample.kind.0) < machine.kinds().len());
        }
        for process in machine.processes() {
            prop_assert!(process.parent.is_none_or(|parent| (parent.0 as usize) < machine.processes().len()));
        }
    }
}
