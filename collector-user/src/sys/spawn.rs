//! Starts a command that waits, before it executes its program, until it is let go.
//!
//! The child is forked and blocks in a read from a pipe; a byte in the pipe lets it execute. So the
//! recording is attached to a process that has not run a single instruction of its program.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
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
        let identity = user.map(|user| (user.uid, user.gid, user.name.clone()));
        let groups = match &identity {
            Some((_, gid, name)) => supplementary_groups(name, *gid)?,
            None => Vec::new(),
        };
        let (gate_fd, child_gate_writer) = (gate_read.as_raw_fd(), gate.as_raw_fd());
        // SAFETY: between fork and exec only async-signal-safe calls are made: getpid, write, close, read and
        // the calls that set the identity; nothing is allocated.
        unsafe {
            command.pre_exec(move || {
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

/// The groups that a login of `name` has.
fn supplementary_groups(name: &OsString, gid: u32) -> io::Result<Vec<libc::gid_t>> {
    use std::os::unix::ffi::OsStrExt as _;
    let name = std::ffi::CString::new(name.as_bytes())?;
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
