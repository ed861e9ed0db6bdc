//! Makes an ELF file around an unwind section, so that fuzzed bytes get to the call frame information without having
//! to spell out a header first. Layouts are those of the ELF specification, little-endian.

use std::ops::Range;

/// Where the file's unwind section is loaded: amid the text, so that pointers of a real section, which are relative to
/// themselves, lead into the text.
pub(crate) const SECTION_ADDRESS: u64 = 0x4000_0000;

/// The text, as linked.
pub(super) const TEXT: Range<u64> = 0..0x8000_0000;

const SHT_NULL: u32 = 0;
const SHT_PROGBITS: u32 = 1;
const SHT_STRTAB: u32 = 3;

/// A section by name, address and content.
pub(crate) type Section<'a> = (&'a str, u64, &'a [u8]);

/// The machine that a file is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Machine {
    X86,
    X86_64,
    Aarch64,
}

impl Machine {
    /// Bytes of an address.
    pub(super) fn word(self) -> usize {
        match self {
            Machine::X86 => 4,
            Machine::X86_64 | Machine::Aarch64 => 8,
        }
    }

    /// Registers with a DWARF number, and one more.
    pub(super) fn registers(self) -> u8 {
        match self {
            Machine::X86 | Machine::X86_64 => 18,
            Machine::Aarch64 => 34,
        }
    }

    /// `EI_CLASS` and `e_machine`.
    fn numbers(self) -> (u8, u64) {
        match self {
            Machine::X86 => (1, 3),
            Machine::X86_64 => (2, 62),
            Machine::Aarch64 => (2, 183),
        }
    }

    /// Bytes of the file's header, of a program header and of a section's.
    fn header_sizes(self) -> [u64; 3] {
        if self.word() == 4 { [52, 32, 40] } else { [64, 56, 64] }
    }
}

/// A file whose only content is `section`: its `.eh_frame`, or its `.debug_frame`.
pub(super) fn with_section(machine: Machine, section: &[u8], is_debug_frame: bool) -> Vec<u8> {
    let name = if is_debug_frame { ".debug_frame" } else { ".eh_frame" };
    for_machine(machine, &[(name, SECTION_ADDRESS, section)])
}

/// A file for x86-64 of just these sections.
pub(crate) fn with_sections(sections: &[Section<'_>]) -> Vec<u8> {
    for_machine(Machine::X86_64, sections)
}

/// One for a machine.
pub(super) fn for_machine(machine: Machine, sections: &[Section<'_>]) -> Vec<u8> {
    with_texts(machine, &[TEXT], sections)
}

/// One with executable segments at these addresses.
pub(crate) fn with_texts(machine: Machine, texts: &[Range<u64>], sections: &[Section<'_>]) -> Vec<u8> {
    let word = machine.word();
    let [header_size, program_header_size, section_header_size] = machine.header_sizes();
    let content_at = header_size + program_header_size * texts.len() as u64;
    let mut content = Vec::new();
    let mut names = vec![0];
    let mut headers = Vec::new();
    section_header(&mut headers, word, 0, SHT_NULL, 0, 0..0);
    for (name, address, bytes) in sections {
        let start = content_at + content.len() as u64;
        section_header(
            &mut headers,
            word,
            names.len(),
            SHT_PROGBITS,
            *address,
            start..start + bytes.len() as u64,
        );
        names.extend(name.bytes().chain([0]));
        content.extend_from_slice(bytes);
    }
    let names_at = content_at + content.len() as u64;
    let headers_at = names_at + names.len() as u64;
    section_header(&mut headers, word, 0, SHT_STRTAB, 0, names_at..headers_at);
    let count = sections.len() as u64 + 2;

    let mut file = Vec::new();
    let (class, number) = machine.numbers();
    file.extend([0x7f, b'E', b'L', b'F', class, 1, 1]);
    file.resize(16, 0);
    // e_type (ET_DYN), e_machine, e_version, e_entry, e_phoff, e_shoff, e_flags
    put(
        &mut file,
        &[(3, 2), (number, 2), (1, 4), (0, word), (header_size, word), (headers_at, word), (0, 4)],
    );
    // e_ehsize, e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx
    put(&mut file, &[(header_size, 2), (program_header_size, 2), (texts.len() as u64, 2)]);
    put(&mut file, &[(section_header_size, 2), (count, 2), (count - 1, 2)]);
    for text in texts {
        // PT_LOAD; p_flags, readable and executable, whose place differs; p_offset, p_vaddr, p_paddr, p_filesz, p_memsz; p_align
        let (flags, size) = ((5, 4), text.end - text.start);
        let place = [(0, word), (text.start, word), (text.start, word), (0, word), (size, word)];
        put(&mut file, &[(1, 4)]);
        if word == 4 {
            put(&mut file, &[&place[..], &[flags]].concat());
        } else {
            put(&mut file, &[&[flags], &place[..]].concat());
        }
        put(&mut file, &[(4096, word)]);
    }
    for part in [content, names, headers] {
        file.extend(part);
    }
    file
}

fn section_header(
    headers: &mut Vec<u8>,
    word: usize,
    name: usize,
    kind: u32,
    address: u64,
    place: Range<u64>,
) {
    // sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, sh_link, sh_info, sh_addralign, sh_entsize
    put(headers, &[(name as u64, 4), (kind.into(), 4), (0, word), (address, word), (place.start, word)]);
    put(headers, &[(place.end - place.start, word), (0, 8), (1, word), (0, word)]);
}

/// Appends each value in this many little-endian bytes.
fn put(file: &mut Vec<u8>, fields: &[(u64, usize)]) {
    for &(value, size) in fields {
        file.extend(value.to_le_bytes().into_iter().take(size));
    }
}
