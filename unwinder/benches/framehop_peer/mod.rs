//! framehop over the same modules and stacks.

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{Error, ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, Unwinder as _};
use object::{Object, ObjectSection};

use crate::corpus::{Captured, Space};

pub(crate) struct Peer {
    unwinder: UnwinderX86_64<Vec<u8>>,
    cache: CacheX86_64<MayAllocateDuringUnwind>,
}

impl Peer {
    pub(crate) fn new(space: &Space) -> Self {
        let mut unwinder = UnwinderX86_64::new();
        for module in space.modules.iter().filter(|module| module.table.is_some()) {
            let range = module.start..module.end;
            let info = sections(&module.elf);
            unwinder.add_module(Module::new(module.name.clone(), range, module.bias, info));
        }
        Peer { unwinder, cache: CacheX86_64::new() }
    }

    /// Hands every frame's address to `visit`; why framehop went no further, "root" where it thinks that there is no
    /// further frame.
    pub(crate) fn walk(&mut self, stack: &Captured, mut visit: impl FnMut(u64)) -> &'static str {
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
        loop {
            match frames.next() {
                Ok(Some(frame)) => visit(frame.address()),
                Ok(None) => return "root",
                Err(Error::CouldNotReadStack(_)) => return "could_not_read_stack",
                Err(Error::FramepointerUnwindingMovedBackwards) => return "moved_backwards",
                Err(Error::DidNotAdvance) => return "did_not_advance",
                Err(Error::IntegerOverflow) => return "integer_overflow",
                Err(Error::ReturnAddressIsNull) => return "return_address_is_null",
            }
        }
    }
}

/// What framehop takes from a file.
pub(crate) fn sections(elf: &[u8]) -> ExplicitModuleSectionInfo<Vec<u8>> {
    let file = object::File::parse(elf).unwrap();
    let section = |name: &str| file.section_by_name(name);
    let data = |name: &str| {
        section(name).and_then(|section| section.uncompressed_data().ok()).map(std::borrow::Cow::into_owned)
    };
    let range =
        |name: &str| section(name).map(|section| section.address()..section.address() + section.size());
    ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: range(".text"),
        text: data(".text"),
        got_svma: range(".got"),
        eh_frame_svma: range(".eh_frame"),
        eh_frame: data(".eh_frame"),
        eh_frame_hdr_svma: range(".eh_frame_hdr"),
        eh_frame_hdr: data(".eh_frame_hdr"),
        debug_frame: data(".debug_frame"),
        ..Default::default()
    }
}
