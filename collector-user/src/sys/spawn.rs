//! Starts a command that waits, before it executes its program, until it is let go.
//!
//! The child is forked and blocks in a read from a pipe; a byte in the pipe lets it execute. So the
//! recording is attached to a process that has not run a single instruction of its program.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::thread::JoinHandle;

use rustix::pipe::{PipeFlags, pipe_with};

/// The user that a command runs as: the one who called `sudo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvokingUser {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) name: OsString,
}

/// A command that has been forked but not yet executed.
#[derive(Debug)]
pub(crate) struct WaitingCommand {
    pid: u32,
    /// A byte written to it releases the child; closing it without one ends the child.
    gate: OwnedFd,
    /// `Command::spawn` returns only when the program was executed, so it runs on a thread of its own.
    spawned: JoinHandle<io::Result<Child>>,
}

impl WaitingCommand {
    /// Forks a child for `program`; it waits.
    pub(crate) fn start(
        program: &OsString,
        args: &[OsString],
        user: Option<&InvokingUser>,
    ) -> io::Result<Self> {
        let (gate_read, gate) = pipe_with(PipeFlags::CLOEXEC)?;
        let (hello_read, hello) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut command = Command::new(program);
        command.args(args);
        if let Some(user) = user {
            command.env("USER", &user.name).env("LOGNAME", &user.name);
            if let Some((home, shell)) = home_and_shell(user.uid)? {
                command.env("HOME", home).env("SHELL", shell);
            }
        }
        let identity = user.map(|user| (user.uid, user.gid, user.name.clone()));
        let groups = match &identity {
            Some((_, gid, name)) => supplementary_groups(name, *gid)?,
            None => Vec::new(),
        };
        let name = name_once_executed(program)?;
        let (gate_fd, child_gate_writer) = (gate_read.as_raw_fd(), gate.as_raw_fd());
        // SAFETY: between fork and exec only async-signal-safe calls are made: getpid, prctl, write, close, read
        // and the calls that set the identity; nothing is allocated.
        unsafe {
            command.pre_exec(move || {
                // A name that does not fit is cut, as the program's will be.
                libc::prctl(libc::PR_SET_NAME, name.as_ptr());
                let mut hello = std::fs::File::from(rustix::io::dup(&hello)?);
                hello.write_all(&std::process::id().to_ne_bytes())?;
                // The child holds a copy of the writing end, which would keep the gate shut for ever.
                libc::close(child_gate_writer);
                let mut byte = 0_u8;
                loop {
                    match libc::read(gate_fd, (&raw mut byte).cast(), 1) {
                        1.. => break,
                        // The recording failed, or the collector is gone: the command must not run.
                        0 => libc::_exit(1),
                        _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                        _ => return Err(io::Error::last_os_error()),
                    }
                }
                if let Some((uid, gid, _)) = &identity {
                    let failed = libc::setgroups(groups.len(), groups.as_ptr()) < 0
                        || libc::setgid(*gid) < 0
                        || libc::setuid(*uid) < 0;
                    if failed {
                        return Err(io::Error::last_os_error());
                    }
                }
                Ok(())
            });
        }
        let spawned = std::thread::Builder::new().name("spawn".to_owned()).spawn(move || {
            let result = command.spawn();
            // Both ends live as long as the child may need them.
            drop((gate_read, command));
            result
        })?;
        let mut pid = [0; 4];
        match std::fs::File::from(hello_read).read_exact(&mut pid) {
            Ok(()) => Ok(Self { pid: u32::from_ne_bytes(pid), gate, spawned }),
            // The fork itself failed: the thread knows why.
            Err(error) => {
                drop(gate);
                Err(spawned.join().ok().and_then(Result::err).unwrap_or(error))
            }
        }
    }

    /// The child's pid.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets the child execute its program. An error means that the program could not be executed.
    pub(crate) fn release(self) -> io::Result<Child> {
        rustix::io::write(&self.gate, &[1])?;
        drop(self.gate);
        self.spawned
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that starts commands panicked")))
    }
}

/// The name that the kernel will give the process when it executes `program`. While it does, the clock may sample it before the
/// name is changed.
fn name_once_executed(program: &OsStr) -> io::Result<CString> {
    use std::os::unix::ffi::OsStrExt as _;
    Ok(CString::new(Path::new(program).file_name().unwrap_or(program).as_bytes())?)
}

/// A user's home folder and login shell; `None` for a number that is no user's.
fn home_and_shell(uid: u32) -> io::Result<Option<(OsString, OsString)>> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut buffer = vec![0; 1 << 10];
    loop {
        // SAFETY: all zeros is a valid `passwd`: pointers and numbers.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        let (room, len) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: `entry` and `found` may be written, and `buffer` has room for `len` bytes.
        match unsafe { libc::getpwuid_r(uid, &raw mut entry, room, len, &raw mut found) } {
            0 if found.is_null() => return Ok(None),
            0 => {
                // SAFETY: where an entry was found, its texts lie in `buffer`, NUL-terminated.
                let text = |text| OsStr::from_bytes(unsafe { CStr::from_ptr(text) }.to_bytes()).to_owned();
                return Ok(Some((text(entry.pw_dir), text(entry.pw_shell))));
            }
            libc::ERANGE if buffer.len() < 1 << 20 => buffer.resize(buffer.len() * 4, 0),
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// The groups that a login of `name` has.
fn supplementary_groups(name: &OsString, gid: u32) -> io::Result<Vec<libc::gid_t>> {
    use std::os::unix::ffi::OsStrExt as _;
    let name = CString::new(name.as_bytes())?;
    let mut groups = vec![0; 64];
    loop {
        let mut count = groups.len() as libc::c_int;
        // SAFETY: `name` is NUL-terminated and `groups` has room for `count` entries.
        let result = unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &raw mut count) };
        if result >= 0 {
            groups.truncate(usize::try_from(count).unwrap_or(0));
            return Ok(groups);
        }
        if groups.len() >= 1 << 16 {
            return Err(io::Error::other("the user is in more than 65,536 groups"));
        }
        groups.resize(groups.len() * 4, 0);
    }
}
