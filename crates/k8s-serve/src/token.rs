//! Continue tokens: a version, and the key at which to go on.
//!
//! They are those of an API server, so that pages begun at one server can be continued at another.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use informer_core::ObjectKey;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::status::Status;

/// What a continue token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// The version of the list; `None` goes on with the newest state, which gives up consistency.
    pub(crate) version: Option<u64>,
    /// The key after which to go on.
    pub(crate) after: ObjectKey,
}

/// The keys that a request is about: tokens leave out what all of them begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope<'a> {
    /// Those of a resource without namespaces.
    Cluster,
    /// Those of all namespaces.
    AllNamespaces,
    /// Those of one namespace.
    Namespace(&'a str),
}

const VERSION: &str = "meta.k8s.io/v1";

impl Token {
    pub(crate) fn encode(&self, scope: Scope<'_>) -> String {
        let (namespace, name) = (self.after.namespace(), self.after.name());
        let start = match scope {
            Scope::Cluster | Scope::Namespace(_) => format!("/{name}\0"),
            Scope::AllNamespaces => format!("/{namespace}/{name}\0"),
        };
        write(self.version, &start)
    }

    /// # Errors
    /// 400 if the token is none.
    pub(crate) fn decode(text: &str, scope: Scope<'_>) -> Result<Self, Status> {
        let (version, start) = read(text).map_err(|fault| {
            let message = format!("invalid continue token: continue key is not valid: {fault}");
            Status::bad_request(message)
        })?;
        Ok(Self { version, after: scope.before(start.strip_prefix('/').unwrap_or(&start)) })
    }
}

impl Scope<'_> {
    /// A key that is below `start`, and below which are all objects whose keys are.
    ///
    /// Tokens begin *at* a key. Those that servers write end with a zero, so that they begin after
    /// an object.
    fn before(self, start: &str) -> ObjectKey {
        let mut before = start.to_owned();
        match before.pop() {
            None | Some('\0') => {}
            // Names have no characters beyond ASCII.
            Some(last) => {
                before.extend(char::from_u32(u32::from(last) - 1));
                before.push(char::MAX);
            }
        }
        match self {
            Self::Cluster => ObjectKey::cluster(&before),
            Self::Namespace(namespace) => ObjectKey::namespaced(namespace, &before),
            Self::AllNamespaces => {
                let (namespace, name) = before.split_once('/').unwrap_or((&before, ""));
                ObjectKey::namespaced(namespace, name)
            }
        }
    }
}

/// The same token for the newest state; `None` if it is none.
pub(crate) fn at_newest(token: &str) -> Option<String> {
    let (_, start) = read(token).ok()?;
    Some(write(None, start.strip_prefix('/').unwrap_or(&start)))
}

fn write(version: Option<u64>, start: &str) -> String {
    let version = version.map_or_else(|| "-1".to_owned(), |version| version.to_string());
    let start = Value::from(start);
    BASE64_URL_SAFE_NO_PAD
        .encode(format!("{{\"v\":\"{VERSION}\",\"rv\":{version},\"start\":{start}}}"))
}

/// The version and the start of a token, or what is wrong with it.
fn read(token: &str) -> Result<(Option<u64>, String), String> {
    let json = BASE64_URL_SAFE_NO_PAD.decode(token).map_err(|_| {
        let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let valid = token.bytes().take_while(is_digit).count();
        let at = if valid == token.len() { valid.saturating_sub(1) } else { valid };
        format!("illegal base64 data at input byte {at}")
    })?;
    // The caller controls the token and may nest it to any depth. `RawValue` skips unknown members
    // without recursion.
    let members: BTreeMap<String, &RawValue> =
        serde_json::from_slice(&json).map_err(|error| match error.is_data() {
            true => "it is no JSON object".to_owned(),
            false => error.to_string(),
        })?;
    // Go does not mind the case.
    let member = |wanted: &str| {
        let named = members.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        named.map_or("null", |(_, value)| value.get())
    };
    let text = |name: &str| match serde_json::from_str::<Option<String>>(member(name)) {
        Ok(text) => Ok(text.unwrap_or_default()),
        Err(_) => Err(format!("{name} is no string")),
    };
    let version =
        serde_json::from_str::<Option<i64>>(member("rv")).map_err(|_| "rv is no number")?;
    let version = version.unwrap_or_default();
    let (format, start) = (text("v")?, text("start")?);
    if format != VERSION {
        return Err(format!("server does not recognize this encoded version {format}"));
    }
    if version == 0 {
        return Err(format!("incorrect encoded start resourceVersion (version {VERSION})"));
    }
    if start.is_empty() {
        return Err(format!("encoded start key empty (version {VERSION})"));
    }
    if !is_clean(start.strip_prefix('/').unwrap_or(&start)) {
        return Err(start);
    }
    Ok((u64::try_from(version).ok(), start))
}

/// Whether a path leads nowhere but down.
fn is_clean(path: &str) -> bool {
    path.is_empty() || path.split('/').all(|segment| !matches!(segment, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use k8s_protobuf::encode::RAW_JSON;

    use super::*;

    fn encoded(json: &str) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(json)
    }

    /// As kube-apiserver 1.36 writes them.
    #[test]
    fn tokens_are_those_of_an_api_server() {
        for (scope, key, token) in [
            (
                Scope::Namespace("default"),
                ObjectKey::namespaced("default", "cm-2"),
                "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjM1LCJzdGFydCI6Ii9jbS0yXHUwMDAwIn0",
            ),
            (
                Scope::AllNamespaces,
                ObjectKey::namespaced("default", "cm-2"),
                "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjM1LCJzdGFydCI6Ii9kZWZhdWx0L2NtLTJcdTAwMDAifQ",
            ),
            (
                Scope::Cluster,
                ObjectKey::cluster("kube-node-lease"),
                "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjM1LCJzdGFydCI6Ii9rdWJlLW5vZGUtbGVhc2VcdTAwMDAifQ",
            ),
        ] {
            let decoded = Token { version: Some(235), after: key };
            assert_eq!(decoded.encode(scope), token);
            assert_eq!(Token::decode(token, scope), Ok(decoded.clone()));
            let newest = at_newest(token).unwrap();
            assert_eq!(Token::decode(&newest, scope), Ok(Token { version: None, ..decoded }));
        }
    }

    #[test]
    fn a_start_without_a_zero_is_included() {
        let scope = Scope::AllNamespaces;
        let start = |start: &str| {
            let json = format!(r#"{{"V":"meta.k8s.io/v1","RV":-5,"start":"{start}","more":[]}}"#);
            Token::decode(&encoded(&json), scope).unwrap()
        };
        let object = ObjectKey::namespaced("default", "cm-3");
        for (text, included) in [
            ("default/cm-3", true),
            ("/default/cm-3", true),
            ("default/cm-3\\u0000", false),
            ("default/cm-2", true),
            ("default/cm-4", false),
            ("default", true),
            ("defaulu", false),
            ("/", true),
        ] {
            assert_eq!(start(text).after < object, included, "{text}");
            assert_eq!(start(text).version, None);
        }
    }

    /// All but what Go says of broken JSON as kube-apiserver 1.36 answers.
    #[test]
    fn what_is_no_token_is_told_in_the_servers_words() {
        let v1 = |rest: &str| encoded(&format!(r#"{{"v":"meta.k8s.io/v1",{rest}}}"#));
        for (token, fault) in [
            (v1(r#""rv":226,"start":"/x/../cm-3""#), "/x/../cm-3"),
            (v1(r#""rv":226,"start":"../x""#), "../x"),
            (v1(r#""rv":226,"start":"default/""#), "default/"),
            (v1(r#""rv":226,"start":"a//b""#), "a//b"),
            (
                v1(r#""rv":0,"start":"/x""#),
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ),
            (v1(r#""rv":1,"start":"""#), "encoded start key empty (version meta.k8s.io/v1)"),
            (
                encoded(r#"{"v":"meta.k8s.io/v2","rv":1,"start":"a"}"#),
                "server does not recognize this encoded version meta.k8s.io/v2",
            ),
            (encoded("{}"), "server does not recognize this encoded version "),
            ("a*b".to_owned(), "illegal base64 data at input byte 1"),
            ("abcde".to_owned(), "illegal base64 data at input byte 4"),
            ("YQ==".to_owned(), "illegal base64 data at input byte 2"),
            (encoded("[]"), "it is no JSON object"),
            (encoded(r#"{"v":[]}"#), "v is no string"),
            (v1(r#""rv":1.0,"start":"/a""#), "rv is no number"),
            (v1(r#""rv":"1","start":"/a""#), "rv is no number"),
        ] {
            let status = Token::decode(&token, Scope::AllNamespaces).unwrap_err();
            let message = format!("invalid continue token: continue key is not valid: {fault}");
            assert_eq!((status.code, status.message), (400, message));
        }
    }

    /// Parsing the token as a `Value` would overflow the stack and abort the process: serde_json
    /// starts a new recursion limit below this key.
    #[test]
    fn a_token_is_not_parsed_deeper_than_its_members() {
        let inner = (0..50).fold("1".to_owned(), |inner, _| {
            let text = inner.replace('\\', "\\u005c").replace('"', "\\u0022");
            format!("{}{{\"{RAW_JSON}\":\"{text}\"}}{}", "[".repeat(120), "]".repeat(120))
        });
        let json = format!(r#"{{"v":"meta.k8s.io/v1","rv":1,"start":"/a","more":{inner}}}"#);
        let decoded = Token::decode(&encoded(&json), Scope::Cluster).unwrap();
        assert_eq!(decoded.version, Some(1));
    }
}
