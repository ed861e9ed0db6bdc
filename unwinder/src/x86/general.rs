//! What a step by a rule in full leaves to x86: how the caller is returned to.

use super::RETURN_ADDRESS;
use super::registers::Values;

/// The return address always has a rule, for `call` pushes it.
pub(super) fn return_to(caller: &mut Values, found: Option<u64>) -> Option<()> {
    caller[usize::from(RETURN_ADDRESS)] = found?;
    Some(())
}
