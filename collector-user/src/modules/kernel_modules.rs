//! Object files of the kernel's modules with their DWARF, where a debug package or a build has left them: by the name that the kernel has
//! for one, with its build id. Where a module's sections lie is told by `/sys/module/NAME/sections`.
//!
//! Debian's packages and others have them below `/usr/lib/debug/lib/modules`; below `/lib/modules` they are stripped, mostly, and often
//! packed. One that is packed by xz, zstd or gzip (`.ko.xz`, `.ko.zst`, `.ko.gz`) is unpacked into a temporary file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use export::symbolize::KernelModule;

use super::layout::Layout;
use super::open::open_regular;
use super::packed::Packing;
use crate::capture::kernel::build_id_in;

/// Sections of one module that are looked at.
const MOST_SECTIONS: usize = 1 << 12;

/// Modules of one kernel. Distributions have some thousand.
const MOST_MODULES: usize = 1 << 16;

/// The file and the addresses of its sections.
pub(crate) fn find(name: &str) -> Option<KernelModule<File>> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    find_below(Path::new("/"), &release, name)
}

fn find_below(root: &Path, release: &str, name: &str) -> Option<KernelModule<File>> {
    let loaded = root.join("sys/module").join(plain(name)?);
    let build_id = build_id_in(&fs::read(loaded.join("notes/.note.gnu.build-id")).ok()?)?;
    let sections = sections(&loaded.join("sections"))?;
    let id = build_id.to_string();
    let (head, tail) = id.split_at_checked(2)?;
    let by_build_id = PathBuf::from(format!("usr/lib/debug/.build-id/{head}/{tail}.debug"));
    let folder = Path::new("lib/modules").join(release);
    let listed = listed(&root.join(&folder), name);
    let by_path = listed.into_iter().flat_map(|path| {
        let path = folder.join(path);
        let in_debug = Path::new("usr/lib/debug").join(&path);
        let mut with_ending = in_debug.clone().into_os_string();
        with_ending.push(".debug");
        [in_debug, with_ending.into(), path]
    });
    let is_same = |file: &File| Layout::read(file).and_then(|layout| layout.build_id) == Some(build_id);
    let by_path: Vec<PathBuf> = by_path.collect();
    let packed = by_path.iter().flat_map(|path| {
        Packing::ALL.map(|packing| {
            let mut packed = path.clone().into_os_string();
            packed.push(packing.ending());
            (PathBuf::from(packed), packing)
        })
    });
    let open = |place: &PathBuf| open_regular(&root.join(place));
    let whole = [by_build_id].iter().chain(&by_path).find_map(|place| open(place).filter(is_same));
    let mut packed = packed.filter_map(|(place, packing)| packing.unpack(open(&place)?).ok());
    let file = whole.or_else(|| packed.find(is_same))?;
    Some(KernelModule { file, sections })
}

/// A name that is one, as it becomes a part of a path.
fn plain(name: &str) -> Option<&str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!name.is_empty() && name.bytes().all(is_plain)).then_some(name)
}

/// Where a module is below the folder of a kernel's, without what says how it is packed: `kernel/sound/core/snd-pcm.ko`.
fn listed(folder: &Path, name: &str) -> Option<PathBuf> {
    let list = fs::read_to_string(folder.join("modules.order")).ok()?;
    let is_of = |path: &&str| {
        let file = path.rsplit('/').next().and_then(|file| file.split_once(".ko"));
        file.is_some_and(|(stem, _)| stem.replace('-', "_") == name)
    };
    let path = list.lines().take(MOST_MODULES).find(is_of)?;
    let (stem, _) = path.rsplit_once(".ko")?;
    Some(PathBuf::from(format!("{stem}.ko")))
}

/// Addresses by names. Where they are hidden, all are 0.
fn sections(folder: &Path) -> Option<Vec<(String, u64)>> {
    let entries = fs::read_dir(folder).ok()?.take(MOST_SECTIONS).filter_map(Result::ok);
    let placed = entries.filter_map(|entry| {
        let text = fs::read_to_string(entry.path()).ok()?;
        let address = u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok().filter(|&it| it != 0)?;
        Some((entry.file_name().into_string().ok()?, address))
    });
    let placed: Vec<_> = placed.collect();
    (!placed.is_empty()).then_some(placed)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};
    use std::process::Command;

    use super::*;

    #[test]
    fn a_module_is_found_by_its_name_and_counts_by_its_build_id() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        let write = |path: &str, bytes: &[u8]| {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), bytes).unwrap();
        };
        write("source.c", b"int work(void) { return 0; }");
        let options = ["-shared", "-nostdlib", "-Wl,--build-id=0xabcdef0123", "-o"];
        let gcc = Command::new("gcc").args(options).args([at("object"), at("source.c")]).status();
        assert!(gcc.unwrap().success());
        write("lib/modules/6.1.0/modules.order", b"kernel/a/other.ko\nkernel/sound/core/snd-pcm.ko\n");
        // Sizes of the name and of what is described, the type, and both filled up to words.
        let mut note = [4_u32, 5, 3].map(u32::to_ne_bytes).concat();
        note.extend(b"GNU\0\xab\xcd\xef\x01\x23\0\0\0");
        write("sys/module/snd_pcm/notes/.note.gnu.build-id", &note);
        write("sys/module/snd_pcm/sections/.text", b"0xffffffffc0301000\n");
        write("sys/module/snd_pcm/sections/.hidden", b"0x0000000000000000\n");
        let find = |name: &str| find_below(folder.path(), "6.1.0", name);
        assert!(find("snd_pcm").is_none(), "it is not there");
        let object = fs::read(at("object")).unwrap();
        for place in [
            "usr/lib/debug/.build-id/ab/cdef0123.debug",
            "usr/lib/debug/lib/modules/6.1.0/kernel/sound/core/snd-pcm.ko",
            "usr/lib/debug/lib/modules/6.1.0/kernel/sound/core/snd-pcm.ko.debug",
            "lib/modules/6.1.0/kernel/sound/core/snd-pcm.ko",
        ] {
            write(place, &object);
            let placed = find("snd_pcm").unwrap().sections;
            assert_eq!(placed, [(".text".to_owned(), 0xffff_ffff_c030_1000)]);
            assert!(find("other").is_none() && find("../snd_pcm").is_none() && find("").is_none());
            fs::remove_file(at(place)).unwrap();
        }
        for (ending, [program, options @ ..]) in [
            ("xz", ["xz", "--check=crc32", "--lzma2=dict=1MiB"]),
            ("zst", ["zstd", "-q", "-3"]),
            ("gz", ["gzip", "-n", "-9"]),
        ] {
            let packer = Command::new(program).args(options).arg("-k").arg(at("object")).status();
            assert!(packer.unwrap().success());
            let packed = fs::read(at(&format!("object.{ending}"))).unwrap();
            for place in [
                "usr/lib/debug/lib/modules/6.1.0/kernel/sound/core/snd-pcm.ko",
                "lib/modules/6.1.0/kernel/sound/core/snd-pcm.ko",
            ] {
                let place = format!("{place}.{ending}");
                write(&place, &packed[..packed.len() - 40]);
                assert!(find("snd_pcm").is_none(), "it is damaged");
                write(&place, &packed);
                let mut unpacked = Vec::new();
                let mut file = find("snd_pcm").unwrap().file;
                file.rewind().unwrap();
                file.read_to_end(&mut unpacked).unwrap();
                assert!(unpacked == object && find("other").is_none());
                fs::remove_file(at(&place)).unwrap();
            }
        }
        write("usr/lib/debug/.build-id/ab/cdef0123.debug", &object);
        note[16] = 0xac;
        write("sys/module/snd_pcm/notes/.note.gnu.build-id", &note);
        assert!(find("snd_pcm").is_none(), "it is of another build");
    }
}
