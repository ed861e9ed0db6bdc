//! State that closures share: what one closure counts, another or the owner of the session reads.
//!
//! Closures run on one thread, one after another, and need not be `Send`, so this is a reference count and a mark that
//! a value is in use; there is no lock. A value is reached only within a closure given to `read` or `write`, so no
//! borrow can be kept by mistake. The one conflict left is a write within a read or write of the same value further
//! out in the same call; it is the error [`InUse`], for `?`, never a panic.

use std::any::type_name;
use std::cell::RefCell;
use std::rc::Rc;

use thiserror::Error;

/// A shared value that its holders change.
#[derive(Debug, Default)]
pub struct Writable<T>(Rc<RefCell<T>>);

/// A shared value that its holder only reads, while holders of [`Writable`] change it.
#[derive(Debug, Default)]
pub struct ReadOnly<T>(Writable<T>);

/// The value is in use further out in the same call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a shared {value} is in use further out in the same call")]
pub struct InUse {
    /// The type of the value.
    pub value: &'static str,
}

impl InUse {
    fn of<T>() -> Self {
        Self { value: type_name::<T>() }
    }
}

impl<T> Writable<T> {
    /// Shares a value.
    pub fn new(value: T) -> Self {
        Self(Rc::new(RefCell::new(value)))
    }

    /// Calls `use_it` with the value.
    pub fn read<R>(&self, use_it: impl FnOnce(&T) -> R) -> Result<R, InUse> {
        let value = self.0.try_borrow().map_err(|_| InUse::of::<T>())?;
        Ok(use_it(&value))
    }

    /// Calls `change` with the value.
    pub fn write<R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<R, InUse> {
        let mut value = self.0.try_borrow_mut().map_err(|_| InUse::of::<T>())?;
        Ok(change(&mut value))
    }

    /// The same value, for one that only reads it.
    pub fn read_only(&self) -> ReadOnly<T> {
        ReadOnly(self.clone())
    }

    /// Takes the value out, if this is the last that shares it.
    pub fn into_inner(self) -> Result<T, Self> {
        Rc::try_unwrap(self.0).map(RefCell::into_inner).map_err(Self)
    }
}

impl<T> Clone for Writable<T> {
    /// Another holder of the same value.
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T> ReadOnly<T> {
    /// Calls `use_it` with the value.
    pub fn read<R>(&self, use_it: impl FnOnce(&T) -> R) -> Result<R, InUse> {
        self.0.read(use_it)
    }
}

impl<T> Clone for ReadOnly<T> {
    /// Another reader of the same value.
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_holder_writes_another_reads() {
        let counter = Writable::new(0);
        let (writer, reader) = (counter.clone(), counter.read_only());
        let closure = move || writer.write(|count| *count += 1);
        closure().unwrap();
        closure().unwrap();
        assert_eq!(reader.clone().read(|count| *count), Ok(2));
        drop((closure, reader));
        assert_eq!(counter.into_inner().unwrap(), 2);
    }

    #[test]
    fn a_write_within_a_read_is_an_error_and_a_read_within_a_read_is_not() {
        let value = Writable::new(7_u8);
        let within = value.read(|_| (value.write(|_| ()), value.read(|value| *value)));
        assert_eq!(within, Ok((Err(InUse { value: "u8" }), Ok(7))));
        assert!(value.write(|value| *value = 8).is_ok(), "it is free again");
    }

    #[test]
    fn a_holder_that_is_not_the_last_keeps_the_value() {
        let value = Writable::new(1);
        let other = value.read_only();
        assert!(value.into_inner().is_err());
        assert_eq!(other.read(|value| *value), Ok(1));
    }
}
