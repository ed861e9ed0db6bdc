//! Names of block devices, and of what is asked of them.

use std::fs;

/// `MINORBITS` of `include/linux/kdev_t.h`.
const MINOR_BITS: u32 = 20;

/// A device's name as in `/sys/block`, by its number in the kernel (`dev_t`); `major:minor` where it is gone.
pub(crate) fn device_name(device: u32) -> String {
    let number = format!("{}:{}", device >> MINOR_BITS, device & ((1 << MINOR_BITS) - 1));
    let link = fs::read_link(format!("/sys/dev/block/{number}")).ok();
    let name = link.as_deref().and_then(|link| link.file_name()).and_then(|name| name.to_str());
    name.map_or(number, str::to_owned)
}

/// What a request does: `enum req_op` of `include/linux/blk_types.h`.
pub(crate) fn operation_name(operation: u32) -> &'static str {
    match operation {
        0 => "read",
        1 => "write",
        2 => "flush",
        3 => "discard",
        5 => "secure_erase",
        7 => "zone_append",
        9 => "write_zeroes",
        10..=17 => "zone",
        34 => "driver_in",
        35 => "driver_out",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_there_has_its_number() {
        assert_eq!(device_name(4000 << MINOR_BITS | 7), "4000:7");
    }
}
