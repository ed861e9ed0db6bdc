//! What a step by a rule in full leaves to aarch64: how the caller is returned to, and whether that address is signed.

use super::registers::Values;
use super::{LR, PC};
use crate::table::Traits;

/// `DW_CFA_AARCH64_negate_ra_state` and `_negate_ra_state_with_pc`. The latter also says which instruction signed, which
/// matters to who checks a signature, not to who strips it.
pub(super) fn toggles_signature(opcode: u8) -> bool {
    matches!(opcode, 0x2d | 0x2c)
}

/// A function that has called nothing yet, or never does, has its return address in `x30`. Where it called something,
/// that register was overwritten by the call, with the address the frame is at.
pub(super) fn return_to(caller: &mut Values, found: Option<u64>, traits: Traits) -> Option<()> {
    let kept = || Some(caller.get(traits.return_address)).filter(|&address| address != caller.get(PC));
    let address = found.or_else(kept)?;
    let address = if traits.signed { caller.mask.strip(address) } else { address };
    // An interrupted function has its own `x30`.
    if traits.return_address != PC {
        caller.set(LR, address);
    }
    caller.set(PC, address);
    *caller = caller.with_exact_sp();
    Some(())
}
