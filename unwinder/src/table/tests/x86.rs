//! The same for 32-bit x86: the C and C++ runtimes of the cross compiler, and the sections that compilers rarely make.

use std::path::Path;

use gimli::{UnwindTableRow, Vendor};

use super::{Tested, assert_agrees, compare_file, compare_section, compiled, hide_section};
use crate::Registers;
use crate::x86::{self, X86};

impl Tested for X86 {
    const VENDOR: Vendor = Vendor::Default;

    fn registers() -> Registers<Self> {
        let mut gprs = std::array::from_fn(|register| 0xff00_0000 + 0x1_0000 * register as u32);
        // Expressions reach as far below what a register has as above.
        gprs[5] = 0xfff0_0000;
        x86::Registers::new(0x804_9123, gprs)
    }

    fn is_signed(_row: &UnwindTableRow<usize>) -> bool {
        false
    }
}

const GCC: &str = "i686-linux-gnu-gcc";

#[test]
fn the_runtimes_agree_with_gimli() {
    for name in ["libc.so.6", "ld-linux.so.2", "libstdc++.so.6", "libgcc_s.so.1", "libm.so.6"] {
        assert_agrees::<X86>(&Path::new("/usr/i686-linux-gnu/lib").join(name));
    }
}

#[test]
fn position_dependent_code_agrees_with_gimli() {
    for flags in [&["-fno-pic"][..], &["-fno-pic", "-O0"]] {
        let Some(data) = compiled(GCC, flags, &["-no-pie"]) else { return };
        let compared = compare_file::<X86>(&data);
        assert!(compared.functions > 3 && compared.errors == 0, "{compared:?}");
    }
}

#[test]
fn debug_frame_agrees_with_gimli() {
    for compression in ["-gz=none", "-gz=zlib"] {
        let flags = ["-fno-asynchronous-unwind-tables"];
        let Some(mut data) = compiled(GCC, &flags, &["-shared", "-nostdlib", compression]) else { return };
        hide_section(&mut data, ".eh_frame");
        let compared = compare_section::<X86>(&data, ".debug_frame");
        assert!(compared.functions >= 3 && compared.errors == 0, "{compression}: {compared:?}");
    }
}
