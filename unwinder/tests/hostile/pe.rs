//! Damaged PE images.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use proptest::prelude::*;
use unwinder::UnwindTable;
use unwinder::x86_64::Registers;

use super::{registers, section, stack, walk};

/// Where the text of the image is linked to lie, as `registers` and `stack` have it.
const IMAGE_BASE: &str = "0x0";

/// A small image with every kind of unwind information; `None`, and a line that says so, without a compiler for it.
fn image() -> Option<&'static [u8]> {
    static IMAGE: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let image = IMAGE.get_or_init(|| {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let image = folder.path().join("image.exe");
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let mut compile = Command::new("x86_64-w64-mingw32-gcc");
        compile.args(["-w", "-O2", "-nostdlib", "-ffreestanding", "-s", "-Wl,-e,entry"]);
        compile.arg(format!("-Wl,--image-base={IMAGE_BASE}")).arg("-o").arg(&image);
        compile.args(["windows.c", "windows_shapes.s"].map(|name| programs.join(name)));
        let Ok(status) = compile.status() else {
            eprintln!("SKIPPED hostile::pe: there is no compiler for Windows");
            return None;
        };
        assert!(status.success(), "{compile:?}");
        Some(std::fs::read(image).unwrap())
    });
    image.as_deref()
}

/// Compiles all of a damaged image, bounds what it holds, and walks through it.
fn use_damaged(data: &[u8], registers: &Registers, stack: &[u8]) {
    let Ok(table) = UnwindTable::from_pe(data) else { return };
    let report = table.size_report();
    // An epilogue takes a byte at least, a rule of its own five, and a table grows by doubling.
    assert!(report.rules <= report.rows + 1 && report.rows <= data.len(), "{report:?}");
    assert!(report.total_bytes() <= 64 * data.len() + 8192, "{report:?} of {} bytes", data.len());
    table.compile_all();
    assert_eq!(table.size_report().rules, report.rules);
    walk(&table, registers, stack);
}

#[test]
fn every_truncation_of_an_image() {
    let Some(data) = image() else { return };
    let registers = Registers::new(0x1400, [0x7000_0000; 16]);
    for length in (0..data.len()).step_by(7) {
        use_damaged(&data[..length], &registers, &[0; 64]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn flipped_bytes_in_an_image(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        place in 0_usize..4,
        registers in registers(),
        stack in stack(),
    ) {
        if let Some(data) = image() {
            let mut damaged = data.to_vec();
            let places = [section(data, ".pdata"), section(data, ".xdata"), section(data, ".text"), 0..0x400];
            let place = &places[place];
            for (at, value) in flips {
                damaged[place.start + at.index(place.len())] = value;
            }
            use_damaged(&damaged, &registers, &stack);
        }
    }

    #[test]
    fn noise_behind_the_headers_of_an_image(
        noise in proptest::collection::vec(any::<u8>(), 0x4000..0x8000),
        registers in registers(),
        stack in stack(),
    ) {
        if let Some(data) = image() {
            let damaged = [&data[..0x400], noise.as_slice()].concat();
            use_damaged(&damaged, &registers, &stack);
        }
    }

    #[test]
    fn noise_is_no_image(data in proptest::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(<UnwindTable>::from_pe(data.as_slice()).is_err());
    }
}
