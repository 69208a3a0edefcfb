//! The configuration file of `serve`: its flags, by their names.
//!
//! A field is a flag in camelCase, and its value is checked as that of the flag is. Flags on the
//! command line win over the file.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_saphyr::Spanned;

use crate::args::Args;

/// The version of the format.
pub(crate) const API_VERSION: &str = "serve.informer/v1alpha1";
pub(crate) const KIND: &str = "ServeConfiguration";
/// Flags that a file cannot have: those about files and help, and a token, which is a secret.
const NOT_IN_FILES: [&str; 6] = ["config", "check", "help", "version", "verbose", "token"];
/// How alike a field's name must be to be suggested.
const ALIKE: f64 = 0.8;

/// What is wrong with a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {message}", file.display(), line.map(|it| format!(":{it}")).unwrap_or_default())]
pub struct ConfigError {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1 on, if it is known.
    pub line: Option<u64>,
    /// What is wrong, and what is expected.
    pub message: String,
}

/// Why there are no arguments.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArgsError {
    /// The command line is wrong, or asks for help.
    #[error(transparent)]
    CommandLine(#[from] clap::Error),
    /// The configuration file is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl Args {
    /// The arguments of a command line, the program's name first, and of the configuration file
    /// that it names.
    ///
    /// # Errors
    /// [`ArgsError`], which names the flag, or the field and its line.
    pub fn of_command_line(line: impl IntoIterator<Item = OsString>) -> Result<Self, ArgsError> {
        let mut line: Vec<OsString> = line.into_iter().collect();
        let matches = Self::command().try_get_matches_from(&line)?;
        let Some(("serve", serve)) = matches.subcommand() else {
            return Ok(Self::from_arg_matches(&matches)?);
        };
        let Some(file) = serve.get_one::<PathBuf>("config") else {
            return Ok(Self::from_arg_matches(&matches)?);
        };
        let wrong = |line, message| ConfigError { file: file.clone(), line, message };
        let text = std::fs::read_to_string(file)
            .map_err(|error| wrong(None, format!("cannot be read: {error}")))?;
        line.extend(flags(file, &text, serve)?);
        let matches = Self::command().try_get_matches_from(line);
        // Each flag is right, so two of them do not fit together.
        let together = |error: clap::Error| {
            let text = error.to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            let text = text.split("\n\nUsage").next().unwrap_or(text);
            let words: Vec<_> = text.split_whitespace().collect();
            wrong(None, words.join(" "))
        };
        let matches = matches.map_err(together)?;
        Ok(Self::from_arg_matches(&matches).map_err(together)?)
    }
}

/// The flags of a configuration file that the command line does not have.
fn flags(file: &Path, text: &str, given: &ArgMatches) -> Result<Vec<OsString>, ConfigError> {
    let wrong =
        |line: Option<u64>, message: String| ConfigError { file: file.to_owned(), line, message };
    let Fields(fields) = serde_saphyr::from_str(text).map_err(|error| {
        let line = error.location().map(|it| it.line());
        wrong(line, words_of(&error.to_string()))
    })?;
    let command = command();
    let known: Vec<(String, &Arg)> = args(&command).map(|it| (field_name(it), it)).collect();
    let mut seen: Vec<&str> = Vec::new();
    let mut flags = Vec::new();
    for (name, spanned) in &fields {
        let (line, value) = (Some(spanned.defined.line()), &spanned.value);
        if seen.contains(&&**name) {
            return Err(wrong(line, format!("the field {name:?} is there twice")));
        }
        seen.push(name);
        let expected = match &**name {
            "apiVersion" => Some(API_VERSION),
            "kind" => Some(KIND),
            _ => None,
        };
        if let Some(expected) = expected {
            if value != expected {
                return Err(wrong(line, format!("{name}: expected {expected}, found {value}")));
            }
            continue;
        }
        let Some((_, arg)) = known.iter().find(|(it, _)| it == name) else {
            let names = known.iter().map(|(it, _)| &**it).chain(["apiVersion", "kind"]);
            return Err(wrong(line, unknown(name, names)));
        };
        let told = told(arg, value).map_err(|it| wrong(line, format!("{name}: {it}")))?;
        for flag in &told {
            check(arg, flag).map_err(|it| wrong(line, format!("{name}: {it}, found {value}")))?;
        }
        if given.value_source(arg.get_id().as_str()) != Some(ValueSource::CommandLine) {
            flags.extend(told.into_iter().map(OsString::from));
        }
    }
    for (name, value) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        if !seen.contains(&name) {
            return Err(wrong(None, format!("the field {name} is missing; expected {value}")));
        }
    }
    Ok(flags)
}

/// A parser's message without the place, which is told apart, and its advice to programmers.
fn words_of(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    let words = first.strip_prefix("error: ").unwrap_or(first);
    let words = match words.split_once(": ") {
        Some((place, words)) if place.starts_with("line ") => words,
        _ => words,
    };
    words.split(", set ").next().unwrap_or(words).to_owned()
}

/// `serve` with the flags that all commands have.
fn command() -> Command {
    let mut all = Args::command();
    all.build();
    let serve = all.find_subcommand("serve").cloned();
    serve.unwrap_or(all)
}

/// The flags that a file can have.
fn args(command: &Command) -> impl Iterator<Item = &Arg> {
    let flags = command.get_arguments().filter(|it| it.get_long().is_some());
    flags.filter(|it| !NOT_IN_FILES.contains(&it.get_long().unwrap_or_default()))
}

/// The name of a flag in files: `maxConnections` for `--max-connections`.
fn field_name(arg: &Arg) -> String {
    let mut name = String::new();
    for (at, word) in arg.get_long().unwrap_or_default().split('-').enumerate() {
        match word.split_at_checked(1) {
            Some((first, rest)) if at > 0 => {
                name.push_str(&first.to_ascii_uppercase());
                name.push_str(rest);
            }
            _ => name.push_str(word),
        }
    }
    name
}

/// The flags that say a value.
fn told(arg: &Arg, value: &Value) -> Result<Vec<String>, String> {
    let long = arg.get_long().unwrap_or_default();
    let flag = |value: &str| format!("--{long}={value}");
    let scalar = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let unexpected = || Err(format!("expected {}, found {}", expected(arg), kind_of(value)));
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        return match value {
            Value::Bool(true) => Ok(vec![format!("--{long}")]),
            Value::Bool(false) => Ok(Vec::new()),
            _ => unexpected(),
        };
    }
    match (is_list(arg), value) {
        (true, Value::Array(items)) => {
            let items: Option<Vec<String>> = items.iter().map(scalar).collect();
            match items {
                Some(items) if items.iter().any(|it| it.contains(',') || it.is_empty()) => {
                    Err("expected one name in each item".to_owned())
                }
                Some(items) => Ok(items.iter().map(|it| flag(it)).collect()),
                None => unexpected(),
            }
        }
        _ => match scalar(value) {
            Some(text) => Ok(vec![flag(&text)]),
            None => unexpected(),
        },
    }
}

/// Checks a value as on the command line.
fn check(arg: &Arg, flag: &str) -> Result<(), String> {
    let parsed = Args::command().try_get_matches_from(["kubectl-informer", "serve", flag]);
    let Err(error) = parsed else { return Ok(()) };
    match error.kind() {
        // That depends on the other fields.
        ErrorKind::MissingRequiredArgument => Ok(()),
        ErrorKind::ValueValidation if !is_count(arg) => {
            Err(std::error::Error::source(&error)
                .map_or_else(|| expected(arg), |it| it.to_string()))
        }
        _ => Err(format!("expected {}", expected(arg))),
    }
}

/// What a field is, in words.
fn expected(arg: &Arg) -> String {
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        return "true or false".to_owned();
    }
    let choices = arg.get_possible_values();
    if !choices.is_empty() {
        let names: Vec<_> = choices.iter().map(|it| it.get_name()).collect();
        return names.join(" or ");
    }
    let name = arg.get_value_names().and_then(<[_]>::first).map_or("", |it| it.as_str());
    let one = match name {
        "COUNT" => "a number",
        "DURATION" => "a duration such as 30s or 1m30s",
        "BYTES" => "a size such as 512Mi or 2Gi",
        "ADDRESS" => "an address such as 127.0.0.1:8888",
        "FILE" => "the path of a file",
        "URL" => "a URL",
        _ => "a text",
    };
    if is_list(arg) { "a list of names".to_owned() } else { one.to_owned() }
}

fn is_count(arg: &Arg) -> bool {
    arg.get_value_names().is_some_and(|it| it.iter().any(|it| *it == "COUNT"))
}

fn is_list(arg: &Arg) -> bool {
    arg.get_value_delimiter().is_some() || matches!(arg.get_action(), ArgAction::Append)
}

fn kind_of(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    if NOT_IN_FILES.contains(&name) {
        return format!("the field {name:?} is not possible in a file; say it on the command line");
    }
    let alike = |it: &str| strsim::jaro_winkler(&name.to_lowercase(), &it.to_lowercase());
    let nearest = known.map(|it| (alike(it), it)).max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest.filter(|(alike, _)| *alike >= ALIKE) {
        Some((_, nearest)) => format!("unknown field {name:?}; the nearest is {nearest:?}"),
        None => format!("unknown field {name:?}; the fields are the flags of serve in camelCase"),
    }
}

/// The fields of a file with the lines of their values.
struct Fields(Vec<(String, Spanned<Value>)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfMap;
        impl<'de> Visitor<'de> for OfMap {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of fields")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
                let mut fields = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    fields.push(entry);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(OfMap)
    }
}

#[cfg(test)]
mod tests;
