//! Completion of command lines in shells: scripts for `kubectl-informer`, answers for
//! `kubectl informer`.

use std::ffi::OsString;
use std::fmt::Write;

use clap::CommandFactory;
use clap_complete::{Shell, engine};

use crate::args::Args;

/// The executable's name, which a shell completes the arguments of.
const PROGRAM: &str = "kubectl-informer";
/// What kubectl calls its plugins' completion with.
const ASKED: &str = "__complete";
/// Directives of cobra, which kubectl is made with: no space behind the word, no names of files.
const NO_SPACE: u8 = 2;
const NO_FILES: u8 = 4;

/// A shell's completion script for the executable `kubectl-informer`.
pub(crate) fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), PROGRAM, &mut script);
    // clap_complete 4.6.11 spells the hyphen of the program's name in two ways for bash, which then
    // completes no command's arguments.
    String::from_utf8_lossy(&script).replace("kubectl__subcmd__informer", "kubectl__informer")
}

/// The answer to kubectl, if it asks for completions: the executable `kubectl_complete-informer`
/// passes on the words of the command line, after [`ASKED`].
///
/// It is one candidate per line, with its description behind a tab, then a directive.
pub(crate) fn answer(line: &[OsString]) -> Option<String> {
    let (program, rest) = line.split_first()?;
    let (_, words) = rest.split_first().filter(|(first, _)| *first == ASKED)?;
    let mut words: Vec<OsString> = std::iter::once(program).chain(words).cloned().collect();
    if words.len() == 1 {
        words.push(OsString::new());
    }
    let last = words.len() - 1;
    let folder = std::env::current_dir().ok();
    let found = engine::complete(&mut Args::command(), words, last, folder.as_deref());

    let (mut answer, mut directive) = (String::new(), NO_FILES);
    for candidate in found.unwrap_or_default() {
        let value = candidate.get_value().to_string_lossy();
        if value.ends_with(['/', '=']) {
            directive |= NO_SPACE;
        }
        answer.push_str(&value);
        let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
        if let Some(description) = help.lines().next() {
            let _ = write!(answer, "\t{description}");
        }
        answer.push('\n');
    }
    let _ = writeln!(answer, ":{directive}");
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(words: &[&str]) -> String {
        let line = ["kubectl-informer", ASKED].iter().chain(words).map(OsString::from);
        answer(&line.collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn kubectl_is_told_commands_flags_and_values() {
        let commands = answered(&[""]);
        for name in ["watch", "get", "serve", "demo", "completion"] {
            assert!(commands.contains(&format!("\n{name}\t")) || commands.starts_with(name));
        }
        assert!(!commands.contains("__"), "{commands}");
        assert!(commands.ends_with("\n:4\n"));
        assert!(answered(&["-n", "web", "serve", "--max-ch"]).starts_with("--max-changes\tHow"));
        let formats = answered(&["get", "pods", "-o", ""]);
        assert!(formats.starts_with("wide\t") && formats.contains("\nyaml\t"), "{formats}");
        assert_eq!(answered(&["get", "pods", "-o", "no-such"]), ":4\n");
    }

    #[test]
    fn nothing_to_complete_is_taken_as_an_empty_word() {
        assert_eq!(answered(&[]), answered(&[""]));
    }

    #[test]
    fn files_are_completed_and_folders_go_on() {
        let folder = tempfile::TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        let begun = folder.path().join("fo");
        let answer = answered(&["serve", "--config", begun.to_str().unwrap()]);
        assert_eq!(answer, format!("{}lder/\n:6\n", begun.display()));
    }

    #[test]
    fn only_kubectls_question_is_answered() {
        for line in [&["kubectl-informer"][..], &["kubectl-informer", "get"], &[]] {
            assert_eq!(answer(&line.iter().map(OsString::from).collect::<Vec<_>>()), None);
        }
    }

    #[test]
    fn the_script_for_bash_knows_what_to_offer_for_each_command() {
        let script = script(Shell::Bash);
        let commands: Vec<_> =
            script.lines().filter_map(|it| it.trim().strip_prefix("cmd=\"kubectl")).collect();
        assert!(commands.len() > 5, "{commands:?}");
        for command in commands {
            let case = format!("kubectl{})", command.trim_end_matches('"'));
            assert!(script.lines().any(|it| it.trim() == case), "{case}");
        }
    }

    #[test]
    fn every_shell_has_a_script() {
        for shell in [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh] {
            let script = script(shell);
            assert!(script.contains("kubectl-informer") && script.contains("max-changes"));
        }
    }
}
