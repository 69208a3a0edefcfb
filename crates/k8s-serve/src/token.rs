//! Continue tokens: a version, the key after which to go on, and how far that is.

use informer_core::ObjectKey;

use crate::status::Status;

/// What a continue token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// The version of the list; `None` goes on with the newest state, which gives up consistency.
    pub(crate) version: Option<u64>,
    pub(crate) after: ObjectKey,
    /// How many pages came before.
    pub(crate) pages: u64,
}

/// Which page of a list a continue token asks for, counted from 1.
#[must_use]
pub fn page_of(token: &str) -> Option<u64> {
    Token::read(token).map(|token| token.pages.saturating_add(1))
}

/// The query of a request, with its continue token replaced by one that goes on with the newest
/// state.
#[must_use]
pub fn at_newest(query: &str) -> String {
    let mut out = form_urlencoded::Serializer::new(String::new());
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match Token::read(&value).filter(|_| name == "continue") {
            Some(token) => out.append_pair(&name, &Token { version: None, ..token }.encode()),
            None => out.append_pair(&name, &value),
        };
    }
    out.finish()
}

impl Token {
    /// Hexadecimal digits, so that nobody is tempted to look into it.
    pub(crate) fn encode(&self) -> String {
        let version = self.version.map(|version| version.to_string()).unwrap_or_default();
        let text =
            format!("{version} {} {} {}", self.after.namespace(), self.after.name(), self.pages);
        text.bytes().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(crate) fn decode(text: &str) -> Result<Self, Status> {
        Self::read(text)
            .ok_or_else(|| Status::bad_request(format!("continue key is not valid: {text:?}")))
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        let digits: Vec<u8> = text
            .chars()
            .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()))
            .collect::<Option<_>>()?;
        let (pairs, []) = digits.as_chunks::<2>() else { return None };
        let plain =
            String::from_utf8(pairs.iter().map(|[high, low]| high << 4 | low).collect()).ok()?;
        let mut words = plain.split(' ');
        let (version, namespace, name) = (words.next()?, words.next()?, words.next()?);
        let version = if version.is_empty() { None } else { Some(version.parse().ok()?) };
        let pages = words.next()?.parse().ok()?;
        Some(Self { version, after: ObjectKey::namespaced(namespace, name), pages })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_and_garbage_does_not() {
        for version in [Some(7), None] {
            let token = Token { version, after: ObjectKey::namespaced("a", "b"), pages: 3 };
            assert_eq!(page_of(&token.encode()), Some(4));
            assert_eq!(Token::decode(&token.encode()), Ok(token));
        }
        for text in ["", "zz", "1", "00", "ä", "7a202020"] {
            assert_eq!(Token::decode(text).map_err(|status| status.code), Err(400), "{text}");
        }
    }
}
