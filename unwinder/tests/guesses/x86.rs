//! 32-bit x86 programs whose rules are taken away: what their instructions do leads to the frames that they found
//! themselves, in and out of libraries that keep their rules, and out of `main`, which realigns its stack.

use unwinder::x86::X86;
use unwinder::{FrameKind, StopReason, Unwinder};

use crate::corpus::run_on;

const NAMES: [&str; 9] = [
    "recursion",
    "qsort",
    "alloca",
    "huge_frame",
    "plain_restorer",
    "plain_rt_restorer",
    "signal",
    "fault",
    "thread",
];

#[test]
fn instructions_lead_through_code_without_rules() {
    for flags in [&[][..], &["-no-pie", "-fno-pie"], &["-fno-omit-frame-pointer"], &["-O0"], &["-static"]] {
        let Some(run) = run_on::<X86>("walks.c", flags) else { return };
        let space = run.space.stripped(|module| module.name.ends_with("/program"));
        for name in NAMES {
            let stack = run.stack(name);
            let (mut addresses, mut guessed) = (Vec::new(), 0);
            let stop = Unwinder::new().unwind(&space, &stack.registers, &stack.stack(), |frame| {
                addresses.push(frame.address);
                guessed += usize::from(frame.heuristic && frame.kind == FrameKind::ReturnAddress);
            });
            assert_eq!(addresses, stack.chain, "{name}, {flags:?}");
            assert_eq!(stop, StopReason::Root, "{name}, {flags:?}");
            assert!(guessed > 1, "{name}, {flags:?}");
        }
    }
}
