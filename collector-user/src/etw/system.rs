//! What events say of the machine in, its description out.

use collector_common::record::SystemInfo;
use windows_etw::decode::kernel::KernelEvent;
use windows_etw::record::PointerSize;

use super::name;
use super::trace::Trace;

/// What is known of the machine.
#[derive(Debug, Default)]
pub(super) struct Facts {
    host: String,
    /// MiB.
    memory: u32,
    cpus: u32,
    /// As `Windows 8 Pro`.
    product: String,
    /// As `9200.16384.amd64fre.win8_rtm.120725-1247`.
    lab: String,
}

impl Facts {
    /// Takes an event; those that tell nothing of the machine are passed over.
    pub(super) fn take(&mut self, event: &KernelEvent<'_>) {
        match event {
            KernelEvent::Cpu(cpu) => {
                name(&cpu.computer.0.to_string()).clone_into(&mut self.host);
                (self.memory, self.cpus) = (cpu.memory, cpu.processors);
            }
            KernelEvent::Build(build) => {
                name(&build.product.to_string()).clone_into(&mut self.product);
                name(&build.lab.to_string()).clone_into(&mut self.lab);
            }
            _ => {}
        }
    }

    /// Fills in what is known.
    pub(super) fn describe(&self, trace: &Trace, system: &mut SystemInfo) {
        self.host.clone_into(&mut system.host);
        self.product.clone_into(&mut system.distribution);
        system.memory = u64::from(self.memory) << 20;
        system.cpus = if trace.cpus > 0 { trace.cpus } else { self.cpus };
        let version = trace.windows;
        if version.major > 0 {
            system.kernel = format!("Windows {}.{}.{}", version.major, version.minor, version.build);
        }
        let told = ["amd64", "arm64", "x86"].into_iter().find(|known| self.lab.contains(known));
        let architecture = match (told, trace.pointer_size) {
            (Some("arm64"), _) => "aarch64",
            (Some("amd64"), _) | (None, PointerSize::Bits64) => "x86_64",
            _ => "x86",
        };
        architecture.clone_into(&mut system.architecture);
    }
}
