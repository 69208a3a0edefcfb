//! `kubectl informer`: watch, get and serve Kubernetes objects from a shared informer's cache.
//!
//! ```text
//! kubectl informer demo --for 20s               # needs no cluster
//! kubectl informer watch pods,deploy -A         # a line for each add, update and delete
//! kubectl informer get pods -l app=web -o wide  # as kubectl prints it
//! kubectl informer serve                        # then: curl -g '127.0.0.1:8888/deploy?labels[app]=web'
//! ```
//!
//! The flags are those of kubectl: `--kubeconfig`, `--context`, `-n`, `-A`, `-l`,
//! `--field-selector`, `-o`, `--as` and so on; resources are named as kubectl takes them,
//! `RESOURCE[.VERSION][.GROUP]`, plural, singular, short name or kind.
//!
//! # Lines of `watch`
//! Each line starts with `add`, `update` or `delete`, then `namespace/name` (the name alone for
//! resources without namespaces). What follows depends on the format:
//!
//! | `-o` | |
//! |---|---|
//! | | the resource if there are several, then marks: `(initial)` for what was there when the watch began, `(resync)` for what is only shown again, `(final state unknown)` for a delete that was found out later |
//! | `wide` | the resource, version, age, UID, labels, and the paths of the fields that an update changed; then the marks |
//! | `name` | nothing: two words per line |
//! | `diff` | the time stands before it; then the resource and the marks, and below it a line for each changed field, old value and new; of an update of noise only, how many fields that are. See [`informer::diff`] |
//! | `json` | a JSON object per line instead: `type`, `resource`, `initial`, `resync`, `object`, and `old` for a change; instead of an object that cannot be read there is `null`, and an `error` |
//!
//! The lines go to stdout. What becomes of the connection goes to stderr, a line for each change:
//! the cause of a failure and when it is tried again, and that it watches again.
//!
//! # As a library
//! [`run`] is the whole program with its outputs as arguments. What `serve` serves is the library
//! `informer-serve`, [`table`] prints objects as kubectl does, [`connect`] reads kubeconfigs
//! and the usual flags.

#![forbid(unsafe_code)]

mod args;
mod bind;
mod completion;
mod config;
pub mod connect;
mod demo;
mod get;
mod io;
mod line;
mod man_pages;
mod object;
mod progress;
mod refused;
mod resolve;
mod serve;
pub mod table;
mod version;
mod watch;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use tracing_subscriber::EnvFilter;

pub use args::{
    Args, Command, CompletionArgs, DemoArgs, GetArgs, GetOutput, SelectionArgs, ServeArgs,
    WatchArgs, WatchOutput,
};
pub use config::{ArgsError, ConfigError};
pub use io::{Io, Output};

/// How long callbacks and connections may take to end.
const EXIT_DEADLINE: Duration = Duration::from_secs(2);

/// Does what `args` say, until it is done or `io.stop` is cancelled. That somebody closed the
/// output, as `| head` does, is a good end too.
///
/// # Errors
/// Messages for the user, which say what to do.
///
/// # Cancel safety
/// Dropping the future stops everything; nothing is written to any cluster.
pub async fn run(args: &Args, io: &Io) -> anyhow::Result<()> {
    let result = match &args.command {
        Command::Demo(demo) => demo::demo(demo, io).await,
        Command::Watch(watch) => watch::watch(watch, &args.connection, io).await,
        Command::Get(get) => get::get(get, &args.connection, io).await,
        Command::Serve(serve) => serve::serve(serve, &args.connection, io).await,
        Command::Completion(it) => Ok(io.print(completion::script(it.shell)).await?),
    };
    match result {
        Err(error) if io::is_broken_pipe(&error) => Ok(()),
        result => result,
    }
}

/// The whole program: arguments, log, signals, [`run`], and the exit code.
#[must_use]
pub fn main() -> ExitCode {
    let line: Vec<_> = std::env::args_os().collect();
    if let Some(code) = unlisted(&line) {
        return code;
    }
    let args = match Args::of_command_line(line) {
        Ok(args) => args,
        Err(ArgsError::CommandLine(error)) => error.exit(),
        Err(ArgsError::Config(error)) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    log_to_stderr(args.verbose);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(async {
        let io = Io::of_process();
        io.stop_on_signals();
        run(&args, &io).await
    });
    // A write to a terminal that nobody reads may never return.
    runtime.shutdown_timeout(EXIT_DEADLINE);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What programs ask for, and no help or completion lists.
fn unlisted(line: &[OsString]) -> Option<ExitCode> {
    let done = match completion::answer(line) {
        Some(answer) => std::io::stdout().write_all(answer.as_bytes()),
        None => man_pages::write_if_asked(line)?,
    };
    Some(done.map_or_else(
        |error| {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    ))
}

fn log_to_stderr(verbose: u8) {
    let default = match verbose {
        // What becomes of the connection is told in lines of their own.
        // `informer` stands for the names that begin so, too.
        0 => "warn,informer=error,informer_serve=warn,kube_client=off",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    // Fails if the program that embeds this has a log of its own, which is fine.
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let _ = log.with_ansi(std::io::stderr().is_terminal()).try_init();
}

#[cfg(test)]
mod tests;
