//! Stacks joined to their events. Of the files, `net.4.5.2.x64.etl` alone has stacks in events of their own.

use std::collections::BTreeMap;

use collector_common::ids::Tid;
use windows_etw::decode::clr::ClrEvent;
use windows_etw::decode::kernel::KernelEvent;
use windows_etw::decode::state::{Half, Joined, OwnStack, StackAt, StackLimits, StackLosses, Stacks};

use crate::data::open;

/// What is kept of an event until its stack is there.
#[derive(Clone, Copy)]
struct Kept {
    name: &'static str,
    /// Where a sample was, if it is not of an idle CPU.
    instruction: Option<u64>,
}

/// All events with their stacks.
fn join(file: &str) -> Option<(Vec<Joined<Kept>>, Stacks<Kept>)> {
    let mut etl = open(file)?;
    let mut stacks = Stacks::new(StackLimits::default());
    let mut joined = Vec::new();
    while let Some(record) = etl.next_record().unwrap() {
        let event = KernelEvent::decode(&record).unwrap();
        if event.as_ref().is_some_and(|event| stacks.stack(event, record.cpu)) {
            continue;
        }
        let runtime = ClrEvent::decode(&record).unwrap();
        if let (Some(ClrEvent::Stack(stack) | ClrEvent::RundownStack(stack)), Some(tid)) =
            (runtime, record.tid)
        {
            // Of what the runtime does there is a number of frames in the payload as well.
            assert_eq!(stack.frames.iter().len(), stack.count as usize);
            stacks.runtime_stack(tid, stack.frames);
            continue;
        }
        let at = StackAt::of(&record, event.as_ref(), None);
        let own = OwnStack::of(&record);
        let instruction = match &event {
            Some(KernelEvent::Sample(sample)) if sample.tid != Tid(0) => Some(sample.instruction.0),
            _ => None,
        };
        let name = event.as_ref().map(KernelEvent::name).or(runtime.as_ref().map(ClrEvent::name));
        let kept = Kept { name: name.unwrap_or("other"), instruction };
        joined.extend(match record.tid.filter(|_| runtime.is_some()) {
            Some(tid) => stacks.runtime_event(at, tid, own, kept),
            None => stacks.event(at, own, kept),
        });
    }
    joined.extend(stacks.finish());
    Some((joined, stacks))
}

#[test]
fn each_stack_has_its_event() {
    let file = "net.4.5.2.x64.etl";
    let Some((joined, stacks)) = join(file) else { return };
    assert_eq!(stacks.losses(), StackLosses::default());
    let frames = |half: &Half| match half {
        Half::Frames(frames) => frames.to_vec(),
        Half::Shared(id) => stacks.frames(*id).unwrap().to_vec(),
    };
    let mut with_stacks: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let (mut samples, mut joined_samples, mut at_top) = (0, 0, 0);
    for Joined { event, kernel, user, .. } in &joined {
        let counts = with_stacks.entry(event.name).or_default();
        counts.0 += 1;
        counts.1 += u64::from(kernel.is_some() || user.is_some());
        let (kernel, user) = (kernel.as_ref().map(frames), user.as_ref().map(frames));
        assert!(kernel.iter().flatten().all(|address| address >> 63 == 1));
        // Behind the user's there may be the kernel's again: it has called the user back.
        assert!(user.iter().all(|frames| frames[0] >> 63 == 0));
        let Some(instruction) = event.instruction else { continue };
        samples += 1;
        // A stack begins with the instruction of the sample itself.
        if let Some(top) = kernel.as_ref().or(user.as_ref()).and_then(|frames| frames.first()) {
            joined_samples += 1;
            at_top += u64::from(*top == instruction);
        }
    }
    with_stacks.retain(|_, counts| counts.1 > 0);
    eprintln!(
        "{file}: {joined_samples} of {samples} samples have stacks, {at_top} begin with their instruction; {with_stacks:?}"
    );
    for name in [
        "DiskIO/ReadInit",
        "GC/AllocationTick",
        "Image/Load",
        "Method/JittingStarted",
        "Memory/HardFault",
        "Thread/Start",
    ] {
        assert_eq!(with_stacks[name].0, with_stacks[name].1, "{name}");
    }
    assert!(joined_samples * 1000 > samples * 998, "{joined_samples} of {samples}");
    assert!(at_top * 100 > joined_samples * 99, "{at_top} of {joined_samples}");
}

/// A user's half is of all that its thread did from the event that it names to when it is told: the thread was in the kernel all that time.
#[test]
fn a_stay_in_the_kernel_ends_with_the_users_half() {
    let file = "net.4.5.2.x64.etl";
    let (Some(mut etl), Some((joined, _))) = (open(file), join(file)) else { return };
    let mut samples: BTreeMap<Tid, Vec<(i64, u64)>> = BTreeMap::new();
    let mut stays = 0;
    while let Some(record) = etl.next_record().unwrap() {
        let (tid, since) = match KernelEvent::decode(&record).unwrap() {
            Some(KernelEvent::Sample(sample)) => {
                samples.entry(sample.tid).or_default().push((record.ticks, sample.instruction.0));
                continue;
            }
            Some(KernelEvent::StackKeyUser(half)) => (half.tid, half.event_ticks),
            Some(KernelEvent::Stack(walk)) if walk.frames.iter().all(|address| address >> 63 == 0) => {
                (walk.tid, walk.event_ticks)
            }
            _ => continue,
        };
        let of_thread = samples.get(&tid).into_iter().flatten().rev();
        let mut within = of_thread.take_while(|(ticks, _)| *ticks as u64 > since);
        stays += 1;
        assert!(within.all(|(_, instruction)| instruction >> 63 == 1), "{tid:?} at {since}");
    }
    // Processes 0 and 4 are the kernel's.
    let in_kernel = joined.iter().filter(|it| it.kernel.is_some());
    let in_kernel = in_kernel.filter(|it| it.of.is_some_and(|(pid, _)| ![0, 4].contains(&pid.0)));
    let (both, alone): (Vec<_>, Vec<_>) = in_kernel.partition(|it| it.user.is_some());
    eprintln!(
        "{file}: {stays} user halves; of what began in the kernel {} have one, {} none",
        both.len(),
        alone.len()
    );
    assert!(alone.len() * 30 < both.len(), "{} of {}", alone.len(), both.len());
}

/// Events of manifests have theirs with them, which needs no joining.
#[test]
fn other_files_have_none_to_join() {
    for file in ["Process.etl", "gcevents.etl", "primitive-types.etl"] {
        let Some((joined, stacks)) = join(file) else { return };
        assert_eq!(stacks.losses(), StackLosses::default());
        assert!(joined.iter().all(|joined| joined.kernel.is_none() && joined.user.is_none()), "{file}");
    }
}
