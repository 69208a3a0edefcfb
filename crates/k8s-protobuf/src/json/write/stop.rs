//! What is wrong, for functions that call each other for each field.

use crate::Error;
use crate::error::malformed;
use crate::wire::Broken;

/// Why writing stops. In a register, as there are many calls and few stops.
pub(in crate::json) struct Stop(Box<Why>);

enum Why {
    /// Fields are not in the order in which Kubernetes writes them, or repeated.
    Order,
    Error(Error),
}

impl Stop {
    #[cold]
    pub(super) fn order() -> Self {
        Self(Box::new(Why::Order))
    }

    /// Whether it is for the order of the fields.
    pub(in crate::json) fn is_for_order(&self) -> bool {
        matches!(*self.0, Why::Order)
    }
}

impl From<Error> for Stop {
    #[cold]
    fn from(error: Error) -> Self {
        Self(Box::new(Why::Error(error)))
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
        match *stop.0 {
            Why::Order => malformed("fields in an order that cannot be read"),
            Why::Error(error) => error,
        }
    }
}
