use std::fmt::Debug;

use k8s_openapi::api::core::v1::{Pod, Volume};
use kube::core::DynamicObject;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

/// Decoded here and by serde_json alone, it must be the same.
fn same<T: DeserializeOwned + Debug>(json: &str) {
    let ours = from_str::<T>(json).map_err(|error| error.to_string());
    let theirs = serde_json::from_slice::<T>(json.as_bytes()).map_err(|error| error.to_string());
    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{json}");
}

fn decode<T: DeserializeOwned>(json: &str) -> T {
    from_str(json).unwrap()
}

#[derive(Debug, Deserialize)]
enum Shape {
    Unit,
    Newtype(Vec<u64>),
    Tuple(Vec<u64>, Vec<u64>),
    Struct { of: Vec<u64> },
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "only compared")]
enum Untagged {
    Number(i64),
    Many(Vec<Self>),
    Named { x: Vec<String> },
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only compared")]
struct Wrapped(Vec<Vec<u64>>);

/// Some fields, in whatever order, with unknown ones between them.
#[derive(Debug, Deserialize)]
struct Mixed {
    first: Vec<Box<str>>,
    shape: Option<Vec<Shape>>,
    last: Vec<(u8, Vec<u8>)>,
}

const MIXED: &str = r#" { "first" : [ "a]" , "\"[", "c\\" ] , "unknown":[[1],[2,3],{"x":[]}], "shape":[
    "Unit", {"Newtype":[1,2,3]}, {"Tuple":[[1],[]]}, {"Struct":{"skipped":[[],[1]],"of":[1,2]}} ],
    "more":{"deep":[{"deeper":[1,2,3,4,5,6,7]}]}, "last":[[1,[2,3]],[4,[]],[5,[6]]] } "#;

#[test]
fn arrays_are_counted_in_the_order_of_the_text() {
    let lengths = |json: &str| arrays(json.as_bytes()).iter().map(|array| array.length).collect::<Vec<_>>();
    assert_eq!(lengths("[]"), [0]);
    assert_eq!(lengths("[ ]"), [0]);
    assert_eq!(lengths("[1]"), [1]);
    assert_eq!(lengths("[[],[ [] , 1 ],{}]"), [3, 0, 2, 0]);
    assert_eq!(lengths(r#"{"a":["]","\"],[",{"b":1,"c":[2,3]}],"d":[null]}"#), [3, 2, 1]);
    assert_eq!(lengths("{}"), [0; 0]);
}

#[test]
fn strings_end_wherever_their_quote_stands() {
    for length in 0..100 {
        // Those that differ least from a quote and a backslash.
        let content: String = "!#]{[},\u{0}\u{7f}".chars().cycle().take(length).collect();
        for end in [r#"""#, r#"\"""#, r#"\\""#, r#"\\\"""#] {
            let text = format!("[\"{content}{end},[]]");
            let lengths: Vec<_> = arrays(text.as_bytes()).iter().map(|array| array.length).collect();
            assert_eq!(lengths, [2, 0], "{text}");
        }
        arrays(format!("[\"{content}").as_bytes());
        arrays(format!("[\"{content}\\").as_bytes());
    }
}

#[test]
fn what_is_decoded_is_what_serde_json_decodes() {
    let pod = json!({
        "metadata": {"name": "a", "labels": {"x": "y"}, "unknown": [[1], [2]]},
        "spec": {
            "containers": [{
                "name": "c", "args": ["a", "b", "c"], "ports": [{"containerPort": 80}],
                "livenessProbe": {"httpGet": {"port": "http"}},
            }],
            "volumes": [{"name": "v", "configMap": {"items": [{"key": "k", "path": "p"}]}}],
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "podIPs": []},
    });
    for json in [
        pod.to_string(),
        pod.to_string().replace("[{\"name\":\"c\"", "[17,{\"name\":\"c\""),
        pod.to_string().replace(']', ""),
        format!("{pod} x"),
        "[]".to_owned(),
        "null".to_owned(),
        String::new(),
        r#"{"metadata":{},"x":[1,2"#.to_owned(),
        r#"{"metadata":{},"x":tru}"#.to_owned(),
    ] {
        same::<Pod>(&json);
        same::<DynamicObject>(&json);
        same::<Value>(&json);
    }
    same::<Mixed>(MIXED);
    same::<Wrapped>("[[1,2],[]]");
    same::<Vec<Untagged>>(r#"[1,[2,[3]],{"x":["a"]},{"x":[]}]"#);
    same::<Vec<Untagged>>(r#"[1,{"y":2}]"#);
    same::<(Option<u64>, bool, f64, char, String, ())>(r#"[null,true,1.5,"c","s",null]"#);
}

#[test]
fn g35_vecs_have_no_room_to_spare() {
    let mixed: Mixed = decode(MIXED);
    assert_eq!(mixed.first.capacity(), 3);
    let shapes = mixed.shape.unwrap();
    assert_eq!(shapes.capacity(), 4);
    let [Shape::Unit, Shape::Newtype(one), Shape::Tuple(two, three), Shape::Struct { of }] = &shapes[..]
    else {
        panic!("{shapes:?}");
    };
    assert_eq!([one, two, three, of].map(Vec::capacity), [3, 1, 0, 2]);
    assert_eq!(mixed.last.capacity(), 3);
    assert_eq!(mixed.last.iter().map(|(_, bytes)| bytes.capacity()).collect::<Vec<_>>(), [2, 0, 1]);

    let volumes: Vec<Volume> = decode(r#"[{"name":"a"},{"name":"b"},{"name":"c"}]"#);
    assert_eq!(volumes.capacity(), 3);
}

#[test]
fn what_reads_past_the_lengths_loses_them_and_nothing_else() {
    #[derive(Debug, Deserialize)]
    struct Raw {
        before: Vec<u8>,
        raw: Box<RawValue>,
        after: Vec<u8>,
    }
    let raw: Raw = decode(r#"{"before":[1],"raw":[[1,2,3],[4]],"after":[1,2,3]}"#);
    assert_eq!((raw.before.capacity(), raw.raw.get(), &raw.after[..]), (1, "[[1,2,3],[4]]", &[1, 2, 3][..]));
}

#[test]
fn a_text_without_arrays_of_interest_is_not_looked_at() {
    #[derive(Deserialize)]
    struct Slim {
        #[expect(dead_code, reason = "only decoded")]
        name: String,
    }
    let json = br#"{"skipped":[1,[2]],"name":"a","more":[]}"#;
    let lengths = Lengths::of(json);
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    Slim::deserialize(Exact { inner: &mut deserializer, lengths: &lengths }).unwrap();
    assert!(lengths.arrays.get().is_none());
}
