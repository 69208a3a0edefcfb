//! One message from one JSON object.

use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{RAW_JSON, text};
use crate::Error;
use crate::de::text::ZERO_TIME;
use crate::schema::{FieldDef, FieldKind, MessageDef, flags};
use crate::wire::{put_bytes, put_varint};

/// Limit of nested messages. Only schemas are recursive.
const LIMIT: usize = 128;

/// Writes the fields of an object.
pub(super) fn object(def: &MessageDef, object: &Value, out: &mut Vec<u8>) -> Result<(), Error> {
    fields(def, Some(as_object(object)?), 0, out)
}

/// Writes one field of the whole object.
pub(super) fn field(def: &FieldDef, value: Option<&Value>, out: &mut Vec<u8>) -> Result<(), Error> {
    put_field(def, value.filter(|value| !value.is_null()), 0, out)
        .map_err(|error| under(error, def.name))
}

fn fields(
    def: &MessageDef,
    object: Option<&Map<String, Value>>,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    if depth > LIMIT {
        return Err(Error::TooDeep { limit: LIMIT });
    }
    for field in def.fields {
        if field.has(flags::INLINE) {
            nested(field.number.into(), out, |out| {
                fields(field.message(), object, depth + 1, out)
            })?;
            continue;
        }
        let value =
            object.and_then(|object| object.get(field.name)).filter(|value| !value.is_null());
        put_field(field, value, depth, out).map_err(|error| under(error, field.name))?;
    }
    Ok(())
}

fn put_field(
    field: &FieldDef,
    value: Option<&Value>,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let number = u32::from(field.number);
    match value {
        // Absent, not empty: pointers, slices and maps that are nil.
        None if field.has(flags::POINTER) => Ok(()),
        Some(value) if field.has(flags::REPEATED) => {
            for (at, item) in as_array(value)?.iter().enumerate() {
                let item = Some(item).filter(|item| !item.is_null());
                put_value(field, number, item, depth, out)
                    .map_err(|error| under(error, &format!("[{at}]")))?;
            }
            Ok(())
        }
        Some(value) if field.has(flags::MAP) => {
            // serde_json may keep the order of the text; Go sorts.
            let mut entries: Vec<_> = as_object(value)?.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            for (key, value) in entries {
                let value = Some(value).filter(|value| !value.is_null());
                nested(number, out, |out| {
                    put_bytes(1, key.as_bytes(), out);
                    match value {
                        None if field.kind == FieldKind::Bytes => Ok(()),
                        _ => put_value(field, 2, value, depth, out),
                    }
                })
                .map_err(|error| under(error, &format!("['{key}']")))?;
            }
            Ok(())
        }
        value => put_value(field, number, value, depth, out),
    }
}

/// Writes one value under this number, the zero if it is absent: Go omits only nil.
fn put_value(
    field: &FieldDef,
    number: u32,
    value: Option<&Value>,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    match field.kind {
        FieldKind::Str => put_bytes(number, as_str(value)?.as_bytes(), out),
        FieldKind::Bytes => {
            let bytes = text::bytes(as_str(value)?).ok_or_else(|| mismatch("expected base64"))?;
            put_bytes(number, &bytes, out);
        }
        FieldKind::Bool => {
            let value = match value {
                None => false,
                Some(Value::Bool(value)) => *value,
                Some(other) => return Err(expected("a boolean", other)),
            };
            put_integer(number, value.into(), out);
        }
        FieldKind::I32 => put_integer(number, i64::from(as_i32(value)?), out),
        FieldKind::I64 => put_integer(number, as_i64(value)?, out),
        FieldKind::F64 => {
            let value = match value {
                None => 0.0,
                Some(value) => value.as_f64().ok_or_else(|| expected("a number", value))?,
            };
            put_varint(u64::from(number) << 3 | 1, out);
            out.extend_from_slice(&value.to_le_bytes());
        }
        FieldKind::Message => {
            let object = value.map(as_object).transpose()?;
            nested(number, out, |out| fields(field.message(), object, depth + 1, out))?;
        }
        FieldKind::Time | FieldKind::MicroTime => {
            let time = match as_str(value)? {
                "" => None,
                time => {
                    Some(text::time(time).ok_or_else(|| mismatch("expected a time of RFC 3339"))?)
                }
            };
            let micro = field.kind == FieldKind::MicroTime;
            nested(number, out, |out| {
                // The year 1 is Go's zero time, which is written without fields.
                if let Some((seconds, nanos)) = time.filter(|time| *time != (ZERO_TIME, 0)) {
                    put_integer(1, seconds, out);
                    put_integer(2, if micro { nanos / 1000 * 1000 } else { 0 }, out);
                }
                Ok(())
            })?;
        }
        FieldKind::Duration => {
            let nanos = match value {
                None => 0,
                value => text::duration(as_str(value)?)
                    .ok_or_else(|| mismatch("expected a duration such as 1m30s"))?,
            };
            nested(number, out, |out| {
                put_integer(1, nanos, out);
                Ok(())
            })?;
        }
        FieldKind::Quantity => nested(number, out, |out| {
            match value {
                None => put_bytes(1, b"0", out),
                // As Go does where quotes are not required.
                Some(Value::Number(number)) => put_bytes(1, number.to_string().as_bytes(), out),
                value => put_bytes(1, as_str(value)?.as_bytes(), out),
            }
            Ok(())
        })?,
        FieldKind::IntOrString => {
            let (kind, int, text) = match value {
                Some(Value::String(text)) => (1, 0, text.as_str()),
                Some(Value::Number(_)) | None => (0, as_i32(value)?, ""),
                Some(other) => return Err(expected("an integer or a string", other)),
            };
            nested(number, out, |out| {
                put_integer(1, kind, out);
                put_integer(2, int.into(), out);
                put_bytes(3, text.as_bytes(), out);
                Ok(())
            })?;
        }
        FieldKind::RawJson => nested(number, out, |out| {
            if let Some(value) = value {
                let text = serde_json::to_vec(&WithTexts(value))
                    .map_err(|_| mismatch("cannot be written as JSON"))?;
                put_bytes(1, &text, out);
            }
            Ok(())
        })?,
        FieldKind::StrList => nested(number, out, |out| match value {
            None => Ok(()),
            Some(value) => put_strings(1, as_array(value)?, out),
        })?,
        FieldKind::PropsOrArray => nested(number, out, |out| match value {
            None => Ok(()),
            Some(Value::Object(schema)) => put_schema(field, 1, schema, depth, out),
            Some(value) => as_array(value)?.iter().enumerate().try_for_each(|(at, item)| {
                let schema =
                    as_object(item).and_then(|schema| put_schema(field, 2, schema, depth, out));
                schema.map_err(|error| under(error, &format!("[{at}]")))
            }),
        })?,
        FieldKind::PropsOrBool => nested(number, out, |out| match value {
            None | Some(Value::Bool(_)) => {
                put_integer(1, i64::from(value.is_some_and(|value| value == true)), out);
                Ok(())
            }
            Some(value) => {
                put_integer(1, 1, out);
                put_schema(field, 2, as_object(value)?, depth, out)
            }
        })?,
        FieldKind::PropsOrStringArray => nested(number, out, |out| match value {
            None => Ok(()),
            Some(Value::Object(schema)) => put_schema(field, 1, schema, depth, out),
            Some(value) => put_strings(2, as_array(value)?, out),
        })?,
    }
    Ok(())
}

fn put_schema(
    field: &FieldDef,
    number: u32,
    schema: &Map<String, Value>,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    nested(number, out, |out| fields(field.message(), Some(schema), depth + 1, out))
}

/// A value in which some parts are the texts of their JSON.
struct WithTexts<'a>(&'a Value);

impl Serialize for WithTexts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(object) => match text_of(object) {
                Some(text) => RawValue::from_string(text.to_owned())
                    .map_err(S::Error::custom)?
                    .serialize(serializer),
                None => serializer.collect_map(object.iter().map(|(key, it)| (key, WithTexts(it)))),
            },
            Value::Array(list) => serializer.collect_seq(list.iter().map(WithTexts)),
            other => other.serialize(serializer),
        }
    }
}

fn text_of(object: &Map<String, Value>) -> Option<&str> {
    if object.len() == 1 { object.get(RAW_JSON)?.as_str() } else { None }
}

fn put_strings(number: u32, items: &[Value], out: &mut Vec<u8>) -> Result<(), Error> {
    for (at, item) in items.iter().enumerate() {
        let item = as_str(Some(item).filter(|item| !item.is_null()));
        put_bytes(number, item.map_err(|error| under(error, &format!("[{at}]")))?.as_bytes(), out);
    }
    Ok(())
}

fn put_integer(number: u32, value: i64, out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3, out);
    put_varint(value as u64, out);
}

/// Writes a message whose length is known only after it is written.
fn nested(
    number: u32,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    put_varint(u64::from(number) << 3 | 2, out);
    let at = out.len();
    out.push(0);
    write(out)?;
    let mut length = out.len() - at - 1;
    if length < 0x80 {
        out[at] = length as u8;
    } else {
        // The length needs more than the byte reserved for it, so the message is moved.
        let (mut bytes, mut count) = ([0; 10], 0);
        while length >= 0x80 {
            bytes[count] = (length & 0x7f) as u8 | 0x80;
            length >>= 7;
            count += 1;
        }
        bytes[count] = length as u8;
        out.splice(at..=at, bytes[..=count].iter().copied());
    }
    Ok(())
}

fn as_object(value: &Value) -> Result<&Map<String, Value>, Error> {
    value.as_object().ok_or_else(|| expected("an object", value))
}

fn as_array(value: &Value) -> Result<&[Value], Error> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| expected("an array", value))
}

fn as_str(value: Option<&Value>) -> Result<&str, Error> {
    match value {
        None => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(expected("a string", other)),
    }
}

fn as_i64(value: Option<&Value>) -> Result<i64, Error> {
    match value {
        None => Ok(0),
        Some(value @ Value::Number(_)) => {
            value.as_i64().ok_or_else(|| mismatch("expected an integer of 64 bits"))
        }
        Some(other) => Err(expected("an integer", other)),
    }
}

fn as_i32(value: Option<&Value>) -> Result<i32, Error> {
    i32::try_from(as_i64(value)?).map_err(|_| mismatch("expected an integer of 32 bits"))
}

fn expected(what: &str, found: &Value) -> Error {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    mismatch(&format!("expected {what}, found {found}"))
}

fn mismatch(message: &str) -> Error {
    Error::Type { path: ".".to_owned(), message: message.to_owned() }
}

/// Prepends this field or index to the path of the error.
fn under(error: Error, segment: &str) -> Error {
    match error {
        Error::Type { path, message } => {
            let path = match path.as_str() {
                "." => segment.to_owned(),
                path if path.starts_with('[') => format!("{segment}{path}"),
                path => format!("{segment}.{path}"),
            };
            Error::Type { path, message }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
