//! Probes of the kernel's own functions, by a program whose system calls are known one by one.
//!
//! Not every kernel is built with such probes (`CONFIG_KPROBE_EVENTS`), the one that this is developed on is not: there the
//! tests are not run, and say so, which is no failure, since no set-up could help. `cargo xtask vm` runs them on kernels that have them. What
//! a kernel without answers is tested in `probes`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use collector_common::event::{EventData, EventFieldRef};
use collector_user::probe::Probe;
use collector_user::session::Backend;
use collector_user::tracefs::Tracefs;

use crate::prerequisites::{kernel_is_since, live, not_on_this_kernel};
use crate::probe_values::{self, OF_THE_KERNEL, TIMES, attach, command, of_events, registered};
use crate::programs::{compile, folder};
use crate::recording::record;
use crate::scenarios;

/// `TEXTS` of the program.
const TEXTS: [&str; 4] = ["zero", "one", "two words", ""];

const BACKENDS: [Backend; 2] = [Backend::Ebpf, Backend::Perf];

/// `EBADF` of `errno(3)`, negative as the kernel's functions return it.
const NOT_OPEN_FOR_THAT: i64 = -9;

/// Whether the kernel can have probes of its functions. Says so where it can't.
fn has_probes(test: &str) -> bool {
    let has = registered(OF_THE_KERNEL).is_some();
    if !has {
        not_on_this_kernel(test, "it was built without CONFIG_KPROBE_EVENTS");
    }
    has
}

/// How many bytes the program writes, in its order.
fn counts() -> impl Iterator<Item = u64> {
    (0..TIMES as u64).map(|i| i + 1).chain((0..TIMES as u64).map(|i| i + 1000))
}

fn writes(folder: &Path) -> PathBuf {
    compile(folder, "writes", "writes.c", &[])
}

/// What `read` makes of each occurrence of a probe of the kernel.
fn values<T: std::fmt::Debug + 'static>(
    backend: Backend,
    probe: &str,
    program: &Path,
    fields: &[&str],
    read: impl Fn(&EventData<'_>, &[EventFieldRef]) -> anyhow::Result<T> + 'static,
) -> Vec<T> {
    probe_values::values(backend, OF_THE_KERNEL, probe, program, fields, read)
}

#[test]
fn arguments_of_a_function_of_the_kernel() {
    let test = "arguments_of_a_function_of_the_kernel";
    let Some(_live) = live(test).filter(|_| has_probes(test)) else { return };
    let folder = folder();
    let program = writes(folder.path());
    // `vfs_write(struct file *file, const char __user *buf, size_t count, loff_t *pos)` of fs/read_write.c
    let probe = "kprobe:vfs_write(_, text:ustr, count:u64)";
    let last = TEXTS[(TIMES - 1) % 4];
    let texts = (0..TIMES).map(|i| TEXTS[i % 4]).chain([last; TIMES]).map(str::to_owned);
    let expected: Vec<_> = texts.zip(counts()).collect();
    for backend in BACKENDS {
        let seen = values(backend, probe, &program, &["text", "count"], |data, refs| {
            Ok((data.try_get_str(refs[0])?.to_owned(), data.try_get_u64(refs[1])?))
        });
        assert_eq!(seen, expected, "{backend:?}");
    }
}

#[test]
fn what_a_function_of_the_kernel_returns() {
    let test = "what_a_function_of_the_kernel_returns";
    let Some(_live) = live(test).filter(|_| has_probes(test)) else { return };
    let folder = folder();
    let program = writes(folder.path());
    let returned = |(i, count)| if i < TIMES && i % 2 == 1 { NOT_OPEN_FOR_THAT } else { count as i64 };
    let expected: Vec<_> = counts().enumerate().map(returned).collect();
    for backend in BACKENDS {
        let seen = values(backend, "kretprobe:vfs_write(ret:i64)", &program, &["ret"], |data, refs| {
            Ok(data.try_get_i64(refs[0])?)
        });
        assert_eq!(seen, expected, "{backend:?}");
    }
}

#[test]
fn returns_of_many_calls_that_wait_at_once() {
    let test = "returns_of_many_calls_that_wait_at_once";
    let Some(_live) = live(test).filter(|_| has_probes(test)) else { return };
    let folder = folder();
    let program = compile(folder.path(), "waiting_reads", "waiting_reads.c", &["-pthread"]);
    for backend in BACKENDS {
        let seen = values(backend, "kretprobe:vfs_read(ret:i64)", &program, &["ret"], |data, refs| {
            Ok(data.try_get_i64(refs[0])?)
        });
        // It reads nothing else of this length.
        assert_eq!(seen.iter().filter(|read| **read == 1).count(), TIMES, "{backend:?}: {seen:?}");
    }
    // Of a pattern, by what it is recorded with on this kernel.
    let pattern = Probe::parse("kretprobe:vfs_rea?(ret:i64)").unwrap();
    let hooks = pattern.attach_programs(&Tracefs::open().unwrap()).unwrap();
    let seen = probe_values::values_of(Backend::Auto, hooks, &program, &["ret"], |data, refs| {
        Ok(data.try_get_i64(refs[0])?)
    });
    assert_eq!(seen.iter().filter(|read| **read == 1).count(), TIMES, "a pattern: {seen:?}");
}

#[test]
fn returns_that_the_kernel_has_no_room_for_are_told() {
    let test = "returns_that_the_kernel_has_no_room_for_are_told";
    let Some(_live) = live(test).filter(|_| has_probes(test)) else { return };
    if !kernel_is_since(5, 17) {
        return not_on_this_kernel(test, "it is older than 5.17, and may not count them");
    }
    let folder = folder();
    let program = compile(folder.path(), "waiting_reads", "waiting_reads.c", &["-pthread"]);
    // Of so many functions at once the kernel keeps few calls each, where they are an event of tracefs.
    let mut hooks = attach("kretprobe:vfs_*(ret:i64)");
    assert!(hooks[0].note().is_some_and(|note| note.contains("few calls each")), "{:?}", hooks[0].note());
    let met = Arc::new(AtomicUsize::new(0));
    let meets = Arc::clone(&met);
    let returned = hooks[0].event.format().field_ref("ret").unwrap();
    hooks[0].event.add_closure(move |data| {
        meets.fetch_add(usize::from(data.try_get_i64(returned)? == 1), Ordering::Relaxed);
        Ok(())
    });
    let recording = scenarios::record(of_events(Backend::Perf, hooks), &command(&program));
    let [told] = &recording.warnings[..] else { panic!("{:?}", recording.warnings) };
    let count = told.split(" returns were not recorded").next().unwrap().rsplit(' ').next().unwrap();
    let (count, met): (usize, usize) = (count.parse().unwrap(), met.load(Ordering::Relaxed));
    assert!(met < TIMES && count + met >= TIMES, "{met} were met: {told}");
    assert!(told.ends_with("not asked for are among them"), "{told}");
    assert_eq!(recording.ledger.total_lost(), 0, "nobody knows whose they were");
}

#[test]
fn a_pattern_of_functions_of_the_kernel() {
    let test = "a_pattern_of_functions_of_the_kernel";
    let Some(_live) = live(test).filter(|_| has_probes(test)) else { return };
    let folder = folder();
    let program = writes(folder.path());
    // A write enters `__x64_sys_write(const struct pt_regs *)`, `ksys_write(unsigned int fd, const char __user *buf, size_t
    // count)` and `vfs_write`, one at a place the last of these alone. The first has no third argument.
    let expected: Vec<u64> = counts().collect();
    let (at_once, at_a_place) = expected.split_at(TIMES);
    for backend in BACKENDS {
        let probe = "kprobe:*s_write(_, _, count:u64)";
        let seen = values(backend, probe, &program, &["count"], |data, refs| Ok(data.try_get_u64(refs[0])?));
        assert_eq!(seen.len(), 4 * TIMES, "{backend:?}");
        let (writes, places) = seen.split_at(3 * TIMES);
        let writes: Vec<_> = writes.chunks(3).map(|entered| [entered[1], entered[2]]).collect();
        assert_eq!(writes, at_once.iter().map(|count| [*count; 2]).collect::<Vec<_>>(), "{backend:?}");
        assert_eq!(places, at_a_place, "{backend:?}");
    }
}

#[test]
fn stacks_and_a_filter_of_a_function_of_the_kernel() {
    let test = "stacks_and_a_filter_of_a_function_of_the_kernel";
    let Some(_live) = live(test).filter(|_| has_probes(test)) else { return };
    let folder = folder();
    let program = writes(folder.path());
    for backend in ["ebpf", "perf"] {
        let event = "kprobe:vfs_write(_, _, count:u64) /count > 90 && count < 1000/";
        let args = ["--backend", backend, "-e", event, "--", program.to_str().unwrap()];
        let recorded = record(folder.path(), args);
        // 91 to 100 bytes
        assert_eq!(recorded.figure("/samples/delivered"), 10, "{}", recorded.stderr);
        for stack in &recorded.stacks {
            assert_eq!(stack.frames.last().map(String::as_str), Some("vfs_write_[k]"), "{stack:?}");
            assert!(stack.frames.contains(&"main".to_owned()) && !stack.is_cut(), "{stack:?}");
        }
    }
}

/// Whether the kernel attaches programs to many of its functions in one step. Says so where it does not.
fn has_programs(test: &str) -> bool {
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap();
    let has = symbols.lines().any(|line| line.contains(" kprobe_multi_link_handler"));
    if !has {
        not_on_this_kernel(test, "it is older than 5.18, or was built without CONFIG_FPROBE");
    }
    has
}

/// What `read` makes of each call that a program at the kernel's functions tells of, which no event of tracefs is made for.
fn values_of_programs<T: std::fmt::Debug + 'static>(
    probe: &str,
    program: &Path,
    fields: &[&str],
    read: impl Fn(&EventData<'_>, &[EventFieldRef]) -> anyhow::Result<T> + 'static,
) -> Vec<T> {
    let before = registered(OF_THE_KERNEL);
    let hooks = Probe::parse(probe).unwrap().attach_programs(&Tracefs::open().unwrap()).unwrap();
    assert_eq!((hooks.len(), registered(OF_THE_KERNEL)), (1, before), "{probe}");
    probe_values::values_of(Backend::Ebpf, hooks, program, fields, read)
}

#[test]
fn a_program_is_at_all_functions_of_a_pattern() {
    let test = "a_program_is_at_all_functions_of_a_pattern";
    let Some(_live) = live(test).filter(|_| has_programs(test)) else { return };
    let folder = folder();
    let program = writes(folder.path());
    // As with `a_pattern_of_functions_of_the_kernel`.
    let expected: Vec<u64> = counts().collect();
    let (at_once, at_a_place) = expected.split_at(TIMES);
    let seen = values_of_programs("kprobe:*s_write(_, _, count:u64)", &program, &["count"], |data, refs| {
        Ok(data.try_get_u64(refs[0])?)
    });
    assert_eq!(seen.len(), 4 * TIMES);
    let (writes, places) = seen.split_at(3 * TIMES);
    let writes: Vec<_> = writes.chunks(3).map(|entered| [entered[1], entered[2]]).collect();
    assert_eq!(writes, at_once.iter().map(|count| [*count; 2]).collect::<Vec<_>>());
    assert_eq!(places, at_a_place);

    let returned = |(i, count)| if i < TIMES && i % 2 == 1 { NOT_OPEN_FOR_THAT } else { count as i64 };
    let expected: Vec<_> = counts().enumerate().map(returned).collect();
    let fields = ["ret", "__probe_func", "common_pid"];
    // Of fewer functions it is attached to returns since Linux 6.14 alone.
    let mut seen = values_of_programs("kretprobe:*_write(ret:i64)", &program, &fields, |data, refs| {
        Ok((data.try_get_i64(refs[0])?, data.try_get_u64(refs[1])?, data.try_get_i64(refs[2])?))
    });
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap();
    let line = symbols.lines().find(|line| line.ends_with(" T vfs_write")).unwrap();
    let address = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    seen.retain(|(_, function, _)| *function == address);
    assert_eq!(seen.iter().map(|(returned, ..)| *returned).collect::<Vec<_>>(), expected);
    let (_, _, thread) = seen[0];
    assert!(seen.iter().all(|(.., tid)| *tid == thread), "{seen:?}");
}

#[test]
fn stacks_and_a_filter_of_a_pattern_of_functions() {
    let test = "stacks_and_a_filter_of_a_pattern_of_functions";
    let Some(_live) = live(test).filter(|_| has_programs(test)) else { return };
    let folder = folder();
    let program = writes(folder.path());
    for (probe, leaf) in [("kprobe", "vfs_write_[k]"), ("kretprobe", "ksys_write_[k]")] {
        let condition = if probe == "kprobe" { "_, _, count:u64" } else { "count:u64" };
        let event = format!("{probe}:vfs_writ?({condition}) /count > 90 && count <= 100/");
        let recorded = record(folder.path(), ["-e", &event, "--", program.to_str().unwrap()]);
        // 91 to 100 bytes; each other call of these fails.
        let times = if probe == "kprobe" { 10 } else { 5 };
        assert_eq!(recorded.figure("/samples/delivered"), times, "{}", recorded.stderr);
        for stack in &recorded.stacks {
            assert_eq!(stack.frames.last().map(String::as_str), Some(leaf), "{stack:?}");
            assert!(stack.frames.contains(&"main".to_owned()) && !stack.is_cut(), "{stack:?}");
        }
    }
}
