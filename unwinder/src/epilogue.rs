//! What a function still does to the stack before it returns, which says where its caller is found.

use crate::prologue::Prologue;

/// Bytes of code that are looked at in one piece.
pub(crate) const LONGEST_EPILOGUE: usize = 128;

/// What distances are counted from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Base {
    #[default]
    StackPointer,
    FramePointer,
}

/// What code does to the stack. Distances count up from the value that a register has at its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Epilogue {
    pub(crate) base: Base,
    /// Where the stack pointer is left.
    pub(crate) raised: u64,
    /// Where the return address is taken from; `None` while it is in a register.
    pub(crate) return_address: Option<u64>,
    /// Where the caller's frame pointer is taken from; `None` if it is still in the register.
    pub(crate) frame_pointer: Option<u64>,
}

/// Where code goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Returns,
    /// So far behind its beginning.
    Jumps(i64),
    Unknown,
}

impl Epilogue {
    pub(crate) fn raise(&mut self, bytes: i64) {
        self.raised = self.raised.wrapping_add_signed(bytes);
    }

    /// The frame pointer is loaded from so far above where the stack pointer is; with the caller's, if it is the last time.
    pub(crate) fn load_frame_pointer(&mut self, above: i64) {
        self.frame_pointer = Some(self.raised.wrapping_add_signed(above));
    }

    /// The return address is where the stack pointer is.
    pub(crate) fn return_here(&mut self) {
        self.return_address = Some(self.raised);
    }

    /// The stack pointer becomes that register's value with `offset` added. `false` if the register has another value by now.
    #[must_use]
    pub(crate) fn rebase(&mut self, base: Base, offset: i64) -> bool {
        let is_known = self.frame_pointer.is_none() && self.return_address.is_none();
        (self.base, self.raised) = (base, 0_u64.wrapping_add_signed(offset));
        is_known
    }

    /// The same, seen from the function's first instruction.
    pub(crate) fn as_prologue(&self) -> Prologue {
        let below = |place: u64| self.raised.wrapping_sub(place);
        Prologue {
            lowered: self.raised,
            return_address: self.return_address.map(below),
            frame_pointer: self.frame_pointer.map(below),
            realigned: false,
        }
    }
}
