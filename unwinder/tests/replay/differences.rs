//! In what our walks differ from what a witness saw, and why.

use unwinder::StopReason;

use super::Relation;

/// A kind of difference.
#[derive(Debug, PartialEq)]
pub(super) struct Known {
    pub(super) fixture: &'static str,
    pub(super) relation: Relation,
    pub(super) stop: StopReason,
    /// Whether a frame of the walk is a guess.
    pub(super) guessed: bool,
    /// So many of the committed samples differ so.
    pub(super) committed: usize,
    /// At most this share of samples taken elsewhere does.
    pub(super) percent: usize,
}

/// A function that calls itself, compiled while its program ran.
#[derive(Debug)]
pub(super) struct Recursion {
    pub(super) fixture: &'static str,
    /// A part of its name.
    pub(super) function: &'static str,
    /// How many frames of it there are.
    pub(super) depth: usize,
    /// At least this share of its samples has them, and reaches the root.
    pub(super) percent: usize,
}

pub(super) const DIFFERENCES: [Known; 9] = [
    // A handler on an alternate stack: gdb reads the interrupted one, too, of which our copy has nothing.
    Known {
        fixture: "signals",
        relation: Relation::Shorter,
        stop: StopReason::SwitchedStack,
        guessed: false,
        committed: 8,
        percent: 20,
    },
    // `swapcontext` has loaded the other stack's pointer, and not yet its return address. The word there is no code, and
    // gdb's chains are cut before what is no code.
    Known {
        fixture: "longjmp",
        relation: Relation::Longer,
        stop: StopReason::NoMapping,
        guessed: false,
        committed: 0,
        percent: 5,
    },
    // Go's runtime on its system stack, below which there is the scheduler's data: as before.
    Known {
        fixture: "go",
        relation: Relation::Longer,
        stop: StopReason::NoMapping,
        guessed: false,
        committed: 2,
        percent: 30,
    },
    // Go's signal handlers run on a stack of their own: what they interrupted is on another, of which our copy has nothing.
    // gdb goes no further than the code by which the handler returns.
    Known {
        fixture: "go",
        relation: Relation::Longer,
        stop: StopReason::SwitchedStack,
        guessed: false,
        committed: 1,
        percent: 20,
    },
    // musl's functions have no rules: their callers are guessed.
    Known {
        fixture: "musl",
        relation: Relation::Equal,
        stop: StopReason::Root,
        guessed: true,
        committed: 13,
        percent: 100,
    },
    Known {
        fixture: "musl",
        relation: Relation::Other,
        stop: StopReason::Root,
        guessed: true,
        committed: 10,
        percent: 95,
    },
    Known {
        fixture: "musl",
        relation: Relation::Other,
        stop: StopReason::NoMapping,
        guessed: true,
        committed: 1,
        percent: 5,
    },
    // gdb has no rules for code that was compiled at run time; its guesses lead out of code.
    Known {
        fixture: "node",
        relation: Relation::Longer,
        stop: StopReason::Root,
        guessed: true,
        committed: 3,
        percent: 100,
    },
    Known {
        fixture: "java",
        relation: Relation::Longer,
        stop: StopReason::Root,
        guessed: true,
        committed: 2,
        percent: 100,
    },
];

pub(super) const RECURSIONS: [Recursion; 2] = [
    Recursion { fixture: "node", function: "descend", depth: 41, percent: 98 },
    Recursion { fixture: "java", function: "descend", depth: 41, percent: 60 },
];
