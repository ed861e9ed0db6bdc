//! Good files of every format that is read, with their ends cut off or with bits that are others.

use export::format::by_name;
use export::import::{Imported, importers};

use super::{FIXED, PER_BYTE, bounded, write_all};
use crate::made::Made;
use crate::random::{imported, written};

/// Cuts of a file, and as many places where a bit is another one.
const PLACES: usize = 24;

#[test]
fn what_is_left_of_files_is_bounded() {
    let made = Made::new();
    for importer in importers() {
        let format = by_name(importer.name()).unwrap();
        let mut good = written(format, &made.machine, &made.symbols);
        // Most of what is compressed would fail at its sum, and none of its content be another.
        if good.starts_with(&[0x1f, 0x8b]) {
            good = super::made::plain(&good);
        }
        let cuts = (0..PLACES).map(|at| good[..good.len() * at / PLACES].to_vec());
        let flipped = (0..PLACES).map(|at| {
            let mut bytes = good.clone();
            let bit = (bytes.len() * 8 - 1) * at / PLACES;
            bytes[bit / 8] ^= 1 << (at % 8);
            bytes
        });
        let mut read = 0;
        for bytes in cuts.chain(flipped).chain([good.clone()]) {
            let most = FIXED + bytes.len() as u64 * PER_BYTE;
            let name = format!("spoilt {}", importer.name());
            if let Ok(Imported { machine, symbols, .. }) = bounded(&name, most, || imported(&bytes)) {
                write_all(&name, &machine, &symbols, most);
                read += 1;
            }
        }
        assert!(read > 0, "{}: not even the good one was read", importer.name());
    }
}
