//! informer
pub mod discovery;
pub mod error;
mod labels;
mod resource;

pub use error::Error;
pub use labels::HasLabels;
pub use resource::{Resource, Scope, ScopeKind, TypedResource};
pub mod source {
    //! source
    pub use informer_core::reflector::Failure;
    /// x
    pub trait ListWatch {}
}
