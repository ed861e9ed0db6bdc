//! The thread that registers events, and has the kernel forget them.
//!
//! The kernel notes what is registered with the thread that does it and those that this one makes from then on
//! (`user_events_fork` in `include/linux/user_events.h`). To others it says that there is nothing to forget; and when the last of
//! them has ended, no bit is set any more. So one thread does it for all, for as long as there are events.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use crate::sys::user_event::Registered;

/// The thread, which ends with this.
#[derive(Debug)]
pub(super) struct Keeper {
    tasks: Sender<Task>,
    /// Of the process that has the thread: one that is forked has none.
    pid: u32,
}

enum Task {
    Register(File, CString, Sender<io::Result<Registered>>),
    /// The answer is that the sender is gone.
    End(Registered, Sender<()>),
}

impl Keeper {
    pub(super) fn start() -> io::Result<Self> {
        let (tasks, queue) = mpsc::channel();
        thread::Builder::new().name("user-events".to_owned()).spawn(move || work(&queue))?;
        Ok(Self { tasks, pid: std::process::id() })
    }

    /// Registers what is declared; `file` is an open `user_events_data`.
    pub(super) fn register(&self, file: File, declaration: CString) -> io::Result<Registered> {
        let ended = || io::Error::from(io::ErrorKind::BrokenPipe);
        if !self.is_of_this_process() {
            return Err(ended());
        }
        let (sender, answer) = mpsc::channel();
        self.tasks.send(Task::Register(file, declaration, sender)).map_err(|_| ended())?;
        answer.recv().map_err(|_| ended())?
    }

    /// Has the kernel forget an event, and waits until it has. In a forked process nothing is done: there the kernel does not know of it.
    pub(super) fn end(&self, registered: Registered) {
        if !self.is_of_this_process() {
            return;
        }
        let (sender, done) = mpsc::channel();
        if self.tasks.send(Task::End(registered, sender)).is_ok() {
            let _ = done.recv();
        }
    }

    fn is_of_this_process(&self) -> bool {
        self.pid == std::process::id()
    }
}

fn work(tasks: &Receiver<Task>) {
    for task in tasks {
        match task {
            Task::Register(file, declaration, answer) => {
                let registered = Registered::new(file, &declaration);
                if let Err(mpsc::SendError(Ok(unwanted))) = answer.send(registered) {
                    unwanted.end();
                }
            }
            Task::End(registered, _done) => registered.end(),
        }
    }
}
