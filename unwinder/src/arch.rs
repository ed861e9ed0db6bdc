//! The seam between what all architectures share (walk, table, rules, guesses) and what each defines for itself.

use std::fmt::Debug;

use object::LittleEndian as LE;
use object::read::elf::FileHeader;

use crate::epilogue::{Epilogue, Next};
use crate::prologue::Prologue;
use crate::table::{RegisterNumber, RuleView, Saved, Traits};
use crate::word::Word;
use crate::{StackMemory, StopReason};

/// An architecture whose stacks can be walked, chosen by type: a program may walk stacks of several.
///
/// Sealed: there are [`crate::x86_64::X86_64`], the default of every type that has the parameter, [`crate::x86::X86`] and
/// [`crate::aarch64::Aarch64`].
#[allow(private_bounds, reason = "what makes an architecture is this crate's own matter")]
pub trait Architecture: Machine {}

/// What an architecture defines.
pub(crate) trait Machine: Copy + Debug + Eq + 'static {
    /// As messages name it.
    const NAME: &str;
    /// `e_machine` of its ELF files (`EM_*`).
    const ELF_MACHINE: u16;
    const WORD: Word;
    /// Registers that have rules, and the length of [`Self::Saved`].
    const REGISTER_COUNT: usize;
    /// The column of the instruction pointer.
    const IP: RegisterNumber;
    const SP: RegisterNumber;
    /// Registers beside the instruction pointer that [`Self::Core`] has.
    const FOLLOWED: &[RegisterNumber];
    /// Whether a call leaves the return address in a register: no rule for it then says that it is still there.
    const RETURNS_BY_REGISTER: bool;
    /// A register of arguments that only functions save which go on where an exception is caught (`__builtin_eh_return`), if these
    /// write the return address of there over their own by and by; and the runtime linker's `_dl_runtime_resolve`, which any function
    /// calls. Their rules have no quick form.
    const LANDING: Option<RegisterNumber> = None;
    /// Whether much-used functions push what their rules don't count, as glibc's `memcpy` and `swapcontext` do.
    const MISSES_PUSHES: bool = false;
    /// Whether functions may return past their arguments.
    const MAY_DROP_ARGUMENTS: bool;
    /// Whether code keeps the frame pointer for frame records alone, by the rules of the platform.
    const KEEPS_FRAME_POINTER: bool;
    /// The most bytes between the stack pointer of the outermost frame, where it has called another, and what the kernel
    /// put on the stack: the stack's alignment, and what the C library's `_start` pushes for what it calls.
    const OUTERMOST_FRAME: u64;
    const NOTHING_SAVED: Self::Saved;

    /// The header of its ELF files, which says of which class they are.
    type Elf: FileHeader<Endian = LE>;
    /// A thread's registers by DWARF number.
    type Values: Copy + Debug + Eq + AsRef<[u64]> + AsMut<[u64]>;
    /// What becomes of each register, by DWARF number.
    type Saved: Copy + Debug + AsRef<[Saved]> + AsMut<[Saved]>;
    /// The registers that a quick walk follows.
    type Core: Core<Quick = Self::Quick>;
    /// A rule that needs no other registers than those.
    type Quick: Copy + Debug + Eq;

    fn core(values: &Self::Values) -> Self::Core;
    fn set_core(values: &mut Self::Values, core: Self::Core);

    /// The quick form of a rule with a usable CFA and return address, if it has one.
    fn quick(rule: &RuleView<'_>) -> Option<Self::Quick>;

    /// How far above the CFA of a rule the caller's stack pointer is, which it should not be.
    fn uncounted(_rule: &RuleView<'_>) -> i32 {
        0
    }

    /// Sets the instruction pointer of a caller whose other registers are set already. `found` is what the rule of the
    /// return address gave, if there is one. `None` where there is no way back.
    fn return_to(caller: &mut Self::Values, found: Option<u64>, traits: Traits) -> Option<()>;

    /// Whether a call frame instruction says that from here on the return address is signed, or no longer is.
    fn toggles_signature(opcode: u8) -> bool;

    /// How much code [`Self::is_signal_return`] looks at; at most [`LONGEST_CODE`].
    const SIGNAL_RETURN: usize;

    /// Whether `code`, [`Self::SIGNAL_RETURN`] bytes long, is what a signal handler returns to.
    fn is_signal_return(code: &[u8]) -> bool;

    /// The registers that a signal interrupted; `at_return` are those where its handler returns to.
    fn interrupted<M: StackMemory>(at_return: &Self::Values, stack: &M) -> Option<Self::Values>;

    /// The instruction by which 64-bit code, or else 32-bit code's `clone`, calls the kernel; at most [`LONGEST_CODE`] bytes.
    const SYSTEM_CALL: &[u8];

    /// The instruction behind which a root may begin that has no rule, as i386's `__start_context` of glibc is behind the return of
    /// `makecontext`; at most [`LONGEST_CODE`] bytes.
    const BEFORE_ROOT: Option<&[u8]> = None;

    /// At most [`LONGEST_CODE`].
    const LONGEST_CALL: usize;
    /// The longest beginning of a stub that is looked at; at most [`LONGEST_CODE`].
    const LONGEST_STUB: usize;

    /// The call at the end of `code`, [`Self::LONGEST_CALL`] bytes long. Bytes that happen to look like one can't be
    /// told from one.
    fn call_at_end(code: &[u8]) -> Option<Call>;

    /// Whether `code`, which ends with a call, gave the stack pointer just before a value that is neither its own nor the
    /// frame pointer's: what is called runs on a stack that the caller was not called on.
    fn switches_stack(code: &[u8]) -> bool;

    /// What a function that loads the registers of elsewhere has loaded; `code` is from its first instruction on up to the one
    /// that is about to run. `None` where that is not told.
    fn loaded(_code: &[u8]) -> Option<Loaded> {
        None
    }

    /// Whether `code`, [`Self::LONGEST_STUB`] bytes long, does nothing but jump on: an entry of a linkage table, or a
    /// JIT compiler's stub.
    fn is_stub(code: &[u8]) -> bool;

    /// What a function has done to the stack; `code` is from its first instruction on up to the one that is about to run.
    fn prologue(code: &[u8]) -> Prologue;

    /// Compilers have functions begin at multiples of this.
    const FUNCTION_ALIGNMENT: usize;

    /// Whether `code` looks like a function's first instruction, which is told by how compilers begin functions, and by what is
    /// `before` it not running on into it.
    fn begins_function(before: &[u8], code: &[u8]) -> bool;

    /// How much of the code before an address tells what the code behind it does; at most [`LONGEST_CODE`].
    const TOLD_BY: usize;

    /// Adds to `epilogue` what `code` does to the stack from its beginning on, up to where it returns or jumps; `before` is the
    /// code before it, [`Self::TOLD_BY`] bytes or none. Jumps that depend on a condition are passed over: `fork` is told how
    /// far behind the code's beginning each would lead that goes further on, and what was done to the stack by then.
    fn epilogue(before: &[u8], code: &[u8], epilogue: &mut Epilogue, fork: impl FnMut(i64, Epilogue))
    -> Next;

    /// Where, from its beginning, `code` jumps to before it does anything to the stack: a function that only hands on to
    /// another.
    fn tail_jump(code: &[u8]) -> Option<i64>;
}

/// Room for the code that any architecture looks at.
pub(crate) const LONGEST_CODE: usize = 16;

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Of the address this far behind its end.
    Direct(i32),
    /// Of an address in a register or in memory.
    Indirect,
}

/// Which registers code has loaded that goes elsewhere, of the stack pointer and the one that calls leave the return address in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loaded {
    /// Both or neither: they are of one function.
    AllOrNone {
        /// Whether the frame pointer is of it, too.
        frame_pointer: bool,
    },
    /// That for the return address alone.
    ReturnAddress {
        /// Whether the frame pointer is of the function that it leads to.
        frame_pointer: bool,
    },
}

/// The registers that a quick walk follows, and the steps that need no others.
pub(crate) trait Core: Copy + Debug + Eq {
    type Quick;

    fn ip(self) -> u64;
    fn sp(self) -> u64;
    fn frame_pointer(self) -> u64;

    /// Whether the stack pointer is what it was, and not the least that it can have been.
    fn has_exact_sp(self) -> bool {
        true
    }

    /// The caller by a rule.
    fn caller<M: StackMemory>(self, rule: Self::Quick, stack: &M) -> Result<Self, StopReason>;

    /// The caller by the frame pointer, if that may be one at all: it points into the readable stack, not below `sp`, and
    /// is aligned. Whether `ip` is executable is for the walk to find out.
    fn by_frame_pointer<M: StackMemory>(self, stack: &M) -> Option<Self>;

    /// The caller as at a function's first instruction.
    fn by_entry<M: StackMemory>(self, stack: &M) -> Option<Self>;

    /// The caller that the `word` in a `slot` of the stack leads to, if that is this function's return address.
    fn by_slot<M: StackMemory>(self, slot: u64, word: u64, stack: &M) -> Option<Self>;

    /// The same, where the stack pointer is known to have been `entry` at the function's first instruction, and what the
    /// frame pointer was then.
    fn returned(self, word: u64, entry: u64, frame_pointer: u64) -> Option<Self>;

    /// The address that a word on the stack is, if it is a return address.
    fn return_address(self, word: u64) -> u64;
}

/// The bytes of assembly, as the assembler of a toolchain with this prefix makes them.
#[cfg(test)]
pub(crate) fn assembled(prefix: &str, text: &str) -> Option<Vec<u8>> {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    let folder = tempfile::tempdir().unwrap();
    let (object, code) = (folder.path().join("a.o"), folder.path().join("a.bin"));
    let spawned = Command::new(format!("{prefix}as")).arg("-o").arg(&object).stdin(Stdio::piped()).spawn();
    let Ok(mut assembler) = spawned else {
        eprintln!("SKIPPED: there is no {prefix}as");
        return None;
    };
    assembler.stdin.take().unwrap().write_all(format!("{text}\n").as_bytes()).unwrap();
    assert!(assembler.wait().unwrap().success(), "{text}");
    let mut copy = Command::new(format!("{prefix}objcopy"));
    let copied = copy.args(["-O", "binary", "-j", ".text"]).args([&object, &code]).status();
    assert!(copied.unwrap().success());
    Some(std::fs::read(code).unwrap())
}
