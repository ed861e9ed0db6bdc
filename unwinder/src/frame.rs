//! What comes out of a walk: one [`Frame`] per function activation, innermost first.

/// What a frame's address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// An instruction pointer: the instruction that was about to run. The innermost frame, and the one a signal
    /// interrupted.
    Ip,
    /// A return address: the instruction after the call.
    ReturnAddress,
}

/// One frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The virtual address in the process.
    pub address: u64,
    /// Whether `address` is exact or lies behind the call.
    pub kind: FrameKind,
    /// Found without unwind information: by the code that is about to run, by a frame pointer, or as a return address on the
    /// stack (`docs/unwinder.md` has how often that is wrong). Frames further out are no more certain than this one, even
    /// where unwind information led to them and this is `false` of them.
    pub heuristic: bool,
}

impl Frame {
    /// The address to ask a symbol table, a line table or a module list for: inside of the call, which may be the
    /// last instruction of its function.
    pub fn lookup_address(&self) -> u64 {
        match self.kind {
            FrameKind::Ip => self.address,
            FrameKind::ReturnAddress => self.address.wrapping_sub(1),
        }
    }
}
