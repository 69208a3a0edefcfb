//! Pairs of protobuf and JSON that Go made of the same objects.
//!
//! A few are checked in. `crates/k8s-protobuf/generator/corpus DIR` makes thousands; the tests find
//! them with `K8S_PROTOBUF_CORPUS=DIR`.

use std::path::{Path, PathBuf};

use k8s_protobuf::{Envelope, Error, Kind};

/// One object in both encodings.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    /// What it is and where it comes from.
    pub(crate) name: String,
    /// With envelope.
    pub(crate) protobuf: Vec<u8>,
    pub(crate) json: Vec<u8>,
}

impl Pair {
    /// What it is, and its message. `None` if there is no such kind any more: of older versions'
    /// test data.
    pub(crate) fn message(&self) -> Option<(Kind, &[u8])> {
        let envelope = Envelope::parse(&self.protobuf).expect("an envelope");
        match envelope.message() {
            Ok(message) => Some(message),
            // The event of a watch does not say what it is.
            Err(_) if self.name.contains("v1") && self.name.contains("WatchEvent") => {
                Some((Kind::of("v1", "WatchEvent").expect("it is in the table"), envelope.raw))
            }
            Err(Error::UnknownKind { .. }) if self.name.starts_with("v1.") => None,
            Err(error) => panic!("{}: {error}", self.name),
        }
    }

    /// The last second of the year 9999, which the corpus has many of, is too late for k8s-openapi:
    /// the same time two days earlier, in both encodings.
    pub(crate) fn end_earlier(&mut self) {
        replace(&mut self.json, b"9999-12-31T23:59:59", b"9999-12-29T23:59:59");
        // As seconds, in protobuf's variable length.
        replace(&mut self.protobuf, b"\xff\x82\xd1\xff\xaf\x07", b"\xff\xbc\xc6\xff\xaf\x07");
    }
}

fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) {
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(old.len()).position(|window| window == old) {
        at += found;
        bytes[at..at + old.len()].copy_from_slice(new);
    }
}

/// All pairs; without the corpus those that are checked in, and a word on how to get it.
pub(crate) fn pairs() -> Vec<Pair> {
    let mut pairs = checked_in();
    let Some(directory) = std::env::var_os("K8S_PROTOBUF_CORPUS").map(PathBuf::from) else {
        eprintln!(
            "skipped all but {} pairs: make the others with `crates/k8s-protobuf/generator/corpus DIR`, then set \
             K8S_PROTOBUF_CORPUS=DIR",
            pairs.len()
        );
        return pairs;
    };
    read_pairs(&read(&directory.join("pairs.bin")), &mut pairs);
    let testdata = String::from_utf8(read(&directory.join("testdata"))).expect("a path");
    read_testdata(Path::new(testdata.trim()), &mut pairs);
    assert!(pairs.len() > 1000, "only {} pairs in {}", pairs.len(), directory.display());
    pairs
}

/// Those that are always there.
pub(crate) fn checked_in() -> Vec<Pair> {
    let mut pairs = Vec::new();
    read_pairs(include_bytes!("../fixtures/pairs.bin"), &mut pairs);
    pairs
}

/// `[length, "apps/v1/Deployment", length, protobuf, length, JSON]`, again and again.
fn read_pairs(mut bytes: &[u8], pairs: &mut Vec<Pair>) {
    let mut next = || {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        bytes = rest;
        Some(part.to_vec())
    };
    while let Some(name) = next() {
        let name = format!("{} #{}", String::from_utf8(name).expect("a name"), pairs.len());
        let (protobuf, json) = (next().expect("protobuf"), next().expect("JSON"));
        pairs.push(Pair { name, protobuf, json });
    }
}

/// `k8s.io/api`'s test data: of each version `<group.version.Kind>.{pb,json}`, and
/// `.after_roundtrip.json` where what an older version wrote is read otherwise by this one.
fn read_testdata(directory: &Path, pairs: &mut Vec<Pair>) {
    for version in std::fs::read_dir(directory).expect("the test data of k8s.io/api") {
        let version = version.expect("a folder").path();
        for file in std::fs::read_dir(&version).into_iter().flatten() {
            let file = file.expect("a file").path();
            if file.extension().is_none_or(|extension| extension != "pb")
                || file.to_string_lossy().contains(".after_roundtrip.")
            {
                continue;
            }
            let roundtrip = file.with_extension("after_roundtrip.json");
            let changed = roundtrip.exists() || file.with_extension("after_roundtrip.pb").exists();
            let json = if roundtrip.exists() { &roundtrip } else { &file.with_extension("json") };
            // The name tells whether this version writes the same.
            let name = if changed { &roundtrip } else { json };
            let name = name.strip_prefix(directory).unwrap_or(name).display().to_string();
            pairs.push(Pair { name, protobuf: read(&file), json: read(json) });
        }
    }
}

fn read(file: &Path) -> Vec<u8> {
    std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
