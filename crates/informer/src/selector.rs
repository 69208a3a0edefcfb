//! What selectors consist of, and which fields the API server selects by. The selectors themselves
//! are [`LabelSelector`](crate::LabelSelector) and [`FieldSelector`](crate::FieldSelector).

pub use informer_core::selector::{
    FieldRequirement, Operator, Requirement, SelectableField, SelectableFields, UnsupportedField,
    field_value,
};
