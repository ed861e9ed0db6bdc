//! Sections that no compiler here writes: every version of a CIE, augmentation, encoding of pointers and call frame
//! instruction, drawn by lot, against gimli.

use proptest::prelude::*;
use proptest::sample::select;

use super::compare_section;
use crate::x86_64::X86_64;

#[path = "../../../tests/fuzzing/image.rs"]
#[allow(dead_code, reason = "the fuzz targets use more of it")]
mod image;

use image::{SECTION_ADDRESS, with_sections};

const TEXT_ADDRESS: u64 = 0x2000_0000;
const GOT_ADDRESS: u64 = 0x6000_0000;
const RETURN_ADDRESS: u8 = 16;

/// `DW_EH_PE_*`: forms, and what they are relative to: nothing, themselves, `.text`, `.got`.
const FORMS: [u8; 9] = [0x00, 0x01, 0x02, 0x03, 0x04, 0x09, 0x0a, 0x0b, 0x0c];
const BASES: [u8; 4] = [0x00, 0x10, 0x20, 0x30];

fn unsigned(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(0x80 | value as u8);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn signed(mut value: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !(-0x40..0x40).contains(&value) {
        bytes.push(0x80 | value as u8);
        value >>= 7;
    }
    bytes.push(value as u8 & 0x7f);
    bytes
}

/// A value that each form can hold, in one.
fn encoded(form: u8, value: u16) -> Vec<u8> {
    let wide = u64::from(value);
    match form {
        0x01 => unsigned(wide),
        0x09 => signed(wide as i64),
        0x02 | 0x0a => value.to_le_bytes().to_vec(),
        0x03 | 0x0b => u32::from(value).to_le_bytes().to_vec(),
        _ => wide.to_le_bytes().to_vec(),
    }
}

/// A register whose rule changes: not the return address, without whose rule there is no row, but vector registers, too.
fn register() -> impl Strategy<Value = u8> {
    prop_oneof![0..RETURN_ADDRESS, RETURN_ADDRESS + 1..40]
}

fn expression() -> impl Strategy<Value = Vec<u8>> {
    // DW_OP_breg, DW_OP_const1u and DW_OP_plus: nothing that fails.
    let terms = proptest::collection::vec((0_u8..RETURN_ADDRESS, any::<u8>()), 1..6);
    terms.prop_map(|terms| {
        let mut bytes = vec![0x30];
        for (register, number) in terms {
            bytes.extend([0x70 + register, number & 0x3f, 0x22, 0x08, number, 0x22]);
        }
        [unsigned(bytes.len() as u64), bytes].concat()
    })
}

/// Instructions that a CIE may have.
fn rule() -> BoxedStrategy<Vec<u8>> {
    let joined =
        |opcode: u8, register: u8, rest: Vec<u8>| [vec![opcode], unsigned(register.into()), rest].concat();
    prop_oneof![
        (register(), any::<u16>()).prop_map(|(register, n)| [
            vec![0x80 | register & 0x0f],
            unsigned(n.into())
        ]
        .concat()),
        (select(vec![0x05, 0x14]), register(), any::<u16>()).prop_map(move |(opcode, register, n)| joined(
            opcode,
            register,
            unsigned(n.into())
        )),
        (select(vec![0x11, 0x15]), register(), any::<i16>()).prop_map(move |(opcode, register, n)| joined(
            opcode,
            register,
            signed(n.into())
        )),
        (select(vec![0x07, 0x08]), register()).prop_map(move |(opcode, register)| joined(
            opcode,
            register,
            vec![]
        )),
        (register(), 0..RETURN_ADDRESS).prop_map(move |(register, from)| joined(0x09, register, vec![from])),
        (select(vec![0x10, 0x16]), register(), expression())
            .prop_map(move |(opcode, register, expression)| joined(opcode, register, expression)),
        (0..RETURN_ADDRESS, any::<u16>()).prop_map(move |(base, n)| joined(0x0c, base, unsigned(n.into()))),
        (0..RETURN_ADDRESS, any::<i16>()).prop_map(move |(base, n)| joined(0x12, base, signed(n.into()))),
        expression().prop_map(|expression| [vec![0x0f], expression].concat()),
        any::<u16>().prop_map(|n| [vec![0x2e], unsigned(n.into())].concat()),
        Just(vec![0]),
    ]
    .boxed()
}

/// Instructions that change a part of the CFA's rule. Where that is an expression by then they have no meaning.
fn changed_cfa() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0..RETURN_ADDRESS).prop_map(|base| vec![0x0d, base]),
        any::<u16>().prop_map(|n| [vec![0x0e], unsigned(n.into())].concat()),
        any::<i16>().prop_map(|n| [vec![0x13], signed(n.into())].concat()),
    ]
}

/// Those that a function may have.
fn instruction() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        5 => rule(),
        2 => (0x41_u8..0x80).prop_map(|advance| vec![advance]),
        1 => (1_u8..).prop_map(|n| vec![0x02, n]),
        1 => (1_u16..600).prop_map(|n| [&[0x03][..], &n.to_le_bytes()].concat()),
        1 => (1_u32..600).prop_map(|n| [&[0x04][..], &n.to_le_bytes()].concat()),
        1 => register().prop_map(|register| vec![0xc0 | register & 0x0f]),
        1 => (0..=RETURN_ADDRESS).prop_map(|register| vec![0x06, register]),
        1 => changed_cfa(),
        1 => Just(vec![0x0a]),
        1 => Just(vec![0x0b]),
        1 => Just(vec![0x07, RETURN_ADDRESS]),
    ]
}

#[derive(Clone, Debug)]
struct Made {
    is_debug_frame: bool,
    /// Entries have lengths of 64 bits.
    is_wide: bool,
    version: u8,
    letters: Vec<u8>,
    pointers: u8,
    factors: (u8, i8),
    common: Vec<Vec<u8>>,
    start: u16,
    length: u16,
    instructions: Vec<Vec<u8>>,
}

fn made() -> impl Strategy<Value = Made> {
    let letters = proptest::sample::subsequence(b"LPRS".to_vec(), 0..=4).prop_shuffle();
    let pointers = (select(&FORMS[..]), select(&BASES[..])).prop_map(|(form, base)| form | base);
    let factors = (select(vec![1, 2, 4]), select(vec![-8, -4, -1, 1, 8]));
    let programs = (proptest::collection::vec(rule(), 0..6), proptest::collection::vec(instruction(), 0..40));
    let kind = (any::<bool>(), any::<bool>(), select(vec![1, 3, 4]));
    (kind, letters, pointers, factors, programs, (1..0x7000_u16, 1..0x1000_u16)).prop_map(
        |(
            (is_debug_frame, is_wide, version),
            letters,
            pointers,
            factors,
            (common, instructions),
            (start, length),
        )| {
            let (letters, pointers) = if is_debug_frame { (vec![], 0) } else { (letters, pointers) };
            // In `.eh_frame` gimli sees no address size in a CIE of version 4, where libgcc and readelf see one.
            let version = if is_debug_frame { version } else { version.min(3) };
            Made {
                is_debug_frame,
                is_wide,
                version,
                letters,
                pointers,
                factors,
                common,
                start,
                length,
                instructions,
            }
        },
    )
}

impl Made {
    fn entry(&self, section: &mut Vec<u8>, id: u64, rest: &[u8]) {
        let id_size = if self.is_debug_frame && self.is_wide { 8 } else { 4 };
        let length = (id_size + rest.len()) as u64;
        if self.is_wide {
            section.extend([0xff; 4]);
            section.extend(length.to_le_bytes());
        } else {
            section.extend((length as u32).to_le_bytes());
        }
        section.extend(&id.to_le_bytes()[..id_size]);
        section.extend(rest);
    }

    fn section(&self) -> Vec<u8> {
        let has_data = !self.letters.is_empty();
        let mut common = vec![self.version];
        common.extend(if has_data { &b"z"[..] } else { b"" });
        common.extend(&self.letters);
        common.push(0);
        if self.version == 4 {
            common.extend([8, 0]);
        }
        common.extend([vec![self.factors.0], signed(self.factors.1.into()), vec![RETURN_ADDRESS]].concat());
        let mut data = Vec::new();
        for letter in &self.letters {
            match letter {
                b'L' => data.push(0x1b),
                b'P' => data.extend([0x9b, 1, 2, 3, 4]),
                b'R' => data.push(self.pointers),
                _ => {}
            }
        }
        if has_data {
            common.extend(unsigned(data.len() as u64));
            common.extend(&data);
        }
        // DW_CFA_def_cfa and, whatever the factor, DW_CFA_expression for the return address.
        common.extend([0x0c, 7, 8, 0x10, RETURN_ADDRESS, 3, 0x08, 8, 0x1c]);
        common.extend(self.common.concat());

        let mut section = Vec::new();
        self.entry(&mut section, if self.is_debug_frame { u64::MAX } else { 0 }, &common);
        let header = if self.is_wide { 12 } else { 4 };
        let back = if self.is_debug_frame { 0 } else { (section.len() + header) as u64 };
        let pointers = if self.letters.contains(&b'R') { self.pointers } else { 0 };
        let mut function = [encoded(pointers & 15, self.start), encoded(pointers & 15, self.length)].concat();
        if has_data {
            function.extend([4, 1, 2, 3, 4]);
        }
        function.extend(self.instructions.concat());
        self.entry(&mut section, back, &function);
        section
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn made_sections_agree_with_gimli(made in made()) {
        let section = made.section();
        let name = if made.is_debug_frame { ".debug_frame" } else { ".eh_frame" };
        let file = with_sections(&[
            (".text", TEXT_ADDRESS, &[]),
            (".got", GOT_ADDRESS, &[]),
            (name, SECTION_ADDRESS, &section),
        ]);
        let compared = compare_section::<X86_64>(&file, name);
        prop_assert_eq!(compared.functions, 1);
    }
}
