//! framehop over the same modules and stacks.

use std::hint::black_box;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, Unwinder as _};
use object::{Object, ObjectSection};

use crate::corpus::{Captured, Space};

pub(crate) struct Peer {
    unwinder: UnwinderX86_64<Vec<u8>>,
    cache: CacheX86_64<MayAllocateDuringUnwind>,
}

impl Peer {
    pub(crate) fn new(space: &Space) -> Self {
        let mut unwinder = UnwinderX86_64::new();
        for module in &space.modules {
            let file = object::File::parse(module.elf.as_slice()).unwrap();
            let section = |name: &str| file.section_by_name(name);
            let data = |name: &str| section(name).and_then(|section| section.data().ok()).map(<[u8]>::to_vec);
            let range = |name: &str| {
                section(name).map(|section| section.address()..section.address() + section.size())
            };
            let info = ExplicitModuleSectionInfo {
                base_svma: 0,
                text_svma: range(".text"),
                text: data(".text"),
                got_svma: range(".got"),
                eh_frame_svma: range(".eh_frame"),
                eh_frame: data(".eh_frame"),
                eh_frame_hdr_svma: range(".eh_frame_hdr"),
                eh_frame_hdr: data(".eh_frame_hdr"),
                ..Default::default()
            };
            let range = module.start..module.end;
            unwinder.add_module(Module::new(module.name.clone(), range, module.bias, info));
        }
        Peer { unwinder, cache: CacheX86_64::new() }
    }

    /// How many frames framehop finds.
    pub(crate) fn walk(&mut self, stack: &Captured) -> u64 {
        let registers = &stack.registers;
        let peer_registers = UnwindRegsX86_64::new(registers.ip(), registers.sp(), registers.bp());
        let (base, bytes) = (stack.base, stack.bytes.as_slice());
        let mut read_stack = |address: u64| {
            let offset = usize::try_from(address.wrapping_sub(base)).map_err(|_| ())?;
            let word = bytes.get(offset..).and_then(|rest| rest.first_chunk::<8>()).ok_or(())?;
            Ok(u64::from_le_bytes(*word))
        };
        let mut frames =
            self.unwinder.iter_frames(registers.ip(), peer_registers, &mut self.cache, &mut read_stack);
        let mut count = 0;
        while let Ok(Some(frame)) = frames.next() {
            black_box(frame);
            count += 1;
        }
        count
    }
}
