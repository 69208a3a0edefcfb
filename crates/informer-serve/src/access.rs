//! Who may read: authentication and authorization as the API server would decide them.

mod caller;

pub(crate) use caller::{Caller, Credential};
