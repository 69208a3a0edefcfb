//! Reading paths.

use serde_json::Value;

use super::{End, Filter, InvalidPath, Operator, Slice, Step};

/// Reads a path, which is what stands between the braces of a template.
pub(super) fn steps(text: &str) -> Result<Vec<Step>, InvalidPath> {
    // The closing brace ends words, but may itself be taken for a part of brackets that are open.
    let text = format!("{text}}}");
    let mut parser = Parser { rest: &text, steps: Vec::new() };
    while parser.step()? {}
    Ok(parser.steps)
}

struct Parser<'t> {
    rest: &'t str,
    steps: Vec<Step>,
}

impl<'t> Parser<'t> {
    /// Reads a step. Whether there may be more.
    fn step(&mut self) -> Result<bool, InvalidPath> {
        if let Some(rest) = self.rest.strip_prefix("[?(") {
            self.rest = rest;
            self.filter()?;
            return Ok(true);
        }
        if let Some(rest) = self.rest.strip_prefix("..") {
            if self.steps.last() == Some(&Step::Recursive) {
                return Err(InvalidPath);
            }
            self.steps.push(Step::Recursive);
            self.rest = rest;
            if rest.starts_with(is_alphanumeric) {
                self.field();
            }
            return Ok(true);
        }
        let character = self.rest.chars().next().ok_or(InvalidPath)?;
        let after = &self.rest[character.len_utf8()..];
        match character {
            '}' => return Ok(false),
            // The current object is what steps begin at anyway.
            ' ' | '@' | '$' => self.rest = after,
            '[' => {
                let (inside, rest) = after.split_once(']').ok_or(InvalidPath)?;
                self.rest = rest;
                self.brackets(inside)?;
            }
            '"' | '\'' => {
                self.rest = after;
                self.quoted(character)?;
            }
            '.' => {
                self.rest = after;
                self.field();
            }
            '+' | '-' => self.number()?,
            _ if character.is_numeric() => self.number()?,
            _ if is_alphanumeric(character) => self.word(),
            _ => return Err(InvalidPath),
        }
        Ok(true)
    }

    /// Takes what is before the first character that ends it.
    fn take(&mut self, ends: impl FnMut(char) -> bool) -> &'t str {
        let (taken, rest) = self.rest.split_at(self.rest.find(ends).unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn field(&mut self) {
        let mut is_escaped = false;
        let name = self.take(|it| {
            let ends = !is_escaped && is_terminator(it);
            is_escaped = !is_escaped && it == '\\';
            ends
        });
        self.steps.push(match name {
            "*" => Step::Wildcard,
            _ => Step::Field(name.replace('\\', "")),
        });
    }

    fn word(&mut self) {
        let word = self.take(is_terminator);
        self.steps.push(match word {
            "true" => Step::Literal(Value::Bool(true)),
            "false" => Step::Literal(Value::Bool(false)),
            _ => Step::Word,
        });
    }

    fn number(&mut self) -> Result<(), InvalidPath> {
        let mut is_first = true;
        let text = self.take(|it| {
            let continues = it == '.' || it.is_numeric() || is_first && matches!(it, '+' | '-');
            is_first = false;
            !continues
        });
        let number = match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(integer), _) => Value::from(integer),
            (Err(_), Ok(number)) => Value::from(number),
            (Err(_), Err(_)) => return Err(InvalidPath),
        };
        self.steps.push(Step::Literal(number));
        Ok(())
    }

    /// A text up to the closing quote.
    fn quoted(&mut self, quote: char) -> Result<(), InvalidPath> {
        let mut before = quote;
        let end = self.rest.find(|it| {
            let ends = it == '\n' || it == quote && before != '\\';
            before = it;
            ends
        });
        let (text, rest) = self.rest.split_at(end.ok_or(InvalidPath)?);
        self.rest = rest.strip_prefix(quote).ok_or(InvalidPath)?;
        self.steps.push(Step::Literal(Value::from(unescaped(text, quote)?)));
        Ok(())
    }

    /// What is in brackets: an index, a slice, a key in single quotes, or several of these.
    fn brackets(&mut self, inside: &str) -> Result<(), InvalidPath> {
        if inside.contains('\n') {
            return Err(InvalidPath);
        }
        if inside.contains(',') {
            let paths = inside.split(',').map(|it| steps(&format!("[{}]", it.trim_matches(' '))));
            self.steps.push(Step::Union(paths.collect::<Result<_, _>>()?));
            return Ok(());
        }
        let key = inside.strip_prefix('\'').and_then(|it| it.strip_suffix('\''));
        if let Some(key) = key.filter(|it| !it.contains('\'')) {
            // Dots within separate keys.
            self.steps.extend(steps(&format!(".{key}"))?);
            return Ok(());
        }
        self.steps.push(Step::Slice(slice(if inside == "*" { ":" } else { inside })?));
        Ok(())
    }

    /// A filter up to its closing parenthesis and bracket.
    fn filter(&mut self) -> Result<(), InvalidPath> {
        let (mut quote, mut is_closed, mut before) = (None, false, '(');
        let end = self.rest.find(|it| {
            match (it, quote) {
                ('"' | '\'', None) => quote = Some(it),
                (_, Some(quote)) if it == quote && before != '\\' => is_closed = true,
                _ => {}
            }
            before = it;
            it == '\n' || it == ')' && quote.is_some() == is_closed
        });
        let (text, rest) = self.rest.split_at(end.ok_or(InvalidPath)?);
        self.rest = rest.strip_prefix(")]").ok_or(InvalidPath)?;
        let filter = match comparison(text) {
            Some((left, operator, right)) => Filter {
                left: steps(left)?,
                comparison: Some((Operator::of(operator), steps(right)?)),
            },
            None => Filter { left: steps(text)?, comparison: None },
        };
        self.steps.push(Step::Filter(filter));
        Ok(())
    }
}

impl Operator {
    fn of(text: &str) -> Self {
        match text {
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            "==" => Self::Equal,
            "!=" => Self::NotEqual,
            ">=" => Self::GreaterOrEqual,
            ">" => Self::Greater,
            _ => Self::Unknown,
        }
    }
}

/// Splits at the first operator that has something on both sides.
fn comparison(text: &str) -> Option<(&str, &str, &str)> {
    let is_operator = |it: char| matches!(it, '!' | '<' | '>' | '=');
    let start = text.find(is_operator).filter(|it| *it > 0)?;
    let length = text[start..].find(|it| !is_operator(it)).unwrap_or(text.len() - start - 1);
    let (operator, right) = text[start..].split_at(length);
    (!operator.is_empty()).then_some((&text[..start], operator, right))
}

/// `start:end:step`, each of which may be missing.
fn slice(text: &str) -> Result<Slice, InvalidPath> {
    let mut parts = text.split(':');
    let mut part = || match parts.next() {
        None => Ok(None),
        Some("") => Ok(Some(None)),
        Some(text) if text.starts_with('+') => Err(InvalidPath),
        Some(text) => text.parse::<i64>().map(|it| Some(Some(it))).map_err(|_| InvalidPath),
    };
    let start = part()?.flatten();
    let end = match part()? {
        None => End::AfterStart(start.unwrap_or(0).saturating_add(1)),
        Some(None) => End::Last,
        Some(Some(end)) => End::At(end),
    };
    let step = part()?.flatten();
    if parts.next().is_some() {
        return Err(InvalidPath);
    }
    Ok(Slice { start, end, step })
}

/// A quoted text, with Go's escapes replaced.
fn unescaped(text: &str, quote: char) -> Result<String, InvalidPath> {
    let mut unescaped = String::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            unescaped.push(character);
            continue;
        }
        let escape = rest.next().ok_or(InvalidPath)?;
        let mut code = |digits: usize, radix: u32, first: Option<char>| {
            let text: String = first.into_iter().chain(rest.by_ref()).take(digits).collect();
            let is_whole = text.len() == digits && !text.starts_with('+');
            let code = u32::from_str_radix(&text, radix).ok();
            code.filter(|_| is_whole).and_then(char::from_u32)
        };
        let character = match escape {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' => '\\',
            _ if escape == quote => quote,
            // Bytes above these are halves of characters.
            'x' => code(2, 16, None).filter(char::is_ascii).ok_or(InvalidPath)?,
            '0'..='7' => code(3, 8, Some(escape)).filter(char::is_ascii).ok_or(InvalidPath)?,
            'u' => code(4, 16, None).ok_or(InvalidPath)?,
            'U' => code(8, 16, None).ok_or(InvalidPath)?,
            _ => return Err(InvalidPath),
        };
        unescaped.push(character);
    }
    Ok(unescaped)
}

/// Whether a character ends a name.
fn is_terminator(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn is_alphanumeric(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}
