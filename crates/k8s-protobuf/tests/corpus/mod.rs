//! Pairs of protobuf and JSON that Go made of the same objects.
//!
//! `go run . corpus DIR` in `crates/k8s-protobuf/generator` makes them; the tests find them with
//! `K8S_PROTOBUF_CORPUS=DIR`.

use std::path::{Path, PathBuf};

/// One object in both encodings.
#[derive(Debug)]
pub(crate) struct Pair {
    /// What it is and where it comes from.
    pub(crate) name: String,
    /// With envelope.
    pub(crate) protobuf: Vec<u8>,
    pub(crate) json: Vec<u8>,
    /// Whether Go writes exactly these bytes of this JSON. Not so where an older version has more fields.
    pub(crate) exact: bool,
}

impl Pair {
    /// Whether this need not be in the table: of an older version, which had kinds that there are no more, or the event
    /// of a watch, whose JSON does not say what it is.
    pub(crate) fn may_be_unknown(&self) -> bool {
        self.name.starts_with("v1.") || self.name.contains("v1.WatchEvent")
    }
}

/// All pairs; none, and a word on how to get them, without the corpus.
pub(crate) fn pairs() -> Vec<Pair> {
    let Some(directory) = std::env::var_os("K8S_PROTOBUF_CORPUS").map(PathBuf::from) else {
        eprintln!(
            "skipped: needs Go's pairs. Make them with `go run . corpus DIR` in crates/k8s-protobuf/generator, then set \
             K8S_PROTOBUF_CORPUS=DIR"
        );
        return Vec::new();
    };
    let mut pairs = Vec::new();
    if directory.join("pairs.bin").exists() {
        read_pairs(&read(&directory.join("pairs.bin")), &mut pairs);
    }
    let testdata = String::from_utf8(read(&directory.join("testdata"))).expect("a path");
    read_testdata(Path::new(testdata.trim()), &mut pairs);
    assert!(pairs.len() > 300, "only {} pairs in {}", pairs.len(), directory.display());
    pairs
}

/// `[length, "apps/v1/Deployment", length, protobuf, length, JSON]`, again and again.
pub(crate) fn read_pairs(mut bytes: &[u8], pairs: &mut Vec<Pair>) {
    let mut next = || {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        bytes = rest;
        Some(part.to_vec())
    };
    while let Some(name) = next() {
        let name = format!("{} #{}", String::from_utf8(name).expect("a name"), pairs.len());
        let (protobuf, json) = (next().expect("protobuf"), next().expect("JSON"));
        pairs.push(Pair { name, protobuf, json, exact: true });
    }
}

/// `k8s.io/api`'s test data: of each version `<group.version.Kind>.{pb,json}`, and `.after_roundtrip.json` where what
/// an older version wrote is read otherwise by this one.
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
            let exact = !roundtrip.exists() && !file.with_extension("after_roundtrip.pb").exists();
            let json = if roundtrip.exists() { roundtrip } else { file.with_extension("json") };
            let name = file.strip_prefix(directory).unwrap_or(&file).display().to_string();
            pairs.push(Pair { name, protobuf: read(&file), json: read(&json), exact });
        }
    }
}

fn read(file: &Path) -> Vec<u8> {
    std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
