//! The chain of addresses of real stacks equals the one that glibc's `backtrace()` (libgcc's unwinder) found in the
//! program itself.

use unwinder::x86_64::X86_64;
use unwinder::{Frame, FrameKind, StopReason, Unwinder};

use crate::corpus::{Captured, Platform, Run, run, run_on, run_python};

mod aarch64;
mod assembled;
mod pushes;
mod roots;
mod switch;
mod x86;

fn walk<A: Platform>(
    unwinder: &mut Unwinder<A>,
    run: &Run<A>,
    stack: &Captured<A>,
) -> (Vec<Frame>, StopReason) {
    let mut frames = Vec::new();
    let stop = unwinder.unwind(&run.space, &stack.registers, &stack.stack(), |frame| frames.push(frame));
    (frames, stop)
}

fn located<A: Platform>(run: &Run<A>, addresses: &[u64]) -> Vec<String> {
    let locate = |&address: &u64| {
        let module = run.space.modules.iter().find(|module| (module.start..module.end).contains(&address));
        module.map_or(format!("{address:#x}"), |module| {
            format!("{}+{:#x}", module.name, address.wrapping_sub(module.bias))
        })
    };
    addresses.iter().map(locate).collect()
}

/// The whole chain, by unwind information alone, to the root.
fn assert_complete<A: Platform>(run: &Run<A>, stack: &Captured<A>) {
    let (frames, stop) = walk(&mut Unwinder::new(), run, stack);
    let addresses: Vec<u64> = frames.iter().map(|frame| frame.address).collect();
    let name = &stack.name;
    assert_eq!(located(run, &addresses), located(run, &stack.chain), "{name} stopped with {stop:?}");
    assert_eq!(stop, StopReason::Root, "{name}");
    assert!(frames.iter().all(|frame| !frame.heuristic), "{name}");
}

fn assert_all_complete<A: Platform>(source: &str, flags: &[&str], names: &[&str]) {
    let Some(run) = run_on::<A>(source, flags) else { return };
    for name in names {
        let stack = run.stack(name);
        assert!(stack.chain.len() >= 3, "{name}: {:?}", located(&run, &stack.chain));
        assert_complete(&run, stack);
    }
}

const WALKS: [&str; 14] = [
    "recursion",
    "qsort",
    "alloca",
    "realigned",
    "huge_frame",
    "outer_rbx",
    "outer_r13",
    "outer_expression",
    "outer_moved",
    "plain_restorer",
    "signal",
    "fault",
    "thread",
    "context",
];

#[test]
fn c_stacks_are_complete() {
    assert_all_complete::<X86_64>("walks.c", &[], &WALKS);
}

#[test]
fn stacks_of_a_position_dependent_program_are_complete() {
    assert_all_complete::<X86_64>("walks.c", &["-no-pie", "-fno-pie"], &WALKS);
}

#[test]
fn stacks_of_a_static_program_are_complete() {
    assert_all_complete::<X86_64>("walks.c", &["-static"], &WALKS);
}

#[test]
fn stacks_of_a_static_pie_are_complete() {
    assert_all_complete::<X86_64>("walks.c", &["-static-pie"], &WALKS);
}

#[test]
fn stacks_of_a_program_without_eh_frame_hdr_are_complete() {
    // libgcc itself then needs the section registered, which static programs do.
    assert_all_complete::<X86_64>("walks.c", &["-static", "-Wl,--no-eh-frame-hdr"], &WALKS);
}

#[test]
fn stacks_with_frame_pointers_are_complete() {
    assert_all_complete::<X86_64>("walks.c", &["-fno-omit-frame-pointer", "-O0"], &WALKS);
}

#[test]
fn cpp_stacks_are_complete() {
    let names = ["virtual", "function", "destructor", "handler"];
    assert_all_complete::<X86_64>("exceptions.cc", &[], &names);
    assert_all_complete::<X86_64>("exceptions.cc", &["-O3", "-flto"], &names);
}

#[test]
fn python_stacks_are_complete() {
    let Some(run) = run_python() else { return };
    assert!(run.stacks.len() > 100, "{}", run.stacks.len());
    for stack in &run.stacks {
        assert_complete(&run, stack);
    }
}

#[test]
fn the_recursion_has_its_fifty_frames() {
    let Some(run) = run("walks.c", &[]) else { return };
    let (frames, _) = walk(&mut Unwinder::new(), &run, run.stack("recursion"));
    assert!(frames.len() > 50);
}

/// That of the frames of these stacks those that were interrupted are exact, and no others.
fn assert_exact_above_signals<A: Platform>(flags: &[&str], names: &[&str]) {
    let Some(run) = run_on::<A>("walks.c", flags) else { return };
    for name in names {
        let (frames, _) = walk(&mut Unwinder::new(), &run, run.stack(name));
        let exact: Vec<usize> = (0..frames.len()).filter(|&at| frames[at].kind == FrameKind::Ip).collect();
        // capture, the handler, the trampoline, the interrupted function.
        assert_eq!(exact, [0, 3], "{name}");
    }
}

/// That a stack whose handler runs on another one ends with the frame that the signal interrupted.
fn assert_ends_at_what_was_interrupted<A: Platform>() {
    let Some(run) = run_on::<A>("walks.c", &[]) else { return };
    let stack = run.stack("alternate_stack");
    let (frames, stop) = walk(&mut Unwinder::new(), &run, stack);
    let addresses: Vec<u64> = frames.iter().map(|frame| frame.address).collect();
    assert_eq!(addresses, stack.chain[..4]);
    assert_eq!((stop, frames[3].kind), (StopReason::SwitchedStack, FrameKind::Ip));
}

#[test]
fn frames_above_a_signal_are_exact() {
    assert_exact_above_signals::<X86_64>(&[], &["signal", "fault"]);
}

#[test]
fn a_handler_on_an_alternate_stack_ends_at_what_it_interrupted() {
    assert_ends_at_what_was_interrupted::<X86_64>();
}

#[test]
fn every_instruction_of_lazy_binding_prologues_epilogues_and_vdso() {
    for flags in [&["-Wl,-z,lazy"][..], &["-Wl,-z,lazy", "-fcf-protection=none"], &["-O0", "-Wl,-z,lazy"]] {
        let Some(run) = run("steps.c", flags) else { return };
        assert!(run.stacks.len() > 1000, "{}", run.stacks.len());
        let mut unwinder = Unwinder::new();
        let mut modules = std::collections::BTreeMap::new();
        for (step, stack) in run.stacks.iter().enumerate() {
            let (frames, stop) = walk(&mut unwinder, &run, stack);
            let addresses: Vec<u64> = frames.iter().map(|frame| frame.address).collect();
            let place = located(&run, &addresses);
            assert_eq!(
                (place.as_slice(), stop),
                (located(&run, &stack.chain).as_slice(), StopReason::Root),
                "step {step}"
            );
            *modules.entry(place[0].split('+').next().unwrap().to_owned()).or_insert(0) += 1;
        }
        eprintln!("steps by module: {modules:?}");
        assert!(modules.len() >= 3, "{modules:?}");
        assert!(modules.contains_key("[vdso]"), "{modules:?}");
    }
}

#[test]
fn the_depth_limit_ends_a_walk() {
    let Some(run) = run("walks.c", &[]) else { return };
    let stack = run.stack("recursion");
    let (frames, stop) = walk(&mut Unwinder::with_depth_limit(20), &run, stack);
    assert_eq!((frames.len(), stop), (20, StopReason::DepthLimit));
    let exact = stack.chain.len();
    assert_eq!(walk(&mut Unwinder::with_depth_limit(exact), &run, stack).1, StopReason::Root);
    assert_eq!(walk(&mut Unwinder::with_depth_limit(exact - 1), &run, stack).1, StopReason::DepthLimit);
}

#[test]
fn a_cut_stack_is_a_prefix() {
    let Some(run) = run("walks.c", &[]) else { return };
    let whole = run.stack("recursion");
    for length in (0..whole.bytes.len()).step_by(512) {
        let stack = unwinder::CopiedStack::new(whole.base, &whole.bytes[..length], 0);
        let mut addresses = Vec::new();
        let stop = Unwinder::new()
            .unwind(&run.space, &whole.registers, &stack, |frame| addresses.push(frame.address));
        assert_eq!(addresses, whole.chain[..addresses.len()]);
        let expected =
            if addresses.len() == whole.chain.len() { StopReason::Root } else { StopReason::StackExhausted };
        assert_eq!(stop, expected, "{length} bytes");
    }
}

#[test]
fn an_absent_page_is_unreadable() {
    let Some(run) = run("walks.c", &[]) else { return };
    let whole = run.stack("recursion");
    let stack = unwinder::CopiedStack::new(whole.base, &whole.bytes, 0b1000);
    let mut addresses = Vec::new();
    let stop =
        Unwinder::new().unwind(&run.space, &whole.registers, &stack, |frame| addresses.push(frame.address));
    assert_eq!((addresses.as_slice(), stop), (&whole.chain[..addresses.len()], StopReason::Unreadable));
}
