//! The GUID that a provider's name makes: how `TraceLogging` and .NET's `EventSource` number providers that have no manifest.
//!
//! It is version 5 of RFC 9562 (SHA-1 of a name within a namespace), but for the name, which is upper case and UTF-16 with the higher byte
//! first, and the result, whose first three numbers are taken with the lower byte first. Source: `TraceLoggingProvider.h`'s
//! documentation, and `EventSource.GenerateGuidFromName` of .NET. SHA-1: RFC 3174.

use collector_common::event::{ByteOrder, Guid};

/// The namespace of providers.
const NAMESPACE: [u8; 16] =
    [0x48, 0x2c, 0x2d, 0xb2, 0xc3, 0x90, 0x47, 0xc8, 0x87, 0xf8, 0x1a, 0x15, 0xbf, 0xc1, 0x30, 0xfb];

/// The GUID of the provider that is called so, in any case.
pub(super) fn guid_of_name(name: &str) -> Guid {
    let mut text = NAMESPACE.to_vec();
    for letter in name.chars() {
        let mut upper = letter.to_uppercase();
        // Letters that become several stay as they are, as in .NET.
        let upper = upper.next().filter(|_| upper.next().is_none()).unwrap_or(letter);
        text.extend(upper.encode_utf16(&mut [0; 2]).iter().flat_map(|unit| unit.to_be_bytes()));
    }
    let hash = sha1(&text);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    bytes[7] = bytes[7] & 0xf | 0x50;
    Guid::from_bytes(bytes, ByteOrder::Little)
}

/// It guards nothing here: names of providers are short, and whoever chooses one may choose the GUID as well.
fn sha1(text: &[u8]) -> [u8; 20] {
    let mut message = text.to_vec();
    message.push(0x80);
    message.resize(message.len().next_multiple_of(64), 0);
    if message.len() - text.len() < 9 {
        message.resize(message.len() + 64, 0);
    }
    let bits = (text.len() as u64 * 8).to_be_bytes();
    let end = message.len();
    message[end - 8..].copy_from_slice(&bits);

    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in message.as_chunks::<64>().0 {
        state = with_block(state, block);
    }
    let mut hash = [0; 20];
    for (bytes, word) in hash.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
    hash
}

fn with_block(state: [u32; 5], block: &[u8; 64]) -> [u32; 5] {
    let mut words = [0_u32; 80];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for at in 16..80 {
        words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
    }
    let [mut one, mut two, mut three, mut four, mut five] = state;
    for (round, word) in words.iter().enumerate() {
        let (mix, constant) = match round {
            0..20 => (two & three | !two & four, 0x5a82_7999),
            20..40 => (two ^ three ^ four, 0x6ed9_eba1),
            40..60 => (two & three | two & four | three & four, 0x8f1b_bcdc),
            _ => (two ^ three ^ four, 0xca62_c1d6_u32),
        };
        let sum = one.rotate_left(5).wrapping_add(mix).wrapping_add(five);
        let next = sum.wrapping_add(*word).wrapping_add(constant);
        (five, four, three, two, one) = (four, three, two.rotate_left(30), one, next);
    }
    let mut sums = state;
    for (sum, add) in sums.iter_mut().zip([one, two, three, four, five]) {
        *sum = sum.wrapping_add(add);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3174, section 7.3, and FIPS 180-2's message of 56 bytes, whose length is in a block of its own.
    #[test]
    fn hashes_are_those_of_the_standard() {
        let hex = |text: &[u8]| sha1(text).map(|byte| format!("{byte:02x}")).concat();
        assert_eq!(hex(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let long = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hex(long), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
        assert_eq!(hex(&vec![b'a'; 1_000_000]), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
        assert_eq!(hex(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    }

    /// As Microsoft's examples of `TraceLogging` have it, and as .NET's own provider is known.
    #[test]
    fn names_have_the_guids_that_are_published() {
        let known = [
            ("MyCompany.MyComponent", "ce5fa4ea-ab00-5402-8b76-9f76ac858fb5"),
            ("mycompany.mycomponent", "ce5fa4ea-ab00-5402-8b76-9f76ac858fb5"),
            ("Microsoft-Diagnostics-DiagnosticSource", "adb401e1-5296-51f8-c125-5fda75826144"),
        ];
        for (name, guid) in known {
            assert_eq!(guid_of_name(name).to_string(), guid, "{name}");
        }
    }
}
