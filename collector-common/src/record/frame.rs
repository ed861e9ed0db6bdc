//! Frames: an address within a module, stored once. One address of a process means different code after a
//! `dlclose`, an `exec` or a JIT's replacement, so a frame names the module and the address in it.

use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use hashbrown::HashTable;

use super::ModuleId;
use crate::ids::Svma;
use crate::intern::Seeded;

/// Names a frame of one [`InternedFrames`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct FrameId(pub u32);

/// Numbers in the middle of the addresses, where no processor has code: the kernel's from `1 << 63` on, processes' before. They stand for
/// code of which a name is known and no address: each is another's. Recordings of other tools have such.
pub const WITHOUT_ADDRESS: Range<u64> = 1 << 62..3 << 62;

/// What is known about a frame beyond its address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FrameFlags(pub u8);

impl FrameFlags {
    /// Kernel code.
    pub const KERNEL: u8 = 1;
    /// The address is a return address: the call is at the address before it.
    pub const RETURN_ADDRESS: u8 = 1 << 1;
    /// Found by a heuristic, not by unwind information.
    pub const HEURISTIC: u8 = 1 << 2;
    /// Not code but the mark of a stack that ends before its root; the address is 0.
    pub const CUT: u8 = 1 << 3;

    /// Whether all bits of `mask` are set.
    pub const fn has(self, mask: u8) -> bool {
        self.0 & mask == mask
    }
}

/// An address in a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The module the address lies in.
    pub module: ModuleId,
    /// The address as the module's kind has it, as it was on the stack: see [`Frame::lookup_address`].
    pub address: Svma,
    /// What is known beyond the address.
    pub flags: FrameFlags,
}

impl Frame {
    /// The address to look up names and lines for: a byte of the calling instruction where the frame holds a
    /// return address, else the address itself.
    pub fn lookup_address(&self) -> Svma {
        let back = u64::from(self.flags.has(FrameFlags::RETURN_ADDRESS));
        Svma(self.address.0.saturating_sub(back))
    }

    /// Whether the address is one, and no number that stands for it ([`WITHOUT_ADDRESS`]).
    pub fn has_address(&self) -> bool {
        !WITHOUT_ADDRESS.contains(&self.address.0)
    }

    /// Whether the frame is kernel code.
    pub fn is_kernel(&self) -> bool {
        self.flags.has(FrameFlags::KERNEL)
    }
}

/// A set of frames. Ids are dense and count up from 0.
#[derive(Debug, Default)]
pub struct InternedFrames {
    frames: Vec<Frame>,
    index: HashTable<FrameId>,
    /// Addresses are chosen by the recorded programs.
    hasher: Seeded,
}

impl InternedFrames {
    /// The id of `frame`, which is stored if it is new.
    ///
    /// # Panics
    /// When more than `u32::MAX` frames are stored.
    pub fn intern(&mut self, frame: Frame) -> FrameId {
        let hash = hash_of(&self.hasher, &frame);
        let frames = &self.frames;
        if let Some(&id) = self.index.find(hash, |id| frames[id.0 as usize] == frame) {
            return id;
        }
        assert!(self.frames.len() < u32::MAX as usize, "more than 4 billion distinct frames");
        let id = FrameId(self.frames.len() as u32);
        self.frames.push(frame);
        let (frames, hasher) = (&self.frames, &self.hasher);
        self.index.insert_unique(hash, id, |id| hash_of(hasher, &frames[id.0 as usize]));
        id
    }

    /// The frame behind an id of this set.
    ///
    /// # Panics
    /// For an id that this set did not give.
    pub fn get(&self, id: FrameId) -> &Frame {
        &self.frames[id.0 as usize]
    }

    /// Number of distinct frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there is no frame yet.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// All frames in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter()
    }
}

/// All of a frame at once takes half the time of its fields one by one.
#[inline]
fn hash_of(hasher: &Seeded, frame: &Frame) -> u64 {
    let module = u64::from(frame.module.0) | u64::from(frame.flags.0) << 32;
    let mut hasher = hasher.build_hasher();
    hasher.write_u128(u128::from(module) << 64 | u128::from(frame.address.0));
    hasher.finish()
}
