//! Recordings of big-endian machines: none of their architectures is walked, but what the kernel walked is kept.

use std::path::Path;
use std::process::Command;

use collector_common::ids::Avma;
use collector_common::perf::{
    Attr, ByteOrder, Bytes, Callchain, ChainContext, Misc, Registers, RegistersAbi, Sample, SampleType,
    UserStack, Words,
};

use crate::prerequisites::live_with;
use crate::programs::folder;
use crate::put_together::{PutTogether, frames, replay};

const PROGRAM: &str = "/no/such/program";

/// Where it is mapped.
const START: u64 = 0x100_0000;

/// Addresses of the kernel and of the program in a sample of `s390x`.
const CHAIN: [&[u64]; 2] = [&[0x10_2030, 0x10_4050], &[0x100_1234, 0x100_2468, 0x100_369c]];

/// The same as linked. Nothing is known of how the program was: its addresses are offsets in the file.
fn linked() -> Vec<u64> {
    let [kernel, user] = CHAIN;
    kernel.iter().copied().chain(user.iter().map(|address| address - START)).collect()
}

/// Three samples that the kernel walked.
fn walked(path: &Path) {
    let attr = Attr { sample_type: SampleType::CALLCHAIN, ..Attr::default() };
    let mut file = PutTogether::new(path, ByteOrder::Big, &attr);
    file.map(100, [START, START + 0x1_0000, 0], Path::new(PROGRAM));
    let [kernel, user] = CHAIN;
    let marks = [ChainContext::KERNEL.0, ChainContext::USER.0].map(|mark| [mark]);
    let chain = [&marks[0], kernel, &marks[1], user].concat();
    let callchain = Some(Callchain::from(Words::from(chain.as_slice())));
    for _ in 0..3 {
        file.sample(100, Misc::KERNEL, &Sample { ip: Some(Avma(kernel[0])), callchain, ..Sample::default() });
    }
    file.finish(Some("s390x"));
}

#[test]
fn chains_of_big_endian_machines_are_kept() {
    let folder = folder();
    let path = folder.path().join("perf.data");
    walked(&path);
    let recording = replay(&path);
    assert_eq!(recording.stats.stacks, [("walked_when_recorded", 3)].into());
    for stack in frames(&recording) {
        let addresses: Vec<u64> = stack.iter().map(|(_, address)| *address).collect();
        assert_eq!(addresses, linked());
        assert!(stack[2..].iter().all(|(file, _)| file == PROGRAM));
    }
    assert_eq!(recording.machine.system().architecture, "s390x");
}

#[test]
fn perf_reads_the_same_chains_of_a_big_endian_machine() {
    let test = "perf_reads_the_same_chains_of_a_big_endian_machine";
    let Some(_live) = live_with(test, &["perf"]) else { return };
    let folder = folder();
    let path = folder.path().join("perf.data");
    walked(&path);
    let output = Command::new("perf").args(["script", "-F", "ip", "-i"]).arg(&path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let addresses: Vec<u64> =
        text.split_whitespace().filter_map(|word| u64::from_str_radix(word, 16).ok()).collect();
    assert_eq!(addresses, linked().repeat(3), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn copied_stacks_of_big_endian_machines_are_counted() {
    let folder = folder();
    let path = folder.path().join("perf.data");
    let attr = Attr {
        sample_type: SampleType::REGS_USER.or(SampleType::STACK_USER),
        sample_regs_user: 0b11,
        sample_stack_user: 1024,
        ..Attr::default()
    };
    let mut file = PutTogether::new(&path, ByteOrder::Big, &attr);
    file.map(100, [START, START + 0x1_0000, 0], Path::new(PROGRAM));
    let stack = UserStack { data: Bytes::from(&[1; 1024][..]), dyn_size: 1024 };
    for _ in 0..2 {
        let sample = Sample {
            ip: Some(Avma(0x100_1234)),
            user_registers: Registers::new(RegistersAbi::BITS_64, 0b11, Words::from(&[5, 6][..])),
            user_stack: Some(stack),
            ..Sample::default()
        };
        file.sample(100, Misc::USER, &sample);
    }
    file.finish(Some("s390x"));
    let recording = replay(&path);
    assert_eq!(recording.stats.stacks, [("not_walked", 2)].into());
    for stack in frames(&recording) {
        assert_eq!(stack, [(PROGRAM.to_owned(), 0x1234), Default::default()]);
    }
    let told = recording.warnings.join(" ");
    assert!(told.contains("2 stacks were copied on s390x") && told.contains("--call-graph fp"), "{told}");
}
