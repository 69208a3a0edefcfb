//! Classifies the fields of an object: noise, and values of Secrets.

use serde_json::Value;

use super::{DiffOptions, Noise, Secrets};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Maximum length of an annotation of a Secret that is shown. A longer one may hold a copy of the
/// data.
const SHORT_ANNOTATION: usize = 128;

/// The properties of a whole object that decide how its fields are classified.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject {
    fold_noise: bool,
    is_secret: bool,
    is_lease: bool,
}

/// The class of a value by its path in the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Root,
    Metadata,
    Annotations,
    /// An annotation of a Secret.
    SecretAnnotation,
    /// `data` or `stringData` of a Secret.
    SecretData,
    /// A value that is hidden: a member of [`SecretData`](Self::SecretData).
    SecretValue(Coding),
    Generation,
    LeaseSpec,
    /// A field of the status outside conditions.
    Status,
    Conditions,
    Condition,
    Noise,
    Other,
}

/// How a hidden value is encoded. Its length in bytes depends on the encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Base64,
    Plain,
}

impl Subject {
    pub(super) fn of(old: &Value, new: &Value, options: &DiffOptions) -> Self {
        let kind = |value: &Value| value.get("kind").and_then(Value::as_str).map(str::to_owned);
        let kinds = [kind(old), kind(new)];
        let is = |name| kinds.iter().flatten().any(|it| it == name);
        let has_kind = kinds.iter().any(Option::is_some);
        Self {
            fold_noise: options.noise == Noise::Folded,
            is_secret: options.secrets == Secrets::Hidden && (is("Secret") || !has_kind),
            is_lease: is("Lease"),
        }
    }
}

impl Place {
    /// The class of a member of an object of this class.
    pub(super) fn member(self, name: &str, subject: Subject) -> Self {
        let Subject { fold_noise, is_secret, is_lease } = subject;
        match (self, name) {
            (Self::Root, "metadata") => Self::Metadata,
            (Self::Root, "status") => Self::Status,
            (Self::Root, "data" | "stringData") if is_secret => Self::SecretData,
            (Self::Root, "spec") if is_lease => Self::LeaseSpec,
            (Self::Metadata, "managedFields" | "resourceVersion") if fold_noise => Self::Noise,
            (Self::Metadata, "generation") if fold_noise => Self::Generation,
            (Self::Metadata, "annotations") => Self::Annotations,
            (Self::Annotations, LAST_APPLIED) if fold_noise => Self::Noise,
            (Self::Annotations, _) if is_secret => Self::SecretAnnotation,
            (Self::Condition, "lastHeartbeatTime" | "lastProbeTime" | "lastUpdateTime")
            | (Self::LeaseSpec, "renewTime")
                if fold_noise =>
            {
                Self::Noise
            }
            (Self::SecretData, _) => Self::SecretValue(Coding::Base64),
            (Self::Status, "conditions") => Self::Conditions,
            (Self::Status, _) => Self::Status,
            _ => Self::Other,
        }
    }

    /// The class of an element of a list of this class.
    pub(super) fn element(self) -> Self {
        match self {
            Self::Conditions => Self::Condition,
            Self::Status => Self::Status,
            _ => Self::Other,
        }
    }

    /// Whether an object of this class may have members that are not shown. Such an object must not
    /// be shown as one value.
    pub(super) fn guards_members(self) -> bool {
        matches!(self, Self::Root | Self::Metadata | Self::Annotations | Self::SecretData)
    }

    /// The encoding of the values, if they must be hidden.
    pub(super) fn hides(self, values: [Option<&Value>; 2]) -> Option<Coding> {
        let may_be_a_copy = |value: &Value| match value {
            Value::String(text) => text.len() > SHORT_ANNOTATION || text.contains('{'),
            _ => true,
        };
        match self {
            Self::SecretValue(coding) => Some(coding),
            Self::SecretAnnotation if values.into_iter().flatten().any(may_be_a_copy) => {
                Some(Coding::Plain)
            }
            // A value that is not an object has no members to hide, so it is hidden as a whole.
            Self::SecretData if !values.into_iter().flatten().all(Value::is_object) => {
                Some(Coding::Plain)
            }
            _ => None,
        }
    }
}
