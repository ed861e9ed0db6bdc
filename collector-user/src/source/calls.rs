//! Names of system calls and of the errors that they return, from the kernel's tables as the crate `syscalls` has them.

use collector_common::wire::CALL_NUMBERS;
use syscalls::Errno;
#[cfg(target_arch = "aarch64")]
use syscalls::{aarch64 as native, arm as compat};
#[cfg(target_arch = "x86_64")]
use syscalls::{x86 as compat, x86_64 as native};

/// The name of a call by its slot, as [`collector_common::wire::Call::slot`] has it; those of 32-bit programs have ` (32-bit)`
/// behind it. One without a name has its number.
pub(crate) fn name_of_slot(slot: u32) -> String {
    let (number, is_compat) = (slot % CALL_NUMBERS, slot >= CALL_NUMBERS);
    let index = number as usize;
    let name = if is_compat {
        compat::Sysno::new(index).map(|call| call.name())
    } else {
        native::Sysno::new(index).map(|call| call.name())
    };
    let name = match name {
        Some(name) => name.to_owned(),
        None if number == CALL_NUMBERS - 1 => "others".to_owned(),
        None => format!("system call {number}"),
    };
    if is_compat { format!("{name} (32-bit)") } else { name }
}

/// The name of the error that a call returned; `None` where it succeeded.
pub(crate) fn error_of(returned: i64) -> Option<String> {
    let number = i32::try_from(returned.checked_neg()?).ok().filter(|number| (1..=4095).contains(number))?;
    let name = Errno::new(number).name();
    Some(name.map_or_else(|| number.to_string(), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_c_library() {
        let native = [(libc::SYS_read, "read"), (libc::SYS_openat, "openat"), (libc::SYS_futex, "futex")];
        for (number, name) in native {
            assert_eq!(name_of_slot(number as u32), name);
        }
        assert_eq!(name_of_slot(CALL_NUMBERS - 1), "others");
        // `__NR_exit` is 1 of 32-bit programs, on x86 and on Arm.
        assert_eq!(name_of_slot(CALL_NUMBERS + 1), "exit (32-bit)");
        assert_eq!(error_of(-i64::from(libc::ENOENT)).as_deref(), Some("ENOENT"));
        assert_eq!(error_of(-4095).as_deref(), Some("4095"));
        assert_eq!([error_of(0), error_of(1), error_of(-4096), error_of(i64::MIN)], [None, None, None, None]);
    }
}
