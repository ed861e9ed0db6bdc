//! Minidumps by hand, by the layouts of `minidumpapiset.h` and `winnt.h`, and an image of two functions, by "PE Format", "x64 exception
//! handling" and "ARM64 exception handling" of Microsoft's documentation.

/// Types of streams.
pub(crate) const THREADS: u32 = 3;
pub(crate) const MODULES: u32 = 4;
pub(crate) const MEMORY: u32 = 5;
pub(crate) const EXCEPTION: u32 = 6;
pub(crate) const SYSTEM: u32 = 7;
pub(crate) const MEMORY_64: u32 = 9;
pub(crate) const MISC: u32 = 15;
pub(crate) const THREAD_NAMES: u32 = 24;

/// When dumps were made: 2020-01-01 00:00:00 UTC.
pub(crate) const TIME: u32 = 1_577_836_800;

/// Where the image lies, how large it is, and the date in its header.
pub(crate) const BASE: u64 = 0x1_8000_0000;
pub(crate) const SIZE: u32 = 0x3000;
pub(crate) const DATE: u32 = 0x5e0b_e100;

/// Where the stack begins.
pub(crate) const STACK: u64 = 0x20_0000;

/// `PROCESSOR_ARCHITECTURE_*`.
pub(crate) const X86: u16 = 0;
pub(crate) const X64: u16 = 9;
pub(crate) const ARM64: u16 = 12;

pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub(crate) fn longs(longs: &[u64]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_le_bytes()).collect()
}

/// `MINIDUMP_STRING`.
pub(crate) fn text(text: &str) -> Vec<u8> {
    let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    [words(&[units.len() as u32]), units].concat()
}

/// A dump that is being made.
#[derive(Clone)]
pub(crate) struct Made {
    bytes: Vec<u8>,
    streams: Vec<[u32; 3]>,
}

impl Default for Made {
    fn default() -> Self {
        Self { bytes: vec![0; 32], streams: Vec::new() }
    }
}

impl Made {
    /// Adds bytes; says where they are.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> u32 {
        let at = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        at
    }

    pub(crate) fn stream(&mut self, kind: u32, bytes: &[u8]) {
        let at = self.put(bytes);
        self.streams.push([kind, bytes.len() as u32, at]);
    }

    /// Adds what the list of one module refers to; the list itself comes out.
    pub(crate) fn module(&mut self, module: &Module<'_>) -> Vec<u8> {
        let path = self.put(&text(module.path));
        let record =
            [&b"RSDS"[..], &module.guid, &words(&[module.age]), module.pdb.as_bytes(), &[0]].concat();
        let record_at = self.put(&record);
        let mut entry = [longs(&[BASE]), words(&[module.size, 0, module.date, path])].concat();
        // The version is 1.2.3.4.
        entry.extend(words(&[0xfeef_04bd, 0x1_0000, 1 << 16 | 2, 3 << 16 | 4]));
        entry.resize(76, 0);
        entry.extend(words(&[record.len() as u32, record_at]));
        entry.resize(108, 0);
        [words(&[1]), entry].concat()
    }

    /// Has a stream that is there be of another size, and elsewhere.
    pub(crate) fn replace(&mut self, kind: u32, size: u32, at: u32) {
        let stream = self.streams.iter_mut().find(|stream| stream[0] == kind).unwrap();
        *stream = [kind, size, at];
    }

    /// Of a system with two processors of this architecture.
    pub(crate) fn system(&mut self, architecture: u16, platform: u32) {
        let first = u32::from(architecture) | 2 << 16;
        self.stream(
            SYSTEM,
            &words(&[first, 0x0102_0000 | 2 << 16, 10, 0, 19045, platform, 0, 0, 0, 0, 0, 0, 0, 0]),
        );
    }

    /// The dump.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let streams: Vec<u8> = self.streams.iter().flat_map(|stream| words(stream)).collect();
        let (count, at) = (self.streams.len() as u32, self.put(&streams));
        let header = [b"MDMP".to_vec(), words(&[0xa793, count, at, 0, TIME, 0, 0])].concat();
        self.bytes[..32].copy_from_slice(&header);
        self.bytes
    }
}

/// What a dump has of an image at [`BASE`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Module<'a> {
    pub(crate) path: &'a str,
    pub(crate) size: u32,
    pub(crate) date: u32,
    /// Of its PDB, as it is stored.
    pub(crate) guid: [u8; 16],
    pub(crate) age: u32,
    pub(crate) pdb: &'a str,
}

/// An image of two functions, of which the first calls the second, and a thread that was interrupted in the second.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) architecture: u16,
    machine: u16,
    text: Vec<u8>,
    unwind: Vec<u8>,
    /// Bytes of the exception directory, with which `unwind` begins.
    directory: u32,
    /// The registers.
    pub(crate) context: Vec<u8>,
    pub(crate) stack: Vec<u8>,
    /// Where the thread is, and where it returns to, in the image.
    pub(crate) frames: [u64; 2],
}

/// Of x64.
///
/// ```text
/// 1000  sub rsp, 28h     1010  push rbx
/// 1004  call 1010        1011  sub rsp, 20h
/// 1009  add rsp, 28h     1015  nop ...
/// 100d  ret
/// ```
pub(crate) fn x64() -> Program {
    let mut text = vec![0x48, 0x83, 0xec, 0x28, 0xe8, 7, 0, 0, 0, 0x48, 0x83, 0xc4, 0x28, 0xc3, 0xcc, 0xcc];
    text.extend([0x53, 0x48, 0x83, 0xec, 0x20]);
    text.resize(0x20, 0x90);
    let mut unwind = words(&[0x1000, 0x100e, 0x2020, 0x1010, 0x1020, 0x2030]);
    unwind.resize(0x20, 0);
    // Version 1, a prologue of 4 bytes with one code: behind its byte 4, 40 bytes are reserved.
    unwind.extend([1, 4, 1, 0, 4, 0x42, 0, 0]);
    unwind.resize(0x30, 0);
    // A prologue of 5 bytes with two codes, the last one first: 32 bytes are reserved, rbx was pushed.
    unwind.extend([1, 5, 2, 0, 5, 0x32, 1, 0x30]);
    let mut context = vec![0; 1232];
    // Control and general registers.
    context[0x30..0x34].copy_from_slice(&0x10_0003_u32.to_le_bytes());
    context[0x98..0xa0].copy_from_slice(&STACK.to_le_bytes());
    context[0xf8..0x100].copy_from_slice(&(BASE + 0x1015).to_le_bytes());
    let stack = longs(&[1, 2, 3, 4, 0xb, BASE + 0x1009, 5, 6, 7, 8, 9, 0, 0, 0]);
    let frames = [0x1015, 0x1009];
    Program { architecture: X64, machine: 0x8664, text, unwind, directory: 24, context, stack, frames }
}

/// Of ARM64, with packed unwind data.
///
/// ```text
/// 1000  stp x29, x30, [sp, -16]!     1020  stp x29, x30, [sp, -16]!
/// 1004  mov x29, sp                  1024  mov x29, sp
/// 1008  bl 1020                      1028  nop
/// 100c  ldp x29, x30, [sp], 16       102c  ldp x29, x30, [sp], 16
/// 1010  ret                          1030  ret
/// ```
pub(crate) fn arm64() -> Program {
    const STP: u32 = 0xa9bf_7bfd;
    const MOV: u32 = 0x9100_03fd;
    const LDP: u32 = 0xa8c1_7bfd;
    const RET: u32 = 0xd65f_03c0;
    const NOP: u32 = 0xd503_201f;
    let text = words(&[STP, MOV, 0x9400_0006, LDP, RET, NOP, NOP, NOP, STP, MOV, NOP, LDP, RET]);
    // Five instructions, a chained frame (`CR` is 3) of 16 bytes.
    let packed = 1 | 5 << 2 | 3 << 21 | 1 << 23;
    let unwind = words(&[0x1000, packed, 0x1020, packed]);
    let mut context = vec![0; 912];
    context[..4].copy_from_slice(&0x40_0003_u32.to_le_bytes());
    for (at, value) in [(0xf0, STACK), (0xf8, BASE + 0x100c), (0x100, STACK), (0x108, BASE + 0x1028)] {
        context[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    let stack = longs(&[STACK + 16, BASE + 0x100c, 0, 0, 0, 0]);
    let frames = [0x1028, 0x100c];
    Program { architecture: ARM64, machine: 0xaa64, text, unwind, directory: 16, context, stack, frames }
}

impl Program {
    /// What its file begins with. The sections are 512 bytes each there, and begin at bytes 1024 and 1536.
    fn headers(&self) -> Vec<u8> {
        let mut headers = vec![0; 0x400];
        let mut put = |at: usize, bytes: &[u8]| headers[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"MZ");
        put(0x3c, &words(&[0x40]));
        put(0x40, b"PE\0\0");
        put(0x44, &self.machine.to_le_bytes());
        put(0x46, &[2, 0]);
        put(0x48, &words(&[DATE]));
        put(0x54, &[240, 0, 0x22, 0]);
        put(0x58, &[0x0b, 2]);
        put(0x70, &longs(&[BASE]));
        put(0x78, &words(&[0x1000, 0x200]));
        put(0x90, &words(&[SIZE, 0x400]));
        put(0xc4, &words(&[16]));
        // The fourth directory.
        put(0xe0, &words(&[0x2000, self.directory]));
        let sections = [
            (&b".text\0\0\0"[..], &self.text, 0x1000, 0x400, 0x6000_0020),
            (b".rdata\0\0", &self.unwind, 0x2000, 0x600, 0x4000_0040),
        ];
        for (index, (name, bytes, address, offset, flags)) in sections.into_iter().enumerate() {
            let at = 0x148 + 40 * index;
            put(at, name);
            put(at + 8, &words(&[bytes.len() as u32, address, 0x200, offset]));
            put(at + 36, &words(&[flags]));
        }
        headers
    }

    /// Its file.
    pub(crate) fn file(&self) -> Vec<u8> {
        let mut file = self.headers();
        for section in [&self.text, &self.unwind] {
            file.extend_from_slice(section);
            file.resize(file.len().next_multiple_of(0x200), 0);
        }
        file
    }

    /// The image as it lies in memory.
    fn in_memory(&self) -> Vec<u8> {
        let mut image = self.headers();
        for (section, address) in [(&self.text, 0x1000), (&self.unwind, 0x2000)] {
            image.resize(address, 0);
            image.extend_from_slice(section);
        }
        image.resize(SIZE as usize, 0);
        image
    }

    /// A dump of it, with its stack alone or with all memory.
    pub(crate) fn dump(&self, has_all_memory: bool) -> Made {
        let mut made = Made::default();
        made.system(self.architecture, 2);
        made.stream(MISC, &words(&[24, 1, 4711, 0, 0, 0]));
        let context = made.put(&self.context);
        let stack = made.put(&self.stack);
        let (stack_size, stack_at) =
            if has_all_memory { (self.stack.len() as u32, 0) } else { (self.stack.len() as u32, stack) };
        let mut threads = words(&[2, 4712, 0, 0, 0, 0, 0, STACK as u32, 0, stack_size, stack_at]);
        threads.extend(words(&[self.context.len() as u32, context]));
        // The other one has no registers.
        threads.extend(words(&[4713, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        made.stream(THREADS, &threads);
        let name = made.put(&text("The worker"));
        made.stream(THREAD_NAMES, &words(&[1, 4712, name, 0]));
        let module = Module {
            path: r"Q:\app\Twice.exe",
            size: SIZE,
            date: DATE,
            guid: std::array::from_fn(|index| 1 + index as u8),
            age: 3,
            pdb: r"Q:\build\twice.pdb",
        };
        let module = made.module(&module);
        made.stream(MODULES, &module);
        if has_all_memory {
            let image = self.in_memory();
            let at = made.put(&[&self.stack[..], &image].concat());
            let list = [2, at.into(), STACK, self.stack.len() as u64, BASE, image.len() as u64];
            made.stream(MEMORY_64, &longs(&list));
        } else {
            made.stream(MEMORY, &[words(&[1]), longs(&[STACK]), words(&[stack_size, stack])].concat());
        }
        made
    }
}
