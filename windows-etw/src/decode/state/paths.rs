//! Paths of devices (`\Device\HarddiskVolume3\Windows`), which the kernel uses, to those with drives, which people use.

use std::borrow::Cow;

use crate::decode::kernel::KernelEvent;

/// Mappings that are kept: more than a machine has volumes.
const MOST: usize = 1 << 10;

/// Bytes of each side of a mapping that is kept: each path that begins with the one has the other, and a volume's are short.
const LONGEST: usize = 1 << 10;

/// Which drive a device's path is on.
#[derive(Clone, Debug)]
pub struct NtPaths {
    /// What paths begin with, and what stands for that; the longest first.
    prefixes: Vec<(Box<str>, Box<str>)>,
    /// The drive that Windows is on: some paths of the kernel's are without one.
    drive: Option<Box<str>>,
    left_out: u64,
}

/// What paths of other kinds begin with that have no drive.
const ROOTS: [&str; 5] = [r"\\", r"\Device", r"\SystemRoot", r"\??", r"\REGISTRY"];

impl Default for NtPaths {
    /// What is so on every machine: `\??\`, and files of other machines.
    fn default() -> Self {
        let mut paths = Self { prefixes: Vec::new(), drive: None, left_out: 0 };
        for (nt, dos) in [
            (r"\??\", ""),
            (r"\??\UNC\", r"\\"),
            (r"\Device\Mup\", r"\\"),
            (r"\Device\LanmanRedirector\", r"\\"),
        ] {
            paths.add(nt, dos);
        }
        paths
    }
}

impl NtPaths {
    /// Takes what an event says of volumes: `VolumeMapping` and `SystemPaths`. All others are passed over.
    pub fn learn(&mut self, event: &KernelEvent<'_>) {
        match event {
            KernelEvent::VolumeMapping(mapping) => {
                self.add(&mapping.nt_path.to_string(), &mapping.dos_path.to_string());
            }
            KernelEvent::SystemPaths(paths) => {
                let windows = paths.windows.to_string();
                self.drive = windows.get(..2).filter(|drive| drive.ends_with(':')).map(Box::from);
                self.add(r"\SystemRoot\", &windows);
            }
            _ => {}
        }
    }

    /// What begins with `nt` begins with `dos`. The later of two for the same counts.
    pub fn add(&mut self, nt: &str, dos: &str) {
        if nt.is_empty() {
            return;
        }
        if nt.len().max(dos.len()) > LONGEST {
            self.left_out += 1;
            return;
        }
        let place = self.prefixes.iter().position(|(own, _)| own.eq_ignore_ascii_case(nt));
        if let Some(place) = place {
            self.prefixes.remove(place);
        } else if self.prefixes.len() >= MOST {
            self.left_out += 1;
            return;
        }
        let place = self.prefixes.partition_point(|(own, _)| own.len() > nt.len());
        self.prefixes.insert(place, (nt.into(), dos.into()));
    }

    /// Mappings that are left out: there are more, or longer ones, than any machine has.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The path as people know it; as it is where that is not known.
    pub fn to_dos<'p>(&self, path: &'p str) -> Cow<'p, str> {
        for (nt, dos) in &self.prefixes {
            let (Some(start), Some(rest)) = (path.get(..nt.len()), path.get(nt.len()..)) else { continue };
            if start.eq_ignore_ascii_case(nt) {
                return if dos.is_empty() { rest.into() } else { format!("{dos}{rest}").into() };
            }
        }
        let begins =
            |root: &str| path.get(..root.len()).is_some_and(|start| start.eq_ignore_ascii_case(root));
        match &self.drive {
            Some(drive) if path.starts_with('\\') && !ROOTS.iter().any(|root| begins(root)) => {
                format!("{drive}{path}").into()
            }
            _ => path.into(),
        }
    }
}
