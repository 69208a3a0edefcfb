//! The grammar of label selectors, accepting what `labels.Parse` accepts.

use super::{Operator, Requirement};
use crate::selector::{Grammar, ParseSelectorError, syntax};

/// The requirements of the selector `text`, in the order written.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, ParseSelectorError> {
    let mut parser = Parser { text, at: 0 };
    let mut requirements = Vec::new();
    if parser.peek().kind == Kind::End {
        return Ok(requirements);
    }
    loop {
        requirements.push(parser.requirement()?);
        let token = parser.next();
        match token.kind {
            Kind::End => return Ok(requirements),
            Kind::Comma => {}
            _ => return Err(parser.error(token, "',' or the end")),
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn requirement(&mut self) -> Result<Requirement, ParseSelectorError> {
        let mut token = self.next();
        let absent = token.kind == Kind::Not;
        if absent {
            token = self.next();
        }
        let Token { kind: Kind::Word, text: key, .. } = token else {
            return Err(
                self.error(token, if absent { "a label key" } else { "a label key or '!'" })
            );
        };
        if !syntax::is_label_key(key) {
            return Err(self.error(token, syntax::LABEL_KEY));
        }
        if absent {
            return Ok(Requirement::new(key, Operator::DoesNotExist, &[]));
        }
        if matches!(self.peek().kind, Kind::End | Kind::Comma) {
            return Ok(Requirement::new(key, Operator::Exists, &[]));
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.value_set()?,
            Operator::GreaterThan | Operator::LessThan => vec![self.integer()?],
            _ => vec![self.value()?],
        };
        Ok(Requirement::new(key, operator, &values))
    }

    fn operator(&mut self) -> Result<Operator, ParseSelectorError> {
        let token = self.next();
        Ok(match (token.kind, token.text) {
            (Kind::Equals, _) => Operator::Equals,
            (Kind::NotEquals, _) => Operator::NotEquals,
            (Kind::Greater, _) => Operator::GreaterThan,
            (Kind::Less, _) => Operator::LessThan,
            (Kind::Word, "in") => Operator::In,
            (Kind::Word, "notin") => Operator::NotIn,
            _ => {
                return Err(
                    self.error(token, "',', '=', '==', '!=', 'in', 'notin', '<', '>' or the end")
                );
            }
        })
    }

    /// One value, or the empty one if the requirement ends here.
    fn value(&mut self) -> Result<&'t str, ParseSelectorError> {
        match self.peek().kind {
            Kind::End | Kind::Comma => Ok(""),
            _ => {
                let token = self.next();
                self.checked(token)
            }
        }
    }

    fn integer(&mut self) -> Result<&'t str, ParseSelectorError> {
        let token = self.peek();
        let value = self.value()?;
        value.parse::<i64>().map(|_| value).map_err(|_| self.error(token, "an integer"))
    }

    /// `(x,y)`. Absent values between commas and parentheses are empty ones, as the Go parser reads
    /// them: it takes two commas at a time, so that `(x,,)` is an error while `(x,,y)` and `(x,)`
    /// are not.
    fn value_set(&mut self) -> Result<Vec<&'t str>, ParseSelectorError> {
        let open = self.next();
        if open.kind != Kind::Open {
            return Err(self.error(open, "'('"));
        }
        let mut values = Vec::new();
        if self.peek().kind == Kind::Close {
            values.push("");
        }
        while self.peek().kind != Kind::Close {
            let token = self.next();
            if token.kind != Kind::Comma {
                values.push(self.checked(token)?);
                let after = self.peek();
                if !matches!(after.kind, Kind::Comma | Kind::Close) {
                    return Err(self.error(after, "',' or ')'"));
                }
                continue;
            }
            if values.is_empty() {
                values.push("");
            }
            match self.peek().kind {
                Kind::Close => values.push(""),
                Kind::Comma => {
                    self.next();
                    values.push("");
                    let after = self.peek();
                    if after.kind == Kind::Close {
                        return Err(self.error(after, "',' or a value"));
                    }
                }
                _ => {}
            }
        }
        self.next();
        Ok(values)
    }

    /// The token's text, if it is a value.
    fn checked(&self, token: Token<'t>) -> Result<&'t str, ParseSelectorError> {
        if token.kind == Kind::Word && syntax::is_label_value(token.text) {
            Ok(token.text)
        } else {
            Err(self.error(token, syntax::LABEL_VALUE))
        }
    }

    fn peek(&self) -> Token<'t> {
        let rest = &self.text[self.at..];
        let offset = self.text.len() - rest.trim_start_matches(is_white_space).len();
        let rest = &self.text[offset..];
        let (kind, length) = match rest.as_bytes() {
            [] => (Kind::End, 0),
            [b'=', b'=', ..] => (Kind::Equals, 2),
            [b'!', b'=', ..] => (Kind::NotEquals, 2),
            [b'=', ..] => (Kind::Equals, 1),
            [b'!', ..] => (Kind::Not, 1),
            [b'(', ..] => (Kind::Open, 1),
            [b')', ..] => (Kind::Close, 1),
            [b',', ..] => (Kind::Comma, 1),
            [b'>', ..] => (Kind::Greater, 1),
            [b'<', ..] => (Kind::Less, 1),
            _ => (Kind::Word, rest.find(ends_word).unwrap_or(rest.len())),
        };
        Token { kind, text: &rest[..length], offset }
    }

    fn next(&mut self) -> Token<'t> {
        let token = self.peek();
        self.at = token.offset + token.text.len();
        token
    }

    fn error(&self, found: Token<'_>, expected: &'static str) -> ParseSelectorError {
        ParseSelectorError::new(Grammar::Label, self.text, found.offset, expected, found.text)
    }
}

#[derive(Clone, Copy)]
struct Token<'t> {
    kind: Kind,
    text: &'t str,
    /// In bytes, of the first one of `text`.
    offset: usize,
}

/// `in` and `notin` are words: operators only where one is expected, so that both can be keys and
/// values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    End,
    Word,
    Open,
    Close,
    Comma,
    Not,
    Equals,
    NotEquals,
    Greater,
    Less,
}

fn is_white_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

fn ends_word(character: char) -> bool {
    is_white_space(character) || matches!(character, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}
