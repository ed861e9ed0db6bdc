//! What machine this is: `uname(2)`, `/proc/meminfo` and `/proc/cpuinfo` of `proc(5)`, and `os-release(5)`.

use std::fs;

use super::command::Command;
use crate::recorder::Recorder;

/// Describes the machine.
pub(super) fn describe(recorder: &mut Recorder, cpus: usize, command: Option<&Command>) {
    let uname = rustix::system::uname();
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let system = recorder.machine_mut().system_mut();
    system.host = uname.nodename().to_string_lossy().into_owned();
    system.kernel = format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy());
    system.architecture = uname.machine().to_string_lossy().into_owned();
    let releases = ["/etc/os-release", "/usr/lib/os-release"];
    system.distribution = releases.iter().find_map(|path| distribution(&text(path))).unwrap_or_default();
    processor(&text("/proc/cpuinfo")).unwrap_or_default().clone_into(&mut system.processor);
    system.memory = memory(&text("/proc/meminfo")).unwrap_or_default();
    system.cpus = cpus as u32;
    system.command = command.map_or(String::new(), Command::line);
}

/// `PRETTY_NAME="..."`, quoted as a shell takes it.
fn distribution(release: &str) -> Option<String> {
    let value = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?.trim();
    let quotes = ['"', '\''];
    let inner = quotes.iter().find_map(|&quote| value.strip_prefix(quote)?.strip_suffix(quote));
    let mut characters = inner.unwrap_or(value).chars();
    let mut plain = String::new();
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    Some(plain).filter(|name| !name.is_empty())
}

/// `model name : ...` of the first CPU; on other architectures than x86 there is none.
fn processor(cpus: &str) -> Option<&str> {
    let (_, name) = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'))?;
    Some(name.trim()).filter(|name| !name.is_empty())
}

/// Bytes, of `MemTotal: ... kB`.
fn memory(info: &str) -> Option<u64> {
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn what_files_of_this_form_say() {
        let release = "ID=x\nPRETTY_NAME=\"Some \\\"good\\\" Linux 12\"\n";
        assert_eq!(distribution(release).as_deref(), Some("Some \"good\" Linux 12"));
        assert_eq!(distribution("PRETTY_NAME=Plain").as_deref(), Some("Plain"));
        assert_eq!(distribution("PRETTY_NAME=\"\"\nNAME=x"), None);
        assert_eq!(processor("processor\t: 0\nmodel name\t: A B @ 2 GHz\n"), Some("A B @ 2 GHz"));
        assert_eq!(processor("CPU implementer : 0x41\n"), None);
        assert_eq!(memory("MemFree: 1 kB\nMemTotal:    2048 kB\n"), Some(2 << 20));
        assert_eq!(memory("MemTotal: 99999999999999999999 kB"), None);
        assert_eq!(memory("MemTotal: 18446744073709551615 kB"), None);
    }

    #[test]
    fn this_machine_is_described() {
        let mut recorder = Recorder::new();
        describe(&mut recorder, 2, None);
        recorder.machine_mut().system_mut().clocks.start = Some(clock::anchor());
        let system = recorder.machine().system();
        let pages = rustix::system::sysinfo();
        assert_eq!(system.memory, pages.totalram * u64::from(pages.mem_unit));
        assert_eq!(system.cpus, 2);
        // `btime` of `/proc/stat` is when it was booted, in seconds.
        let stat = fs::read_to_string("/proc/stat").unwrap();
        let booted: u64 = stat.lines().find_map(|line| line.strip_prefix("btime ")).unwrap().parse().unwrap();
        let told = system.clocks.booted().unwrap();
        assert!(told.abs_diff(booted * 1_000_000_000) < 2_000_000_000, "{told} and {booted}");
    }
}
