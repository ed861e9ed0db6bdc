//! Lines of outer frames in a sample of `perf.data`, which has no place for them: they are the raw data of the sampling clock's samples, that
//! have none of their own.
//!
//! [`MAGIC`], then for each line its address, 8 bytes in the recording's order, and the line.

use bytemuck::Zeroable as _;
use collector_common::perf::ByteOrder;
use collector_common::wire::OuterLines;

/// What such data begins with.
const MAGIC: [u8; 8] = *b"outerlin";

/// Adds lines to `out`.
#[cfg(target_os = "linux")]
pub(crate) fn pack(lines: &OuterLines, out: &mut Vec<u8>) {
    out.extend(MAGIC);
    for (address, bytes) in lines.present() {
        out.extend(address.to_ne_bytes());
        out.extend(bytes);
    }
}

/// `None` where it is other data.
pub(crate) fn unpack(data: &[u8], order: ByteOrder) -> Option<OuterLines> {
    let packed = data.strip_prefix(&MAGIC)?;
    let mut lines = OuterLines::zeroed();
    let places = lines.lines.iter_mut().zip(&mut lines.bytes);
    for (one, (line, bytes)) in packed.chunks_exact(8 + OuterLines::LINE).zip(places) {
        let (address, rest) = one.split_first_chunk()?;
        *line = match order {
            ByteOrder::Little => u64::from_le_bytes(*address),
            ByteOrder::Big => u64::from_be_bytes(*address),
        };
        bytes.copy_from_slice(rest);
    }
    Some(lines)
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_what_they_were() {
        let mut lines = OuterLines::zeroed();
        for (at, (line, bytes)) in lines.lines.iter_mut().zip(&mut lines.bytes).enumerate() {
            // The first one again and again behind the tenth, one was absent.
            let at = if at > 9 { 0 } else { at as u64 };
            *line = if at == 3 { 0 } else { 0x7fff_0000 + 64 * at };
            bytes.fill(at as u8);
        }
        let mut packed = Vec::new();
        pack(&lines, &mut packed);
        assert_eq!(packed.len(), 8 + 9 * 72);
        let read = unpack(&packed, ByteOrder::NATIVE).unwrap();
        assert_eq!(read.present().collect::<Vec<_>>(), lines.present().collect::<Vec<_>>());
        assert_eq!(unpack(b"other da", ByteOrder::NATIVE).map(|_| ()), None);
        packed.extend([1; 8 << 10]);
        assert_eq!(
            unpack(&packed, ByteOrder::NATIVE).unwrap().present().count(),
            10,
            "no more than there is room for"
        );
    }
}
