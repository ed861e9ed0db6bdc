//! Which process a session's name belongs to. A session outlives the process that started it; a mutex with its name does not. So
//! a session whose mutex is free was left behind, and one whose mutex is taken is another collector's.

use super::error::SessionError;
use super::sys::{self, Mutex};

/// The right to start and to take over a session of a name, until it is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    _mutex: Mutex,
}

impl Claim {
    pub(super) fn of(name: &str) -> Result<Self, SessionError> {
        let mutex = format!("Global\\collector-etw-{}", name.to_lowercase());
        match sys::create_mutex(&mutex) {
            Ok(Some(mutex)) => Ok(Self { _mutex: mutex }),
            Ok(None) => Err(SessionError::Busy { name: name.to_owned() }),
            Err(cause) => Err(SessionError::of("CreateMutexW", name, cause)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_collectors_until_that_ends() {
        let first = Claim::of("claim-test").unwrap();
        let second = Claim::of("Claim-Test").unwrap_err();
        assert!(matches!(second, SessionError::Busy { .. }), "{second}");
        let other = Claim::of("claim-test-2").unwrap();
        drop(first);
        Claim::of("claim-test").unwrap();
        drop(other);
    }
}
