//! What the server says, recorded: to be replayed, and to say how big objects are.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use informer_benches::client::{Fetch, Target};
use informer_benches::figures::{Initial, Wire};
use serde::Deserialize;
use serde_json::value::RawValue;
use tempfile::TempDir;

use crate::numbers::Table;

/// Recordings, made when they are first asked for, and removed with this value.
pub(crate) struct Samples {
    folder: TempDir,
    client: kube::Client,
    /// Mean bytes per object, as a part of a list.
    pub(crate) json: Sizes,
    pub(crate) protobuf: Sizes,
}

/// Mean bytes per object.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Sizes {
    pub(crate) whole: f64,
    pub(crate) without_managed_fields: f64,
}

/// Records lists in both formats, and measures their objects.
pub(crate) async fn fetch(target: &Target) -> Result<Samples> {
    let folder = tempfile::Builder::new().prefix("informer-side-by-side").tempdir()?;
    let client = target.client().await?;
    let mut samples = Samples { folder, client, json: Sizes::default(), protobuf: Sizes::default() };
    let read = |path: PathBuf| -> Result<Vec<u8>> { body_of(std::fs::read(path)?) };
    samples.json = json_sizes(&read(samples.recording(Initial::List, Wire::Json, false).await?)?)?;
    let protobuf = read(samples.recording(Initial::List, Wire::Protobuf, false).await?)?;
    samples.protobuf = protobuf_sizes(&protobuf).context("the list in protobuf is not understood")?;
    Ok(samples)
}

impl Samples {
    /// The path of a recording: a line with the content type, then the body.
    pub(crate) async fn recording(&self, initial: Initial, wire: Wire, metadata: bool) -> Result<PathBuf> {
        let what = if metadata { "metadata" } else { "whole" };
        let path = self.folder.path().join(format!("{} {what} {}", initial.name(), wire.name()));
        if !path.exists() {
            let fetch = Fetch { initial, wire, metadata, page_size: None };
            record(&self.client, &fetch, &path).await?;
        }
        Ok(path)
    }

    pub(crate) fn table(&self) -> String {
        let mut table = Table::new(&["mean bytes per Pod", "whole", "without managedFields"]);
        for (name, sizes) in [("JSON", self.json), ("protobuf", self.protobuf)] {
            table.row(&[
                name.into(),
                format!("{:.0}", sizes.whole),
                format!("{:.0}", sizes.without_managed_fields),
            ]);
        }
        table.section("The objects", "As the server lists them.")
    }
}

async fn record(client: &kube::Client, fetch: &Fetch, path: &Path) -> Result<()> {
    let mut body = Vec::new();
    let fetched = fetch.run(client, |chunk| body.extend_from_slice(chunk)).await?;
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    writeln!(file, "{}", fetched.content_type)?;
    file.write_all(&body)?;
    Ok(file.flush()?)
}

fn body_of(mut recording: Vec<u8>) -> Result<Vec<u8>> {
    let line = recording.iter().position(|&byte| byte == b'\n').context("the recording has no first line")?;
    Ok(recording.split_off(line + 1))
}

fn json_sizes(list: &[u8]) -> Result<Sizes> {
    #[derive(Deserialize)]
    struct List<'a> {
        #[serde(borrow)]
        items: Vec<&'a RawValue>,
    }
    let list: List<'_> = serde_json::from_slice(list)?;
    let mut sum = Sizes::default();
    for item in &list.items {
        let mut object: serde_json::Value = serde_json::from_str(item.get())?;
        if let Some(metadata) = object.get_mut("metadata").and_then(|metadata| metadata.as_object_mut()) {
            metadata.remove("managedFields");
        }
        sum.whole += item.get().len() as f64;
        sum.without_managed_fields += object.to_string().len() as f64;
    }
    Ok(sum.mean(list.items.len()))
}

/// Of a list of Pods: `k8s\0`, and in it `Unknown`, whose field 2 is the list, whose field 2 are the objects.
fn protobuf_sizes(envelope: &[u8]) -> Option<Sizes> {
    let unknown = fields(envelope.strip_prefix(b"k8s\0")?);
    let (_, list) = unknown?.into_iter().find(|(number, _)| *number == 2)?;
    let (mut sum, mut objects) = (Sizes::default(), 0);
    for (_, object) in fields(list)?.into_iter().filter(|(number, _)| *number == 2) {
        // Field 1 of an object is its metadata, whose field 17 are the managedFields.
        let (_, metadata) = fields(object)?.into_iter().find(|(number, _)| *number == 1)?;
        let managed = fields(metadata)?.into_iter().filter(|(number, _)| *number == 17);
        // Two bytes for the field's number.
        let managed: usize = managed.map(|(_, field)| 2 + length_of_varint(field.len()) + field.len()).sum();
        let shorter = length_of_varint(metadata.len()) - length_of_varint(metadata.len() - managed);
        sum.whole += object.len() as f64;
        sum.without_managed_fields += (object.len() - managed - shorter) as f64;
        objects += 1;
    }
    Some(sum.mean(objects))
}

impl Sizes {
    fn mean(self, objects: usize) -> Self {
        let objects = objects.max(1) as f64;
        Self { whole: self.whole / objects, without_managed_fields: self.without_managed_fields / objects }
    }
}

/// The fields of a message that have a length, by number.
fn fields(mut message: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message)?;
        match key & 7 {
            0 => drop(varint(&mut message)?),
            1 => message = message.get(8..)?,
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                let (field, rest) = message.split_at_checked(length)?;
                found.push((key >> 3, field));
                message = rest;
            }
            5 => message = message.get(4..)?,
            _ => return None,
        }
    }
    Some(found)
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn length_of_varint(value: usize) -> usize {
    (usize::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_measured_without_managed_fields() {
        let list =
            br#"{"items": [{"metadata":{"managedFields":[1],"name":"a"}}, {"metadata":{"name":"b"}}]}"#;
        let sizes = json_sizes(list).unwrap();
        assert_eq!(sizes, Sizes { whole: (45.0 + 25.0) / 2.0, without_managed_fields: 25.0 });
    }

    #[test]
    fn protobuf_is_measured_without_managed_fields() {
        let field = |key: &[u8], value: &[u8]| [key, &[value.len() as u8], value].concat();
        let managed = field(&[0x8a, 1], &[b'm'; 30]);
        let metadata = [field(&[0x0a], b"name"), managed.clone()].concat();
        let object = [field(&[0x0a], &metadata), vec![0x18, 0xff, 1]].concat();
        let list = [field(&[0x0a], b""), field(&[0x12], &object)].concat();
        let envelope = [b"k8s\0".to_vec(), field(&[0x0a], b"PodList"), field(&[0x12], &list)].concat();
        let sizes = protobuf_sizes(&envelope).unwrap();
        let (whole, without) = (object.len() as f64, (object.len() - managed.len()) as f64);
        assert_eq!(sizes, Sizes { whole, without_managed_fields: without });
        assert_eq!(protobuf_sizes(&envelope[..20]), None);
    }

    #[test]
    fn varints_have_the_length_that_they_are_written_with() {
        assert_eq!([0, 127, 128, 16_383, 16_384].map(length_of_varint), [1, 1, 2, 2, 3]);
        assert_eq!(varint(&mut &[0xac, 0x02][..]), Some(300));
    }
}
