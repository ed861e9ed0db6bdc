//! Which volume a drive is (`QueryDosDeviceW`): the kernel tells of files by their volumes.

use windows_sys::Win32::Storage::FileSystem::QueryDosDeviceW;

use super::wide;

/// Characters of a volume's name, with the zeros behind it.
const MOST_NAME: usize = 1024;

/// What paths of the kernel begin with, and what the same begins with for people: as `\Device\HarddiskVolume3\` and `C:\`, of all drives that
/// this machine has now.
pub fn drives() -> Vec<(String, String)> {
    (b'A'..=b'Z').filter_map(|letter| volume(char::from(letter))).collect()
}

fn volume(letter: char) -> Option<(String, String)> {
    let (drive, mut name) = (wide(&format!("{letter}:")), [0_u16; MOST_NAME]);
    // SAFETY: the drive ends with a zero; the name has as many characters as are given; both outlive the call.
    let length = unsafe { QueryDosDeviceW(drive.as_ptr(), name.as_mut_ptr(), MOST_NAME as u32) };
    // Several names may follow, each with a zero; the first is the one that counts.
    let name =
        name.get(..length as usize)?.split(|unit| *unit == 0).next().filter(|name| !name.is_empty())?;
    Some((format!(r"{}\", String::from_utf16_lossy(name)), format!(r"{letter}:\")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drive_of_windows_is_there() {
        let windows = std::env::var("SystemRoot").unwrap();
        let drives = drives();
        let own = drives.iter().find(|(_, drive)| windows.to_uppercase().starts_with(drive.as_str()));
        let (volume, _) = own.unwrap();
        assert!(volume.starts_with('\\') && volume.ends_with('\\') && volume.len() > 2, "{drives:?}");
    }
}
