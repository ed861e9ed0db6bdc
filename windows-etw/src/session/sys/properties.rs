//! `EVENT_TRACE_PROPERTIES` with what lies behind it: the session's name, its file's, and what the heap's session is for.

use std::ffi::OsString;
use std::os::windows::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use windows_sys::Win32::System::Diagnostics::Etw::{
    EVENT_TRACE_FILE_MODE_SEQUENTIAL, EVENT_TRACE_FLAG_EXTENSION, EVENT_TRACE_INDEPENDENT_SESSION_MODE,
    EVENT_TRACE_PROPERTIES, EVENT_TRACE_REAL_TIME_MODE, EVENT_TRACE_SYSTEM_LOGGER_MODE,
    SystemTraceControlGuid, WNODE_FLAG_TRACED_GUID,
};

use super::{cpus, to_windows};
use crate::plan::{Buffers, Flags, HeapPlan};
use crate::session::Losses;

/// `Wnode.ClientContext`: times are those of the performance counter.
const CLOCK_QPC: u32 = 1;
/// Characters of a name, with the zero.
const MOST_NAME: usize = 1024;
/// Words of what the heap's session is for, with [`HeapPlan::MOST`] processes.
const MOST_EXTENSION: usize = 1024;
/// `TRACE_ENABLE_FLAG_EXTENSION.Length`, in bits 16 to 23: the extension says its length itself.
const LENGTH_IS_IN_EXTENSION: u32 = 0xff_0000;

/// What a session is for.
#[derive(Clone, Copy, Debug)]
pub(in crate::session) enum Kind<'a> {
    /// The kernel's events, whose flags are set later, and those of providers.
    System,
    /// Those of providers alone.
    Providers,
    /// The kernel's, in the session that all programs share, with these flags.
    NtKernel(Flags),
    /// Blocks of heaps.
    Heap(&'a HeapPlan),
}

#[repr(C)]
struct Layout {
    head: EVENT_TRACE_PROPERTIES,
    logger: [u16; MOST_NAME],
    file: [u16; MOST_NAME],
    extension: [u32; MOST_EXTENSION],
}

/// The structure, in which Windows answers, too.
pub(in crate::session) struct Properties(Box<Layout>);

/// Characters of a session's name. Windows takes 1,024 (Microsoft's page on `StartTrace`), but 260 for the mutex that is called after it.
const LONGEST_NAME: usize = 200;

/// Whether it can be a session's name.
pub(in crate::session) fn is_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.encode_utf16().count()) && !name.contains(['\0', '\\'])
}

impl Properties {
    /// With room for names and nothing asked for, as `ControlTraceW` takes it.
    pub(super) fn empty() -> Self {
        let mut layout = Box::new(Layout {
            head: EVENT_TRACE_PROPERTIES::default(),
            logger: [0; MOST_NAME],
            file: [0; MOST_NAME],
            extension: [0; MOST_EXTENSION],
        });
        layout.head.Wnode.BufferSize = size_of::<Layout>() as u32;
        layout.head.Wnode.Flags = WNODE_FLAG_TRACED_GUID;
        layout.head.LoggerNameOffset = std::mem::offset_of!(Layout, logger) as u32;
        layout.head.LogFileNameOffset = std::mem::offset_of!(Layout, file) as u32;
        Self(layout)
    }

    /// For a session. `file` must be absolute. None where a name or what the heap is told is too long, or has a zero.
    pub(in crate::session) fn of(
        kind: Kind<'_>,
        buffers: Buffers,
        live: bool,
        file: Option<&Path>,
    ) -> Option<Self> {
        let mut properties = Self::empty();
        let head = &mut properties.0.head;
        head.Wnode.ClientContext = CLOCK_QPC;
        head.BufferSize = buffers.kib;
        (head.MinimumBuffers, head.MaximumBuffers) = buffers.counts(cpus());
        head.FlushTimer = buffers.flush_timer(live);
        // Without it, an event that another session has no room for is in none.
        head.LogFileMode = EVENT_TRACE_INDEPENDENT_SESSION_MODE;
        if live {
            head.LogFileMode |= EVENT_TRACE_REAL_TIME_MODE;
        }
        if let Some(file) = file {
            head.LogFileMode |= EVENT_TRACE_FILE_MODE_SEQUENTIAL;
            let units: Vec<u16> = file.as_os_str().encode_wide().collect();
            if units.len() >= MOST_NAME || units.contains(&0) {
                return None;
            }
            properties.0.file[..units.len()].copy_from_slice(&units);
        } else {
            head.LogFileNameOffset = 0;
        }
        match kind {
            Kind::System => properties.0.head.LogFileMode |= EVENT_TRACE_SYSTEM_LOGGER_MODE,
            Kind::Providers => {}
            Kind::NtKernel(flags) => {
                properties.0.head.Wnode.Guid = SystemTraceControlGuid;
                properties.0.head.EnableFlags = flags.0;
            }
            Kind::Heap(heap) => {
                properties.0.head.Wnode.Guid = to_windows(HeapPlan::PROVIDER);
                let words = heap.extension();
                properties.0.extension.get_mut(..words.len())?.copy_from_slice(&words);
                let offset = std::mem::offset_of!(Layout, extension) as u32;
                properties.0.head.EnableFlags = EVENT_TRACE_FLAG_EXTENSION | LENGTH_IS_IN_EXTENSION | offset;
            }
        }
        Some(properties)
    }

    /// For Windows' functions. All of [`Self`] may be written through it.
    pub(super) fn pointer(&mut self) -> *mut EVENT_TRACE_PROPERTIES {
        (&raw mut *self.0).cast()
    }

    /// The file that Windows tells; none where it tells none.
    pub(super) fn file(&self) -> Option<PathBuf> {
        let length = self.0.file.iter().position(|unit| *unit == 0).unwrap_or(MOST_NAME);
        (length > 0).then(|| OsString::from_wide(&self.0.file[..length]).into())
    }

    /// The number of the session's thread, as Windows tells it.
    pub(super) fn thread(&self) -> u32 {
        // A handle that stands for a number of 32 bits.
        self.0.head.LoggerThreadId.addr() as u32
    }

    /// What Windows has counted.
    pub(super) fn losses(&self) -> Losses {
        let head = &self.0.head;
        Losses {
            events: head.EventsLost.into(),
            file_buffers: head.LogBuffersLost.into(),
            live_buffers: head.RealTimeBuffersLost.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use collector_common::ids::Pid;

    use super::*;

    #[test]
    fn a_file_and_its_mode() {
        let file = Path::new("C:\\x.etl");
        let properties = Properties::of(Kind::System, Buffers::USUAL, false, Some(file)).unwrap();
        let head = &properties.0.head;
        // evntrace.h: sequential file 1, system logger 0x2000000, independent session 0x8000000; 120 bytes on 64-bit machines.
        assert_eq!(head.LogFileMode, 0x0a00_0001);
        assert_eq!((head.LoggerNameOffset, head.LogFileNameOffset), (120, 120 + 2048));
        assert_eq!((head.BufferSize, head.FlushTimer, head.Wnode.ClientContext), (256, 0, 1));
        assert!(head.MinimumBuffers >= 4 && head.MaximumBuffers == head.MinimumBuffers * 4);
        let name: Vec<u16> = "C:\\x.etl".encode_utf16().chain([0]).collect();
        assert_eq!(properties.0.file[..name.len()], name);
        assert_eq!((properties.file().as_deref(), Properties::empty().file()), (Some(file), None));
        assert!(Properties::of(Kind::System, Buffers::USUAL, false, Some(Path::new("x\0y"))).is_none());
        assert!(
            Properties::of(Kind::System, Buffers::USUAL, false, Some(Path::new(&"x".repeat(1024)))).is_none()
        );
    }

    #[test]
    fn live_sessions_have_no_file() {
        let properties = Properties::of(Kind::Providers, Buffers::USUAL, true, None).unwrap();
        assert_eq!((properties.0.head.LogFileMode, properties.0.head.LogFileNameOffset), (0x0800_0100, 0));
        assert_eq!(properties.0.head.FlushTimer, 1);
        let kernel = Properties::of(Kind::NtKernel(Flags::PROFILE), Buffers::USUAL, true, None).unwrap();
        assert_eq!(kernel.0.head.EnableFlags, 0x0100_0000);
        assert_eq!(kernel.0.head.Wnode.Guid.data1, 0x9e81_4aad);
    }

    /// evntrace.h: real time 0x100.
    #[test]
    fn live_and_in_a_file_at_once() {
        let file = Path::new("C:\\x.etl");
        let mode = |kind| Properties::of(kind, Buffers::USUAL, true, Some(file)).unwrap().0.head.LogFileMode;
        assert_eq!([Kind::System, Kind::Providers].map(mode), [0x0a00_0101, 0x0800_0101]);
        assert_eq!(mode(Kind::NtKernel(Flags::PROFILE)), 0x0800_0101);
        let properties = Properties::of(Kind::System, Buffers::USUAL, true, Some(file)).unwrap();
        assert_eq!(properties.file().as_deref(), Some(file));
        assert_eq!((properties.0.head.LogFileNameOffset, properties.0.head.FlushTimer), (120 + 2048, 1));
    }

    #[test]
    fn the_heap_is_told_its_processes_behind_the_names() {
        let heap = HeapPlan { pids: vec![Pid(1234)] };
        let properties = Properties::of(Kind::Heap(&heap), Buffers::LARGE, true, None).unwrap();
        assert_eq!(properties.0.head.EnableFlags, 0x80ff_0000 | (120 + 2 * 2048));
        assert_eq!(properties.0.extension[..6], [0x2_0006, 0x2_0002, 1234, 0x3_0003, 0x1021, 0x1022]);
        assert_eq!(properties.0.head.Wnode.Guid.data1, 0x2229_62ab);
        let heap = HeapPlan { pids: vec![Pid(1); HeapPlan::MOST] };
        assert!(Properties::of(Kind::Heap(&heap), Buffers::LARGE, true, None).is_some());
        let heap = HeapPlan { pids: vec![Pid(1); HeapPlan::MOST + 1] };
        assert!(Properties::of(Kind::Heap(&heap), Buffers::LARGE, true, None).is_none());
    }

    #[test]
    fn names() {
        assert!(is_name("Collector") && is_name(&"x".repeat(200)));
        for wrong in ["", "a\0b", "a\\b", &"x".repeat(201)] {
            assert!(!is_name(wrong));
        }
    }
}
