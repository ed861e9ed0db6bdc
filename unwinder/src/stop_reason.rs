//! Why a walk ended. Callers count these: a stack that did not reach its root is never silent.

/// Why a stack has no further frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StopReason {
    /// The outermost frame: its rule says that there is no return address, or the return address is 0.
    Root,
    /// The caller's frame lies beyond the end of the copied stack.
    StackExhausted,
    /// Executable memory without unwind information for this address, and no plausible caller.
    NoRule,
    /// The address lies in no known executable mapping.
    NoMapping,
    /// A needed word is on a page that was absent from the copy, or not on the stack at all.
    Unreadable,
    /// The caller's frame would lie below or at this one: broken registers, or a loop.
    CfaDidNotGrow,
    /// The limit of frames was reached.
    DepthLimit,
    /// A signal handler ran on an alternate stack: the interrupted stack is not in the copy.
    SwitchedStack,
    /// The unwind information uses what has no meaning here (a malformed program, an unknown operator).
    Unsupported,
}

impl StopReason {
    /// All reasons, in declaration order, so that a caller can count in an array indexed by `reason as usize`.
    pub const ALL: [StopReason; 9] = [
        StopReason::Root,
        StopReason::StackExhausted,
        StopReason::NoRule,
        StopReason::NoMapping,
        StopReason::Unreadable,
        StopReason::CfaDidNotGrow,
        StopReason::DepthLimit,
        StopReason::SwitchedStack,
        StopReason::Unsupported,
    ];

    /// The reason in `snake_case`, as counters and reports print it.
    pub const fn name(self) -> &'static str {
        match self {
            StopReason::Root => "root",
            StopReason::StackExhausted => "stack_exhausted",
            StopReason::NoRule => "no_rule",
            StopReason::NoMapping => "no_mapping",
            StopReason::Unreadable => "unreadable",
            StopReason::CfaDidNotGrow => "cfa_did_not_grow",
            StopReason::DepthLimit => "depth_limit",
            StopReason::SwitchedStack => "switched_stack",
            StopReason::Unsupported => "unsupported",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StopReason;

    #[test]
    fn all_is_indexed_by_discriminant_and_names_are_distinct() {
        for (index, reason) in StopReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            assert_eq!(StopReason::ALL.iter().filter(|other| other.name() == reason.name()).count(), 1);
        }
    }
}
