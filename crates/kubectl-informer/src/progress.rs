//! What becomes of the connection: a bar during the first list, a line for each change.

use std::io;
use std::time::{Duration, Instant, SystemTime};

use futures_util::StreamExt;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use informer::{InformerState, Status, StatusStream};

use crate::io::Io;

const TICK: Duration = Duration::from_millis(120);

/// Shows progress on the terminal, if there is one, and changes of the connection on stderr.
#[derive(Clone)]
pub(crate) struct Progress {
    io: Io,
    bars: Option<MultiProgress>,
}

impl Progress {
    pub(crate) fn new(io: &Io) -> Self {
        let bars =
            io.terminal.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));
        Self { io: io.clone(), bars }
    }

    /// Follows one informer until it stops. `name` is what its lines start with.
    pub(crate) async fn follow(self, name: String, mut changes: StatusStream) {
        let mut bar = None;
        let mut tale = Tale::default();
        while let Some(status) = changes.next().await {
            if status.has_synced {
                bar = None;
            } else if status.state == InformerState::NotStarted {
                continue;
            } else if let (Some(bars), None) = (&self.bars, &bar) {
                bar = Some(Bar::new(bars));
            }
            if let Some(Bar(bar)) = &bar {
                bar.set_message(format!("{name}: {}", status.state));
            }
            if let Some(line) = tale.next(&status, tokio::time::Instant::now().into_std()) {
                self.say(&format!("{name}: {line}"));
            }
        }
    }

    /// Writes a line to stderr, above the bars.
    fn say(&self, line: &str) {
        match &self.bars {
            Some(bars) => bars.suspend(|| self.io.say(line)),
            None => self.io.say(line),
        }
    }

    /// Writes to the output without blocking the runtime, above the bars.
    ///
    /// Bars are drawn by a thread of their own, over what stands where the last ones stood; a
    /// write to the same terminal in between would be lost.
    pub(crate) async fn print(&self, text: String) -> io::Result<()> {
        match &self.bars {
            // No bar is drawn while the reader of a pipe is slow otherwise.
            Some(bars) if self.io.out.is_terminal() => {
                let bars = bars.clone();
                self.io.print_with(move |out| bars.suspend(|| out.write(&text))).await
            }
            Some(_) | None => self.io.print(text).await,
        }
    }
}

/// A line on the terminal that goes away when it is dropped.
struct Bar(ProgressBar);

impl Bar {
    fn new(bars: &MultiProgress) -> Self {
        let bar = bars.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        Self(bar)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Tells the changes that matter, each once.
#[derive(Default)]
struct Tale {
    /// Since when it does not work.
    trouble: Option<Instant>,
    told: Option<InformerState>,
}

impl Tale {
    fn next(&mut self, status: &Status, now: Instant) -> Option<String> {
        let seconds = |until: SystemTime| {
            format!(
                "{:.1}s",
                until.duration_since(SystemTime::now()).unwrap_or_default().as_secs_f32()
            )
        };
        let line = match &status.state {
            // It may be refused for good; whoever waits for the first list finds that out and ends.
            InformerState::BackingOff { attempt: 1, .. } if !status.has_synced => return None,
            InformerState::BackingOff { cause, attempt, until } => {
                format!("{cause}; trying again in {} (attempt {attempt})", seconds(*until))
            }
            InformerState::Unavailable { cause, until, .. } => {
                format!("waiting for the resource: {cause}; asking again in {}", seconds(*until))
            }
            InformerState::Degraded { cause, until } => {
                format!("degraded: {cause}; trying again in {}", seconds(*until))
            }
            InformerState::Watching { .. } => {
                self.told = None;
                let since = self.trouble.take()?;
                return Some(format!(
                    "watching again after {:.1}s",
                    now.duration_since(since).as_secs_f32()
                ));
            }
            _ => return None,
        };
        self.trouble.get_or_insert(now);
        // The status changes more often than the state.
        let is_new = self.told.as_ref() != Some(&status.state);
        self.told = Some(status.state.clone());
        is_new.then_some(line)
    }
}
