//! Names of stripped programs from the debug files that elfutils' server has, with a cache that elfutils' client shares.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use tempfile::TempDir;

use crate::prerequisites::live_with;
use crate::programs::{Running, compile, folder};
use crate::recording::{Recorded, files, read, record_in};

/// The build id that the program is linked with.
const ID: &str = "00112233445566778899aabbccddeeff00112233";

/// Nobody listens there.
const NOBODY: &str = "http://127.0.0.1:1";

/// A server of the files in a folder.
struct Server {
    _process: Running,
    /// Where its database is.
    _database: TempDir,
    address: String,
}

impl Server {
    /// One that has come upon all files in the folder with [`ID`], which are of these kinds: it looks at one after the other.
    ///
    /// Its database is a file, and it is asked now and then only. Where the database is in memory, all its threads share it without waiting
    /// for each other: a question while a file is looked at may end that with `database table is locked`, and the file is missing for the
    /// next five minutes.
    fn of(folder: &Path, kinds: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let database = self::folder();
        let log = database.path().join("log");
        let file = fs::File::create(&log).unwrap();
        let mut server = Command::new("debuginfod");
        server.arg("-d").arg(database.path().join("files.sqlite"));
        server.args(["-v", "-p", &port.to_string(), "-F"]).arg(folder).env_remove("DEBUGINFOD_URLS");
        server.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        let process = Running::of(&mut server);
        let deadline = Instant::now() + Duration::from_mins(1);
        while !kinds.iter().all(|kind| has(port, kind)) {
            let says = || fs::read_to_string(&log).unwrap_or_default();
            assert!(Instant::now() < deadline, "the server does not come to have the files: {}", says());
            thread::sleep(Duration::from_millis(50));
        }
        Self { _process: process, _database: database, address: format!("http://127.0.0.1:{port}") }
    }
}

fn has(port: u16, kind: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let request = format!("GET /buildid/{ID}/{kind} HTTP/1.0\r\n\r\n");
    let mut answer = [0; 12];
    stream.write_all(request.as_bytes()).and_then(|()| stream.read_exact(&mut answer)).is_ok()
        && answer.ends_with(b" 200")
}

/// What elfutils' client says of a build.
fn found_by_elfutils(server: &str, cache: &Path, id: &str) -> Result<PathBuf, String> {
    let mut client = Command::new("debuginfod-find");
    client.args(["debuginfo", id]).env("DEBUGINFOD_URLS", server).env("DEBUGINFOD_CACHE_PATH", cache);
    let output = client.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout).into()) } else { Err(text(&output.stderr)) }
}

/// A program without symbols, and a folder with its debug file, which nothing but its build id leads to.
fn stripped(folder: &Path) -> (PathBuf, PathBuf) {
    let option = format!("-Wl,--build-id=0x{ID}");
    let program = compile(folder, "dispatch", "dispatch.cpp", &["-g", &option]);
    let served = folder.join("served");
    fs::create_dir(&served).unwrap();
    let debug = served.join("some.debug");
    let objcopy = |args: &[&str], paths: &[&Path]| {
        assert!(Command::new("objcopy").args(args).args(paths).status().unwrap().success());
    };
    objcopy(&["--only-keep-debug"], &[&program, &debug]);
    objcopy(&["--strip-all"], &[&program]);
    (program, served)
}

/// Records the program, with servers and a cache.
fn recorded(folder: &Path, program: &Path, servers: &str, cache: &Path) -> Recorded {
    let profile = folder.join("x.pb.gz");
    let args = ["-o".as_ref(), profile.as_os_str(), "--".as_ref(), program.as_os_str()];
    record_in(folder, args, |recorder| {
        recorder.env("DEBUGINFOD_URLS", servers).env("DEBUGINFOD_CACHE_PATH", cache);
    })
}

/// Whether the program's functions are named, with those inlined, and its source file is told.
fn is_named(folder: &Path, recorded: &Recorded) -> bool {
    let own = || recorded.stacks.iter().filter(|stack| stack.comm == "dispatch");
    let frames = || own().flat_map(|stack| &stack.frames);
    let has = |name: &str, end: &str| frames().any(|frame| frame.contains(name) && frame.ends_with(end));
    let mut profile = Vec::new();
    let file = fs::File::open(folder.join("x.pb.gz")).unwrap();
    GzDecoder::new(file).read_to_end(&mut profile).unwrap();
    let has_source = profile.windows(b"dispatch.cpp".len()).any(|bytes| bytes == b"dispatch.cpp");
    let named = [has("Square::area(unsigned long) const", ""), has("::operator()", "_[i]"), has_source];
    assert!(named.iter().all(|it| *it == named[0]), "{named:?}");
    named[0]
}

#[test]
fn a_server_names_a_stripped_program_and_elfutils_shares_the_cache() {
    let test = "a_server_names_a_stripped_program_and_elfutils_shares_the_cache";
    let Some(_live) = live_with(test, &["debuginfod", "debuginfod-find", "objcopy"]) else { return };
    let folder = folder();
    let (program, served) = stripped(folder.path());
    let [ours, theirs] = ["ours", "theirs"].map(|name| folder.path().join(name));

    let alone = recorded(folder.path(), &program, "", &ours);
    assert!(!is_named(folder.path(), &alone) && !ours.exists());
    let none = recorded(folder.path(), &program, NOBODY, &ours);
    assert!(!is_named(folder.path(), &none));
    let told = |recorded: &Recorded| recorded.stderr.matches("is not asked for debug files any more").count();
    assert_eq!(told(&none), 1, "{}", none.stderr);

    let server = Server::of(&served, &["debuginfo"]);
    let named = recorded(folder.path(), &program, &server.address, &ours);
    assert!(is_named(folder.path(), &named));
    assert_eq!(told(&named), 0, "{}", named.stderr);
    assert_eq!(found_by_elfutils(NOBODY, &ours, ID), Ok(ours.join(ID).join("debuginfo")));

    assert_eq!(found_by_elfutils(&server.address, &theirs, ID), Ok(theirs.join(ID).join("debuginfo")));
    let from_theirs = recorded(folder.path(), &program, NOBODY, &theirs);
    assert!(is_named(folder.path(), &from_theirs), "{}", from_theirs.stderr);

    // What the server does not have, of the C library's and others, is noted as elfutils' client does it.
    let notes = fs::read_dir(&ours).unwrap().map(|entry| entry.unwrap());
    let noted = notes
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name.len() == 40 && name != ID);
    let noted: Vec<String> = noted.collect();
    assert!(!noted.is_empty());
    for id in noted {
        let path = ours.join(&id).join("debuginfo");
        assert_eq!(path.metadata().unwrap().len(), 0);
        let says = found_by_elfutils(NOBODY, &ours, &id).unwrap_err();
        assert!(says.contains("No such file"), "{says}");
        let says = found_by_elfutils(&server.address, &theirs, &id).unwrap_err();
        assert!(says.contains("No such file"), "{says}");
        assert_eq!(theirs.join(&id).join("debuginfo").metadata().unwrap().len(), 0);
    }
}

#[test]
fn names_are_found_when_a_recording_is_converted() {
    let test = "names_are_found_when_a_recording_is_converted";
    let Some(_live) = live_with(test, &["debuginfod", "objcopy"]) else { return };
    let folder = folder();
    let (program, served) = stripped(folder.path());
    let kept = folder.path().join("x.perf.data");
    let args = ["--no-symbols".as_ref(), "-o".as_ref(), kept.as_os_str(), "--".as_ref(), program.as_os_str()];
    let cache = folder.path().join("cache");
    let server = Server::of(&served, &["debuginfo"]);
    let left = record_in(folder.path(), args, |recorder| {
        recorder.env("DEBUGINFOD_URLS", &server.address).env("DEBUGINFOD_CACHE_PATH", &cache);
    });
    assert!(!cache.exists(), "{}", left.stderr);
    let mut converter = crate::recording::collector();
    converter.arg("convert").arg(&kept).arg("-o").arg(files(folder.path()).0);
    converter.arg("-o").arg(folder.path().join("x.pb.gz"));
    converter.env("DEBUGINFOD_URLS", &server.address).env("DEBUGINFOD_CACHE_PATH", &cache);
    let output = converter.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    assert!(is_named(folder.path(), &read(folder.path(), stderr)));
}

/// On a machine that does not have the program, its stacks can't be unwound by anything else than what a server has.
#[test]
fn programs_that_are_not_here_are_unwound_by_those_of_a_server() {
    let test = "programs_that_are_not_here_are_unwound_by_those_of_a_server";
    let Some(_live) = live_with(test, &["debuginfod", "objcopy"]) else { return };
    let folder = folder();
    let (program, served) = stripped(folder.path());
    let kept = folder.path().join("x.perf.data");
    let args = ["--no-symbols".as_ref(), "-o".as_ref(), kept.as_os_str(), "--".as_ref(), program.as_os_str()];
    record_in(folder.path(), args, |_| {});
    fs::rename(&program, served.join("dispatch")).unwrap();
    let server = Server::of(&served, &["debuginfo", "executable"]);
    let cache = folder.path().join("cache");
    let converted = |servers: &str| {
        let mut converter = crate::recording::collector();
        converter.arg("convert").arg(&kept).arg("-o").arg(files(folder.path()).0);
        converter.arg("-o").arg(folder.path().join("x.pb.gz"));
        converter.env("DEBUGINFOD_URLS", servers).env("DEBUGINFOD_CACHE_PATH", &cache);
        let output = converter.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{stderr}");
        read(folder.path(), stderr)
    };
    let roots = |recorded: &Recorded| {
        let own = recorded.stacks.iter().filter(|stack| stack.comm == "dispatch");
        let (whole, all) = own.fold((0, 0), |(whole, all), stack| {
            let is_whole = stack.frames.iter().any(|frame| frame == "main");
            (whole + if is_whole { stack.count } else { 0 }, all + stack.count)
        });
        assert!(all > 100, "{all}");
        100 * whole / all
    };
    assert_eq!(roots(&converted("")), 0);
    let with_server = converted(&server.address);
    assert!(is_named(folder.path(), &with_server));
    assert!(roots(&with_server) > 95, "{}", with_server.stderr);
    fs::remove_dir_all(&cache).unwrap();
    let failed = converted(NOBODY);
    assert_eq!(
        failed.stderr.matches("is not asked for debug files any more").count(),
        1,
        "{}",
        failed.stderr
    );
}
