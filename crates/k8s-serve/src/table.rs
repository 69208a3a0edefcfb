//! Tables of objects: the columns and cells with which kube-apiserver answers a request for a
//! `Table`, and which `kubectl get` prints.
//!
//! [`Columns`] are those of one kind: of a built-in one as kube-apiserver 1.36 has them, of a custom
//! resource as its definition names them (`additionalPrinterColumns`), of anything else name and
//! creation time.
//!
//! ```
//! use k8s_serve::table::Columns;
//! use serde_json::json;
//!
//! let columns = Columns::of_kind("", "ConfigMap");
//! let names: Vec<&str> = columns.definitions().iter().map(|it| it.name.as_ref()).collect();
//! assert_eq!(names, ["Name", "Data", "Age"]);
//!
//! let object = json!({
//!     "metadata": {"name": "settings", "creationTimestamp": "2026-01-01T00:00:00Z"},
//!     "data": {"color": "blue"},
//! });
//! let row = columns.row(&object, "2026-01-01T00:03:00Z".parse()?);
//! assert_eq!(row.cells, [json!("settings"), json!(1), json!("3m")]);
//! # Ok::<(), jiff::Error>(())
//! ```
//!
//! # Differences
//! Of objects as kube-apiserver sends them, the tables are equal to its own. Known differences:
//!
//! | what | why |
//! |---|---|
//! | the order of several metrics of a HorizontalPodAutoscaler of version 1 | that version has the utilization of CPU in a field and the others in an annotation |
//! | a JSONPath whose first result is any member of a map (`.spec.*`, `..`) | kube-apiserver's changes from request to request; here members are in order |
//! | a JSONPath with a closing brace outside brackets and quotes | what follows would be another template, which has no cell |
//! | numbers beyond 64 bits in a column of integers | Go's result depends on the processor |
//! | a JSONPath to what is more than 100 levels within an object | it finds nothing; cells have values of any depth |
//! | objects that lack what kube-apiserver sets by default | the defaults of most fields that are shown are known here |

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use jiff::Timestamp;
use serde::de::DeserializeSeed;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use built_in::BuiltIn;
use custom::Custom;
use keep::Kept;

mod access;
mod admission;
mod apps;
mod autoscaling;
mod batch;
mod built_in;
mod core;
mod custom;
mod devices;
mod events;
mod go;
mod machinery;
mod networking;
mod nodes;
mod policy;
mod storage;
#[rustfmt::skip]
mod definitions;
mod jsonpath;
pub(crate) mod keep;
mod pods;
mod selector;
mod text;
mod view;

pub use keep::Needed;
pub use text::{age_of, human_duration};

/// A column, as `meta.k8s.io/v1` has it: it serializes as a `TableColumnDefinition`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnDefinition {
    /// The name for people, `Up-to-date`. kubectl prints it in capitals.
    pub name: Cow<'static, str>,
    /// What the cells are.
    #[serde(rename = "type")]
    pub column_type: ColumnType,
    /// What the cells mean: `name` in the column of the object's name, mostly empty.
    pub format: Cow<'static, str>,
    /// For people.
    pub description: Cow<'static, str>,
    /// Columns above 0 are for wide tables only.
    pub priority: i32,
}

/// The OpenAPI type of a column's cells. It is a hint: kube-apiserver has columns of the type string
/// with cells that are numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "they say it")]
pub enum ColumnType {
    Boolean,
    Date,
    Integer,
    Number,
    String,
}

/// What a table says of one object, besides the object itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// One for each column. (kube-apiserver's rows of IPAddresses have one more; so have these.)
    pub cells: Vec<Value>,
    /// Whether the object is done.
    pub conditions: &'static [RowCondition],
}

/// It serializes as a `TableRowCondition` of `meta.k8s.io/v1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RowCondition {
    /// `Completed`: there is no other.
    #[serde(rename = "type")]
    pub condition_type: &'static str,
    /// `True`.
    pub status: &'static str,
    /// For programs.
    pub reason: &'static str,
    /// For people.
    pub message: &'static str,
}

/// The columns of one kind. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Columns(Source);

#[derive(Debug, Clone)]
enum Source {
    BuiltIn(&'static BuiltIn),
    Custom(Arc<Custom>),
}

/// Equal are those of one built-in kind, and those that were read of equal definitions.
impl PartialEq for Columns {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Source::BuiltIn(one), Source::BuiltIn(other)) => std::ptr::eq(*one, *other),
            (Source::Custom(one), Source::Custom(other)) => one == other,
            (Source::BuiltIn(_), Source::Custom(_)) | (Source::Custom(_), Source::BuiltIn(_)) => {
                false
            }
        }
    }
}

impl Columns {
    /// The columns of a built-in kind, of whatever version. Name and creation time are those of
    /// built-in kinds without columns of their own, and of anything else.
    #[must_use]
    pub fn of_kind(group: &str, kind: &str) -> Self {
        Self::built_in(group, kind).unwrap_or(Self(Source::BuiltIn(&built_in::DEFAULT)))
    }

    /// The columns of a built-in kind that has its own.
    #[must_use]
    pub fn built_in(group: &str, kind: &str) -> Option<Self> {
        built_in::find(group, kind).map(|it| Self(Source::BuiltIn(it)))
    }

    /// Name and age, which custom resources have unless their definitions say otherwise.
    #[must_use]
    pub fn name_and_age() -> Self {
        Self(Source::Custom(Arc::new(Custom::name_and_age())))
    }

    /// The columns of a custom resource: name, then those that its CustomResourceDefinition has for
    /// the version, then age if it has none. `None` if it does not have the version.
    ///
    /// # Examples
    /// ```
    /// use k8s_serve::table::Columns;
    /// use serde_json::json;
    ///
    /// let definition = json!({"spec": {"versions": [{"name": "v1", "additionalPrinterColumns": [
    ///     {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    ///     {"name": "Ready", "type": "string",
    ///         "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
    /// ]}]}});
    /// let columns = Columns::of_definition(&definition, "v1").unwrap();
    /// let object = json!({"metadata": {"name": "a"}, "spec": {"size": 3}});
    /// let row = columns.row(&object, jiff::Timestamp::now());
    /// assert_eq!(row.cells, [json!("a"), json!(3), json!(null)]);
    /// assert!(Columns::of_definition(&definition, "v2").is_none());
    /// ```
    #[must_use]
    pub fn of_definition(definition: &Value, version: &str) -> Option<Self> {
        Custom::of_definition(definition, version).map(|it| Self(Source::Custom(Arc::new(it))))
    }

    /// What the columns are, in order.
    #[must_use]
    pub fn definitions(&self) -> &[ColumnDefinition] {
        match &self.0 {
            Source::BuiltIn(kind) => kind.definitions,
            Source::Custom(custom) => custom.definitions(),
        }
    }

    /// The row of an object, which is its JSON or what [`read`](Self::read) left of it. Ages count
    /// up to `now`.
    ///
    /// Fields that are missing or of another type count as absent.
    #[must_use]
    pub fn row(&self, object: &Value, now: Timestamp) -> Row {
        match &self.0 {
            Source::BuiltIn(kind) => kind.row(object, now),
            Source::Custom(custom) => Row { cells: custom.cells(object, now), conditions: &[] },
        }
    }

    /// Reads what [`row`](Self::row) needs of an object, and skips the rest.
    ///
    /// # Errors
    /// As the deserializer has them.
    ///
    /// # Examples
    /// ```
    /// use k8s_serve::table::Columns;
    ///
    /// let columns = Columns::of_kind("", "Secret");
    /// let text = r#"{"metadata": {"name": "s"}, "type": "t", "data": {"key": "AAAA"}}"#;
    /// let object = columns.read(&mut serde_json::Deserializer::from_str(text))?;
    /// assert_eq!(object["data"].to_string(), r#"{"key":null}"#);
    /// assert_eq!(columns.row(&object, jiff::Timestamp::now()).cells[2], 1);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn read<'de, D: Deserializer<'de>>(&self, object: D) -> Result<Value, D::Error> {
        self.needed().deserialize(object)
    }

    /// [`read`](Self::read) as a seed, for functions that take one, such as k8s-protobuf's
    /// `from_message_seed`.
    #[must_use]
    pub fn needed(&self) -> Needed<'_> {
        Needed::new(match &self.0 {
            Source::BuiltIn(kind) => Kept::Of(kind.keep),
            Source::Custom(custom) => custom.kept(),
        })
    }

    /// What [`read`](Self::read) does, of JSON that may be nested as deep as in Go.
    pub(crate) fn read_text(&self, object: &[u8]) -> serde_json::Result<Value> {
        let mut json = serde_json::Deserializer::from_slice(object);
        self.needed().of_text().deserialize(&mut json)
    }

    /// The order in which kube-apiserver puts the rows of a list, if it is another than that of the
    /// objects: FlowSchemas come by precedence.
    #[must_use]
    pub fn order(&self) -> Option<fn(&Value, &Value) -> Ordering> {
        match &self.0 {
            Source::BuiltIn(kind) => kind.order,
            Source::Custom(_) => None,
        }
    }
}

impl ColumnDefinition {
    const fn new(
        name: &'static str,
        column_type: ColumnType,
        format: &'static str,
        priority: i32,
        description: &'static str,
    ) -> Self {
        Self {
            name: Cow::Borrowed(name),
            column_type,
            format: Cow::Borrowed(format),
            description: Cow::Borrowed(description),
            priority,
        }
    }
}
