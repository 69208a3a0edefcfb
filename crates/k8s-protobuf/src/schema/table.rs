// A placeholder; the table is made by `go run . table` in crates/k8s-protobuf/generator.
use super::FieldKind::*;
use super::flags::*;
use super::{FieldDef, KindDef, MessageDef, f};
pub(super) static KINDS: [KindDef; 0] = [];
pub(super) static MESSAGES: [MessageDef; 0] = [];
