//! The same for aarch64: the C and C++ runtimes of the cross compiler, and code that signs its return addresses.

use std::path::Path;

use gimli::{AArch64, UnwindTableRow, Vendor};

use super::{Tested, assert_agrees, compare_file, compiled};
use crate::Registers;
use crate::aarch64::{self, Aarch64, ReturnAddressMask};

impl Tested for Aarch64 {
    const VENDOR: Vendor = Vendor::AArch64;

    fn registers() -> Registers<Self> {
        let general = std::array::from_fn(|register| 0x7fff_0000_0000 + 0x1_0000 * register as u64);
        let mask = ReturnAddressMask::of_address_bits(48);
        aarch64::Registers::new(0x40_0123, 0x7ffe_0000_0000, general, mask)
    }

    fn is_signed(row: &UnwindTableRow<usize>) -> bool {
        matches!(row.register(AArch64::RA_SIGN_STATE), Some(gimli::RegisterRule::Constant(1)))
    }
}

#[test]
fn the_runtimes_agree_with_gimli() {
    for name in ["libc.so.6", "ld-linux-aarch64.so.1", "libstdc++.so.6", "libgcc_s.so.1", "libm.so.6"] {
        assert_agrees::<Aarch64>(&Path::new("/usr/aarch64-linux-gnu/lib").join(name));
    }
}

#[test]
fn signed_code_agrees_with_gimli() {
    for flags in [&["-mbranch-protection=standard"][..], &["-mbranch-protection=pac-ret+leaf", "-O0"]] {
        let Some(data) = compiled("aarch64-linux-gnu-gcc", flags, &[]) else { return };
        let compared = compare_file::<Aarch64>(&data);
        assert!(compared.functions > 3 && compared.errors == 0, "{compared:?}");
    }
}
