//! What outlives this process, and not the machine's next start: values of a volatile key of the registry, which administrators alone write.

use windows_sys::Win32::Foundation::{
    ERROR_FILE_NOT_FOUND, ERROR_MORE_DATA, ERROR_NO_MORE_ITEMS, ERROR_SUCCESS,
};
use windows_sys::Win32::System::Registry::{
    HKEY, HKEY_LOCAL_MACHINE, KEY_QUERY_VALUE, KEY_SET_VALUE, KEY_WOW64_64KEY, REG_BINARY,
    REG_OPTION_VOLATILE, REG_SAM_FLAGS, RegCloseKey, RegCreateKeyExW, RegDeleteValueW, RegEnumValueW,
    RegOpenKeyExW, RegSetValueExW,
};

use super::wide;
use crate::session::Win32Error;

/// The key. Windows has the interval of samples as it is by default when it starts, and no such key.
const KEY: &str = "SOFTWARE\\Collector ETW intervals";
/// Characters of a value's name, with the zero, and bytes of its data: others are none of ours.
const LONGEST: usize = 64;

/// Keeps `data` under a name.
pub(in crate::session) fn keep(name: &str, data: &[u8]) -> Result<(), Win32Error> {
    let key = Key::make()?;
    let name = wide(name);
    // SAFETY: the key is open; the name ends with a zero; the data are as many bytes as are given; all outlive the call.
    let code =
        unsafe { RegSetValueExW(key.0, name.as_ptr(), 0, REG_BINARY, data.as_ptr(), data.len() as u32) };
    Win32Error::check(code)
}

/// Keeps what is under a name no longer.
pub(in crate::session) fn forget(name: &str) -> Result<(), Win32Error> {
    let key = Key::open(KEY_SET_VALUE)?.ok_or(Win32Error(ERROR_FILE_NOT_FOUND))?;
    let name = wide(name);
    // SAFETY: the key is open; the name ends with a zero, and outlives the call.
    Win32Error::check(unsafe { RegDeleteValueW(key.0, name.as_ptr()) })
}

/// All that is kept, by name. To look at it makes nothing.
pub(in crate::session) fn kept() -> Result<Vec<(String, Vec<u8>)>, Win32Error> {
    let Some(key) = Key::open(KEY_QUERY_VALUE)? else { return Ok(Vec::new()) };
    let mut kept = Vec::new();
    for number in 0.. {
        let (mut name, mut data) = ([0_u16; LONGEST], [0_u8; LONGEST]);
        let (mut units, mut bytes) = (LONGEST as u32, LONGEST as u32);
        // SAFETY: the key is open; name and data are variables of the sizes that are given, and outlive the call.
        let code = unsafe {
            RegEnumValueW(
                key.0,
                number,
                name.as_mut_ptr(),
                &raw mut units,
                std::ptr::null(),
                std::ptr::null_mut(),
                data.as_mut_ptr(),
                &raw mut bytes,
            )
        };
        match code {
            ERROR_SUCCESS => {
                let name = String::from_utf16_lossy(name.get(..units as usize).unwrap_or_default());
                kept.push((name, data.get(..bytes as usize).unwrap_or_default().to_vec()));
            }
            // Somebody else's: behind it there may be one of ours.
            ERROR_MORE_DATA => {}
            ERROR_NO_MORE_ITEMS => break,
            code => return Err(Win32Error(code)),
        }
    }
    Ok(kept)
}

/// The key, open. Programs of 32 and 64 bits have the same.
struct Key(HKEY);

impl Key {
    /// To write; it is made where it is not there.
    fn make() -> Result<Self, Win32Error> {
        let (path, mut key) = (wide(KEY), std::ptr::null_mut());
        // SAFETY: the path ends with a zero and outlives the call, as does the variable; nothing else is given.
        let code = unsafe {
            RegCreateKeyExW(
                HKEY_LOCAL_MACHINE,
                path.as_ptr(),
                0,
                std::ptr::null(),
                REG_OPTION_VOLATILE,
                KEY_SET_VALUE | KEY_WOW64_64KEY,
                std::ptr::null(),
                &raw mut key,
                std::ptr::null_mut(),
            )
        };
        Win32Error::check(code).map(|()| Self(key))
    }

    /// None where it is not there.
    fn open(rights: REG_SAM_FLAGS) -> Result<Option<Self>, Win32Error> {
        let (path, mut key) = (wide(KEY), std::ptr::null_mut());
        // SAFETY: the path ends with a zero and outlives the call, as does the variable.
        let code = unsafe {
            RegOpenKeyExW(HKEY_LOCAL_MACHINE, path.as_ptr(), 0, rights | KEY_WOW64_64KEY, &raw mut key)
        };
        match code {
            ERROR_FILE_NOT_FOUND => Ok(None),
            code => Win32Error::check(code).map(|()| Some(Self(key))),
        }
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: it was opened, and is closed here alone.
        unsafe { RegCloseKey(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use windows_sys::Win32::System::Registry::RegDeleteKeyExW;

    use super::*;

    #[test]
    fn what_is_kept_is_there_until_it_is_forgotten() {
        let _turn = crate::session::console::turn();
        let ours =
            || kept().unwrap().into_iter().filter(|(name, _)| name.starts_with("test-")).collect::<Vec<_>>();
        keep("test-1", &[1, 2]).unwrap();
        // Which have no place here, and are passed over.
        let others = ["test-2-of-others".to_owned(), format!("test-3-{}", "x".repeat(LONGEST))];
        keep(&others[0], &[7; 4 * LONGEST]).unwrap();
        keep(&others[1], &[8]).unwrap();
        keep("test-4", &[6]).unwrap();
        keep("test-1", &[3, 4, 5]).unwrap();
        let mut there = ours();
        there.sort();
        assert_eq!(there, [("test-1".to_owned(), vec![3, 4, 5]), ("test-4".to_owned(), vec![6])]);
        for name in ["test-1", "test-4"].into_iter().chain(others.iter().map(String::as_str)) {
            forget(name).unwrap();
        }
        assert!(ours().is_empty() && forget("test-1").is_err());
    }

    /// Where this is Wine, whose registry is a test's.
    #[test]
    fn to_look_at_it_makes_no_key() {
        if std::env::var_os("COLLECTOR_WINE").is_none() {
            return;
        }
        let _turn = crate::session::console::turn();
        let path = wide(KEY);
        // SAFETY: the path ends with a zero, and outlives the call.
        unsafe { RegDeleteKeyExW(HKEY_LOCAL_MACHINE, path.as_ptr(), KEY_WOW64_64KEY, 0) };
        assert_eq!(kept(), Ok(Vec::new()));
        assert_eq!(forget("test-none"), Err(Win32Error(ERROR_FILE_NOT_FOUND)));
        assert!(Key::open(KEY_QUERY_VALUE).unwrap().is_none());
        keep("test-none", &[1]).unwrap();
        forget("test-none").unwrap();
        assert!(Key::open(KEY_QUERY_VALUE).unwrap().is_some());
    }
}
