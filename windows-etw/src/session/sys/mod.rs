//! Windows' functions: the only `unsafe` code of this crate. Each module wraps one subject; what goes in and comes out is checked
//! here, so that callers need not.
//!
//! Layouts and constants: `evntrace.h`, `evntcons.h`, `evntprov.h`, `tdh.h`, as the crate `windows-sys` has them.

#![allow(unsafe_code)]

mod alive;
mod clock;
mod console;
mod consume;
mod control;
mod describe;
mod drives;
mod enable;
mod live;
mod mutex;
mod privilege;
mod process;
mod properties;
mod record;
mod registry;
mod tuning;
mod usage;

pub use alive::alive;
pub use clock::Clock;
pub use describe::{description, providers};
pub use drives::drives;
pub use live::{Live, MakeSink, Sink};
pub use process::{OtherProcess, Suspended};
pub use usage::{OwnUsage, own_usage};

pub(super) use console::{Signal, hear_interrupts, on_console};
pub(super) use consume::{Ended, Open, Reader};
pub(super) use control::{Control, Handle, control, log_file, logger_thread, start, stop_by_name};
#[cfg(test)]
pub(super) use control::{let_sessions_answer, stopped_by_name};
pub(super) use enable::{Enable, PATIENCE, enable};
#[cfg(test)]
pub(super) use enable::{Told, let_providers_answer, let_states_be_answered, told_providers};
pub(super) use mutex::{Held, Mutex, create_mutex, hold};
pub(super) use privilege::turn_on_profile_privilege;
pub(super) use properties::{Kind, Properties, is_name};
pub(super) use registry::{forget, keep, kept};
pub(super) use tuning::{cpus, interval, set_flags, set_interval, set_stacks};
#[cfg(test)]
pub(super) use tuning::{let_flags_be_answered, told_flags};

use collector_common::event::Guid;
use windows_sys::core::GUID;

/// Text as Windows takes it, with a zero at the end.
fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

/// A GUID as Windows has it.
const fn to_windows(guid: Guid) -> GUID {
    GUID::from_u128(u128::from_be_bytes(guid.0))
}

/// One of Windows'.
fn from_windows(guid: GUID) -> Guid {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&guid.data1.to_be_bytes());
    bytes[4..6].copy_from_slice(&guid.data2.to_be_bytes());
    bytes[6..8].copy_from_slice(&guid.data3.to_be_bytes());
    bytes[8..].copy_from_slice(&guid.data4);
    Guid(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guids_there_and_back() {
        let text = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4";
        let guid: Guid = text.parse().unwrap();
        let windows = to_windows(guid);
        assert_eq!((windows.data1, windows.data2, windows.data4[0]), (0xe13c_0d23, 0xccbc, 0x93));
        assert_eq!(from_windows(windows).to_string(), text);
    }
}
