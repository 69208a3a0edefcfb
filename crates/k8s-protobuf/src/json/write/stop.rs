//! Errors of functions that call each other for each field.

use crate::Error;
use crate::error::{UNORDERED, malformed};
use crate::wire::Broken;

/// Why writing stops. Fits into a register: there are many calls and few errors.
pub(in crate::json) struct Stop(Box<Error>);

impl Stop {
    /// Fields are out of the order in which Kubernetes writes them, or repeated.
    #[cold]
    pub(super) fn order() -> Self {
        malformed(UNORDERED).into()
    }
}

impl From<Error> for Stop {
    #[cold]
    fn from(error: Error) -> Self {
        Self(Box::new(error))
    }
}

impl From<Broken> for Stop {
    #[cold]
    fn from(broken: Broken) -> Self {
        Error::from(broken).into()
    }
}

impl From<Stop> for Error {
    #[cold]
    fn from(stop: Stop) -> Self {
        *stop.0
    }
}
