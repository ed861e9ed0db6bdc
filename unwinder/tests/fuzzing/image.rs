//! Makes an ELF file around an unwind section, so that fuzzed bytes get to the call frame information without having
//! to spell out a header first. Layouts are those of the ELF specification, 64-bit and little-endian.

use std::ops::Range;

/// Where the file's unwind section is loaded: amid the text, so that pointers of a real section, which are relative to
/// themselves, lead into the text.
pub(crate) const SECTION_ADDRESS: u64 = 0x4000_0000;

/// The text, as linked.
pub(super) const TEXT: Range<u64> = 0..0x8000_0000;

const HEADERS: u64 = 64 + 56;
const SHT_NULL: u32 = 0;
const SHT_PROGBITS: u32 = 1;
const SHT_STRTAB: u32 = 3;

/// A section by name, address and content.
pub(crate) type Section<'a> = (&'a str, u64, &'a [u8]);

/// A file whose only content is `section`: its `.eh_frame`, or its `.debug_frame`.
pub(super) fn with_section(section: &[u8], is_debug_frame: bool) -> Vec<u8> {
    let name = if is_debug_frame { ".debug_frame" } else { ".eh_frame" };
    with_sections(&[(name, SECTION_ADDRESS, section)])
}

/// A file of just these sections.
pub(crate) fn with_sections(sections: &[Section<'_>]) -> Vec<u8> {
    let mut content = Vec::new();
    let mut names = vec![0];
    let mut headers = Vec::new();
    section_header(&mut headers, 0, SHT_NULL, 0, 0..0);
    for (name, address, bytes) in sections {
        let start = HEADERS + content.len() as u64;
        section_header(&mut headers, names.len(), SHT_PROGBITS, *address, start..start + bytes.len() as u64);
        names.extend(name.bytes().chain([0]));
        content.extend_from_slice(bytes);
    }
    let names_at = HEADERS + content.len() as u64;
    let headers_at = names_at + names.len() as u64;
    section_header(&mut headers, 0, SHT_STRTAB, 0, names_at..headers_at);
    let count = sections.len() as u64 + 2;

    let mut file = Vec::new();
    file.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    // e_type (ET_DYN), e_machine (EM_X86_64), e_version, e_entry, e_phoff, e_shoff, e_flags
    put(&mut file, &[(3, 2), (62, 2), (1, 4), (0, 8), (64, 8), (headers_at, 8), (0, 4)]);
    // e_ehsize, e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx
    put(&mut file, &[(64, 2), (56, 2), (1, 2), (64, 2), (count, 2), (count - 1, 2)]);
    // PT_LOAD, readable and executable, p_offset, p_vaddr, p_paddr, p_filesz, p_memsz, p_align
    put(&mut file, &[(1, 4), (5, 4), (0, 8), (TEXT.start, 8), (TEXT.start, 8)]);
    put(&mut file, &[(0, 8), (TEXT.end - TEXT.start, 8), (4096, 8)]);
    for part in [content, names, headers] {
        file.extend(part);
    }
    file
}

fn section_header(headers: &mut Vec<u8>, name: usize, kind: u32, address: u64, place: Range<u64>) {
    // sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, sh_link, sh_info, sh_addralign, sh_entsize
    put(headers, &[(name as u64, 4), (kind.into(), 4), (0, 8), (address, 8), (place.start, 8)]);
    put(headers, &[(place.end - place.start, 8), (0, 8), (1, 8), (0, 8)]);
}

/// Appends each value in this many little-endian bytes.
fn put(file: &mut Vec<u8>, fields: &[(u64, usize)]) {
    for &(value, size) in fields {
        file.extend(value.to_le_bytes().into_iter().take(size));
    }
}
