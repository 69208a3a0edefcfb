//! The parts of `in-process`, and client-go's: a figure by its name in each round.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use crate::programs::Programs;

/// The figures of both, by their names.
#[derive(Default)]
pub(crate) struct Inside {
    pub(crate) ours: Figures,
    pub(crate) client_go: Figures,
}

/// What was measured, by rounds.
#[derive(Default)]
pub(crate) struct Figures(HashMap<String, Vec<Option<f64>>>);

pub(crate) async fn measure(rounds: usize, quick: bool, programs: &Programs) -> Result<Inside> {
    let mut inside = Inside::default();
    for round in 0..rounds {
        for part in ["by-label", "handlers", "relist"] {
            eprintln!("round {}/{rounds}: {part}", round + 1);
            inside.ours.run(&programs.in_process, &[part], quick).await?;
            inside.client_go.run(&programs.client_go, &["inside", part], quick).await?;
        }
    }
    Ok(inside)
}

impl Figures {
    /// In each round.
    pub(crate) fn of(&self, name: &str) -> Vec<Option<f64>> {
        self.0.get(name).cloned().unwrap_or_default()
    }

    /// Runs a part, which prints a name and a number on each line.
    async fn run(&mut self, program: &Path, arguments: &[&str], quick: bool) -> Result<()> {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .args(quick.then_some("--quick"))
            .stderr(std::process::Stdio::inherit());
        let done = command.output().await?;
        ensure!(done.status.success(), "{command:?} failed: {}", done.status);
        for line in String::from_utf8(done.stdout)?.lines() {
            let (name, value) =
                line.split_once(' ').with_context(|| format!("no figure: {line}"))?;
            self.0.entry(name.to_owned()).or_default().push(Some(value.parse()?));
        }
        Ok(())
    }
}
