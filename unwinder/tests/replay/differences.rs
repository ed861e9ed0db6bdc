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
    /// So many of the committed samples have them and reach the root, of so many that are within it: a stop may be in the
    /// recursion itself.
    pub(super) committed: (usize, usize),
    /// At least this share of the samples that were taken elsewhere does.
    pub(super) percent: usize,
}

/// glibc's `memcpy` for i386, which pushes a word that its rules don't count: gdb goes by them to what is no code, and we by the
/// instructions up to the return.
const UNCOUNTED_PUSH: Known = Known {
    fixture: "x86/c",
    relation: Relation::Longer,
    stop: StopReason::Root,
    guessed: true,
    committed: 0,
    percent: 20,
};

pub(super) const DIFFERENCES: [Known; 27] = [
    // `swapcontext` has loaded the other stack's pointer, and not yet its return address. The word there is no code, and
    // gdb's chains are cut before what is no code.
    Known {
        fixture: "longjmp",
        relation: Relation::Longer,
        stop: StopReason::NoMapping,
        guessed: false,
        committed: 2,
        percent: 5,
    },
    // The return of OpenSSL's X25519, whose rule counts on more stack than there is left: the word it leads to is no code.
    Known {
        fixture: "openssl",
        relation: Relation::Longer,
        stop: StopReason::NoMapping,
        guessed: false,
        committed: 0,
        percent: 2,
    },
    // Go's runtime on its threads' own stacks: rules go on from `mcall`, `systemstack` and `morestack`, which have left the
    // goroutine's stack, to what lies there. gdb follows them, and its chains are cut before what is no code.
    Known {
        fixture: "go",
        relation: Relation::Longer,
        stop: StopReason::Root,
        guessed: false,
        committed: 2,
        percent: 50,
    },
    // Go's signal handlers have a stack of their own. gdb does not know the code that they return to; we know it, and then
    // what was interrupted, whose stack is seldom in the copy.
    Known {
        fixture: "go",
        relation: Relation::Longer,
        stop: StopReason::SwitchedStack,
        guessed: false,
        committed: 0,
        percent: 20,
    },
    // musl's functions have no rules: their callers are guessed. What may be wrong is a stale return address,
    Known {
        fixture: "musl",
        relation: Relation::Other,
        stop: StopReason::Root,
        guessed: true,
        committed: 0,
        percent: 2,
    },
    // or two zeros that a register happens to point to, taken for the end of a chain of frame pointers.
    Known {
        fixture: "musl",
        relation: Relation::Shorter,
        stop: StopReason::Root,
        guessed: true,
        committed: 0,
        percent: 2,
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
        fixture: "node",
        relation: Relation::Other,
        stop: StopReason::Root,
        guessed: true,
        committed: 0,
        percent: 10,
    },
    Known {
        fixture: "java",
        relation: Relation::Other,
        stop: StopReason::Root,
        guessed: true,
        committed: 1,
        percent: 10,
    },
    Known {
        fixture: "java",
        relation: Relation::Longer,
        stop: StopReason::Root,
        guessed: true,
        committed: 3,
        percent: 100,
    },
    // The runtime linker, called by a linkage table that has pushed 16 bytes: the rules of glibc's `_dl_runtime_resolve` do not
    // count these. gdb goes by them, and finds no code in the caller's frame;
    Known {
        fixture: "aarch64/start",
        relation: Relation::Longer,
        stop: StopReason::Root,
        guessed: false,
        committed: 2,
        percent: 50,
    },
    // or in the first entry of the table itself, for which there are no rules;
    Known {
        fixture: "aarch64/start",
        relation: Relation::Longer,
        stop: StopReason::Root,
        guessed: true,
        committed: 0,
        percent: 2,
    },
    // and at its first and last instructions rules say that nothing was pushed, or that what was popped is below.
    Known {
        fixture: "aarch64/start",
        relation: Relation::Shorter,
        stop: StopReason::CfaDidNotGrow,
        guessed: false,
        committed: 0,
        percent: 2,
    },
    Known {
        fixture: "aarch64/start",
        relation: Relation::Shorter,
        stop: StopReason::Unreadable,
        guessed: false,
        committed: 0,
        percent: 2,
    },
    // `_Unwind_Resume`, which has written the registers of where an exception is caught over those that it saved: its rule leads to that
    // return address, but not to that stack pointer. gdb finds no code in the frame there; ours is found by the call above it.
    Known {
        fixture: "aarch64/cpp",
        relation: Relation::Longer,
        stop: StopReason::Root,
        guessed: true,
        committed: 0,
        percent: 5,
    },
    // glibc's `__longjmp`: rules say that all registers are in the buffer, which is on no stack, and the address is there in disguise.
    // gdb reads the buffer, and its chains end one frame further at most. Ours go by `x30`, and from where it is loaded up to where
    // the stack pointer is by the frame of the function that it leads to.
    Known {
        fixture: "aarch64/longjmp",
        relation: Relation::Longer,
        stop: StopReason::Root,
        guessed: true,
        committed: 9,
        percent: 45,
    },
    // `setcontext`, which loads the registers of a `swapcontext` that is resumed: what it loads into `x30` is behind no call.
    Known {
        fixture: "aarch64/longjmp",
        relation: Relation::Shorter,
        stop: StopReason::Unreadable,
        guessed: false,
        committed: 0,
        percent: 10,
    },
    // Before it has, `x30` leads to the `swapcontext` that called it, and gdb goes by the buffer.
    Known {
        fixture: "aarch64/longjmp",
        relation: Relation::Other,
        stop: StopReason::CfaDidNotGrow,
        guessed: true,
        committed: 1,
        percent: 10,
    },
    // Where a context is resumed, and what `swapcontext` calls to do that: `x30` is not its caller's, and no rule says so. They lead
    // to the same address again, for gdb, too.
    Known {
        fixture: "aarch64/longjmp",
        relation: Relation::Equal,
        stop: StopReason::CfaDidNotGrow,
        guessed: false,
        committed: 1,
        percent: 10,
    },
    Known {
        fixture: "aarch64/longjmp",
        relation: Relation::Longer,
        stop: StopReason::CfaDidNotGrow,
        guessed: false,
        committed: 0,
        percent: 10,
    },
    UNCOUNTED_PUSH,
    Known { fixture: "x86/frame_pointers", ..UNCOUNTED_PUSH },
    // Another `memcpy` of it, whose rules count what it pushes downwards: the way to the return is known but where it jumps by a table;
    Known {
        fixture: "x86/cpp",
        relation: Relation::Longer,
        stop: StopReason::Root,
        guessed: true,
        committed: 0,
        percent: 5,
    },
    Known {
        fixture: "x86/cpp",
        relation: Relation::Other,
        stop: StopReason::Root,
        guessed: true,
        committed: 0,
        percent: 5,
    },
    Known {
        fixture: "x86/cpp",
        relation: Relation::Shorter,
        stop: StopReason::Unreadable,
        guessed: false,
        committed: 0,
        percent: 5,
    },
    Known {
        fixture: "x86/cpp",
        relation: Relation::Equal,
        stop: StopReason::Unreadable,
        guessed: false,
        committed: 0,
        percent: 5,
    },
    // Its `swapcontext` pushes such a word, too, and goes on by another stack, where no way is known.
    Known {
        fixture: "x86/longjmp",
        relation: Relation::Longer,
        stop: StopReason::NoMapping,
        guessed: false,
        committed: 0,
        percent: 5,
    },
];

pub(super) const RECURSIONS: [Recursion; 2] = [
    Recursion { fixture: "node", function: "descend", depth: 41, committed: (3, 3), percent: 98 },
    // The other one returns from the ninth call: the stack has eight return addresses, 64 bytes apart.
    Recursion { fixture: "java", function: "descend", depth: 41, committed: (1, 2), percent: 85 },
];

/// In how many of the committed samples framehop finds other frames than we do, where there are any.
pub(super) const FRAMEHOP: [(&str, usize); 9] = [
    // A realigned stack: the CFA is read by way of another register than `sp` and `bp`, which are all it follows. The runtime
    // linker's first instructions, which have no rule, are the outermost here, as in `vdso`; it goes on by what `bp` holds.
    ("c", 5),
    // Code without rules and without frame pointers.
    ("java", 4),
    // `__longjmp`, whose caller's registers are in others; OpenSSL's assembly, whose CFA is an expression.
    ("longjmp", 3),
    ("musl", 25),
    // V8's built-in functions, where `bp` is still or again that of a frame further up.
    ("node", 2),
    ("openssl", 6),
    // `__restore_rt`: its registers are expressions.
    ("signals", 17),
    // `_dl_runtime_resolve_xsavec`, whose CFA is based on `rbx`.
    ("start", 15),
    ("vdso", 2),
];
