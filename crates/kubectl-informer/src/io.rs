//! Where output goes and what ends the program: arguments of [`run`](crate::run), so that tests can
//! own them.

use std::fmt;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use clap::ColorChoice;
use console::Term;
use informer::diff::TextStyle;
use tokio_util::sync::CancellationToken;

use crate::connect::Environment;

/// Outputs, the end, and the environment of a run.
#[derive(Debug, Clone)]
pub struct Io {
    /// What was asked for.
    pub out: Output,
    /// What is said about it.
    pub err: Output,
    /// Whether `err` is a terminal, where progress can be shown.
    pub terminal: bool,
    /// Cancelled when the program shall end.
    pub stop: CancellationToken,
    /// Where kubeconfigs are looked for.
    pub environment: Environment,
}

/// Something to write to; clones write to the same.
#[derive(Clone)]
pub struct Output {
    writer: Arc<Mutex<Box<dyn Write + Send>>>,
    /// The terminal that it is, if it is one.
    screen: Option<Term>,
}

impl Io {
    /// Those of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self {
            out: Output::of_stdout(),
            err: Output::new(io::stderr()),
            terminal: io::stderr().is_terminal(),
            stop: CancellationToken::new(),
            environment: Environment::of_process(),
        }
    }

    /// Cancels `stop` at Ctrl-C or SIGTERM. A second Ctrl-C ends the process at once.
    pub(crate) fn stop_on_signals(&self) {
        let stop = self.stop.clone();
        tokio::spawn(async move {
            signalled().await;
            stop.cancel();
            signalled().await;
            std::process::exit(130);
        });
    }

    /// Writes to `out` without blocking the runtime; gives up when the program shall end, however
    /// slow the reader is.
    pub(crate) async fn print(&self, text: String) -> io::Result<()> {
        self.print_with(move |out| out.write(&text)).await
    }

    /// As [`print`](Self::print), for what `write` writes.
    pub(crate) async fn print_with(
        &self,
        write: impl FnOnce(&Output) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let out = self.out.clone();
        tokio::select! {
            written = tokio::task::spawn_blocking(move || write(&out)) => {
                // Not the text of a panic, which may quote what was to be written.
                written.unwrap_or_else(|_| Err(io::Error::other("writing was broken off")))
            }
            () = self.stop.cancelled() => Ok(()),
        }
    }

    /// Writes a line to `err`. That nobody reads it is no reason to stop.
    pub(crate) fn say(&self, line: impl fmt::Display) {
        let _ = self.err.write(&format!("{line}\n"));
    }

    /// Resolves when the program shall end, or after this time.
    pub(crate) async fn end(&self, after: Option<std::time::Duration>) {
        let timer = async {
            match after {
                Some(after) => tokio::time::sleep(after).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = timer => {}
        }
    }
}

impl Output {
    /// Writes to `writer`.
    #[must_use]
    pub fn new(writer: impl Write + Send + 'static) -> Self {
        Self { writer: Arc::new(Mutex::new(Box::new(writer))), screen: None }
    }

    fn of_stdout() -> Self {
        let screen = io::stdout().is_terminal().then(Term::stdout);
        Self { screen, ..Self::new(io::stdout()) }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.screen.is_some()
    }

    /// How changes look here: a terminal has a width, and colors unless `NO_COLOR` is set or it is
    /// a dumb one.
    pub(crate) fn style(&self, color: ColorChoice) -> TextStyle {
        let color = match color {
            ColorChoice::Auto => self.is_terminal() && wants_colors(),
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        };
        // Of a size that is not known, or none, there is nothing to fit.
        let size = self.screen.as_ref().and_then(Term::size_checked);
        let width = size.map(|(_, columns)| usize::from(columns)).filter(|it| *it > 0);
        TextStyle { color, width, indent: 0 }
    }

    /// Writes all of `text`, now.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, text: &str) -> io::Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.write_all(text.as_bytes())?;
        writer.flush()
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").finish_non_exhaustive()
    }
}

/// Whether an error is that the reader of the output has gone.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_it = |it: &io::Error| it.kind() == ErrorKind::BrokenPipe;
    error.chain().filter_map(|it| it.downcast_ref()).any(is_it)
}

fn wants_colors() -> bool {
    let is_refused = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    !is_refused && std::env::var_os("TERM").is_none_or(|it| it != "dumb")
}

async fn signalled() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
