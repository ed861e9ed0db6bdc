//! What events say of the machine in, its description out.

use collector_common::record::SystemInfo;
use windows_etw::decode::kernel::{KernelEvent, processor_architecture};
use windows_etw::record::{EtwRecord, PointerSize};

use super::name;
use super::trace::Trace;

/// Addresses of code that is all at places where each instruction of ARM begins: as many of x86 are so by chance once in 4^32 traces.
const ENOUGH_ALIGNED: u64 = 32;

/// Where code of the kernel was met.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Code {
    /// Distinct addresses.
    pub(super) all: u64,
    /// Those at which no instruction of ARM can begin: of 64 bits they are multiples of 4, of 32 bits of 2.
    pub(super) odd: u64,
}

impl Code {
    pub(super) fn of(addresses: impl Iterator<Item = u64>, width: PointerSize) -> Self {
        let unit = match width {
            PointerSize::Bits32 => 2,
            PointerSize::Bits64 => 4,
        };
        let add = |code: Self, address: u64| Self {
            all: code.all + 1,
            odd: code.odd + u64::from(!address.is_multiple_of(unit)),
        };
        addresses.fold(Self::default(), add)
    }

    /// Whose code it is; none where it is too little to tell. Some addresses may be none of code.
    fn architecture(self, width: PointerSize) -> Option<&'static str> {
        let (arm, x86) = match width {
            PointerSize::Bits32 => ("arm", "x86"),
            PointerSize::Bits64 => ("aarch64", "x86_64"),
        };
        match self {
            Self { all, odd: 0 } => (all >= ENOUGH_ALIGNED).then_some(arm),
            Self { all, odd } => (odd.saturating_mul(4) >= all).then_some(x86),
        }
    }
}

/// What is known of the machine.
#[derive(Debug, Default)]
pub(super) struct Facts {
    host: String,
    /// MiB.
    memory: u32,
    cpus: u32,
    /// `PROCESSOR_ARCHITECTURE_*`.
    processor: Option<u16>,
    /// As `Windows 8 Pro`.
    product: String,
    /// As `9200.16384.amd64fre.win8_rtm.120725-1247`.
    lab: String,
}

impl Facts {
    /// Takes an event; those that tell nothing of the machine are passed over.
    pub(super) fn take(&mut self, event: &KernelEvent<'_>, record: &EtwRecord<'_>) {
        match event {
            KernelEvent::Cpu(cpu) => {
                name(&cpu.computer.0.to_string()).clone_into(&mut self.host);
                (self.memory, self.cpus) = (cpu.memory, cpu.processors);
                self.processor = processor_architecture(record);
            }
            KernelEvent::Build(build) => {
                name(&build.product.to_string()).clone_into(&mut self.product);
                name(&build.lab.to_string()).clone_into(&mut self.lab);
            }
            _ => {}
        }
    }

    /// Fills in what is known.
    pub(super) fn describe(&self, trace: &Trace, code: Code, system: &mut SystemInfo) {
        self.host.clone_into(&mut system.host);
        self.product.clone_into(&mut system.distribution);
        system.memory = u64::from(self.memory) << 20;
        system.cpus = if trace.cpus > 0 { trace.cpus } else { self.cpus };
        let version = trace.windows;
        if version.major > 0 {
            system.kernel = format!("Windows {}.{}.{}", version.major, version.minor, version.build);
        }
        let told = self.architecture().or_else(|| code.architecture(trace.pointer_size));
        told.unwrap_or_default().clone_into(&mut system.architecture);
    }

    /// By what the trace says of it: the processor and, where a tool has merged it, the edition of Windows.
    fn architecture(&self) -> Option<&'static str> {
        let by_processor = match self.processor {
            Some(0) => Some("x86"),
            Some(5) => Some("arm"),
            Some(9) => Some("x86_64"),
            Some(12) => Some("aarch64"),
            _ => None,
        };
        let labs = [("amd64", "x86_64"), ("arm64", "aarch64"), ("x86", "x86")];
        let by_lab = || labs.into_iter().find(|(lab, _)| self.lab.contains(lab)).map(|(_, name)| name);
        by_processor.or_else(by_lab)
    }
}
