//! `perf_event_attr` of every version.

use collector_common::perf::{
    Attr, AttrError, AttrFlags, BranchSampleType, ByteOrder, ParseConfig, SampleType,
};
use proptest::prelude::*;

/// `PERF_ATTR_SIZE_VER0` to `VER9`.
const SIZES: [u32; 10] = [64, 72, 80, 96, 104, 112, 120, 128, 136, 144];

proptest! {
    #[test]
    fn any_bytes_are_written_as_they_were_read(
        mut bytes in proptest::collection::vec(any::<u8>(), 64..200),
        big: bool,
    ) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let size = bytes.len() as u32;
        bytes[4..8].copy_from_slice(&if big { size.to_be_bytes() } else { size.to_le_bytes() });
        let attr = Attr::parse(&bytes, order).unwrap();
        let mut written = Vec::new();
        attr.write(order, &mut written);
        prop_assert_eq!(&written, &bytes);
        // A field that is cut in its middle has no other order.
        if SIZES.contains(&size) || size > 144 {
            let other = if big { ByteOrder::Little } else { ByteOrder::Big };
            written.clear();
            attr.write(other, &mut written);
            prop_assert_eq!(Attr::parse(&written, other).unwrap(), attr);
        }
    }

    #[test]
    fn noise_is_never_fatal(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(attr) = Attr::parse(&bytes, ByteOrder::Little) {
            attr.write(ByteOrder::Big, &mut Vec::new());
        }
    }
}

#[test]
fn what_a_version_lacks_is_zero() {
    let full =
        Attr { branch_sample_type: BranchSampleType(1), sample_regs_user: 2, config4: 3, ..Attr::default() };
    for size in SIZES {
        let mut bytes = Vec::new();
        Attr { size, ..full.clone() }.write(ByteOrder::Little, &mut bytes);
        assert_eq!(bytes.len(), size as usize);
        let attr = Attr::parse(&bytes, ByteOrder::Little).unwrap();
        assert_eq!(attr.branch_sample_type.0, u64::from(size >= 80));
        assert_eq!(attr.sample_regs_user, if size >= 96 { 2 } else { 0 });
        assert_eq!(attr.config4, if size >= 144 { 3 } else { 0 });
    }
}

#[test]
fn impossible_sizes_are_errors() {
    let with_size = |size: u32| {
        let mut bytes = vec![0; 64];
        bytes[4..8].copy_from_slice(&size.to_le_bytes());
        Attr::parse(&bytes, ByteOrder::Little).map(|attr| attr.size)
    };
    assert_eq!(with_size(0), Ok(0));
    assert_eq!(with_size(64), Ok(64));
    assert_eq!(with_size(63), Err(AttrError::Size(63)));
    assert_eq!(with_size(72), Err(AttrError::CutOff { size: 72, len: 64 }));
    assert_eq!(with_size(u32::MAX), Err(AttrError::CutOff { size: u32::MAX, len: 64 }));
    assert_eq!(Attr::parse(&[0; 5], ByteOrder::Little), Err(AttrError::CutOff { size: 64, len: 5 }));
}

/// In C, `disabled` is the lowest bit of a little-endian machine's flags and the highest of a big-endian one's.
#[test]
fn flags_are_bit_fields() {
    let attr = Attr {
        flags: AttrFlags::SAMPLE_ID_ALL.or(AttrFlags::BUILD_ID).with_precise_ip(2),
        sample_type: SampleType::TIME,
        ..Attr::default()
    };
    let mut bytes = Vec::new();
    attr.write(ByteOrder::Big, &mut bytes);
    let flags = u64::from_be_bytes(bytes[40..48].try_into().unwrap());
    // The two bits of `precise_ip` are one number, whose higher bit comes first.
    assert_eq!(flags, 1 << (63 - 18) | 1 << (63 - 34) | 0b10 << (63 - 16));
    let read = Attr::parse(&bytes, ByteOrder::Big).unwrap();
    assert_eq!(read, attr);
    assert_eq!(read.flags.precise_ip(), 2);
    let config = ParseConfig::from(&read, ByteOrder::Big);
    assert!(config.sample_id_all && config.build_id);
    assert_eq!((config.sample_id_size(), config.byte_order), (8, ByteOrder::Big));
}
