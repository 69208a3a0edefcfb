//! Our side: one informer, or a drain, in a process of its own.

mod events;
mod fetch;
mod recording;
mod sync;
mod target;
mod ten_fields;

use anyhow::Result;
use clap::{Args, Subcommand};

pub use self::events::{Events, EventsDrain};
pub use self::fetch::{Fetch, Fetched};
pub use self::target::Target;
use crate::figures::{Figures, Initial, Kept, Phase, Wire};
use crate::meter::{Meter, print};

/// What a client's process does.
#[derive(Debug, Subcommand)]
pub enum Client {
    /// Be the process of one informer
    #[command(hide = true)]
    Sync(Sync),
    /// Receive what an informer would, and throw it away
    #[command(hide = true)]
    Drain(Drain),
    /// Be the process of one informer whose objects change
    #[command(hide = true)]
    Events(Events),
    /// Receive what such an informer would, and throw it away
    #[command(hide = true)]
    EventsDrain(EventsDrain),
}

/// An informer of Pods.
#[derive(Debug, Args)]
pub struct Sync {
    kept: Kept,
    initial: Initial,
    /// A URL, the path of a kubeconfig, or `recording:` and the path of one
    target: Target,
    /// Count the heap
    #[arg(long)]
    counted: bool,
    /// Go on until a relist, which somebody else must force
    #[arg(long)]
    relist: bool,
    /// In this format only, instead of as informers ask for it
    #[arg(long)]
    wire: Option<Wire>,
    /// Then write each object as JSON, and decode each; lazy only
    #[arg(long)]
    access: bool,
}

/// A drain of Pods.
#[derive(Debug, Args)]
pub struct Drain {
    #[command(flatten)]
    fetch: Fetch,
    /// A URL, the path of a kubeconfig, or `recording:` and the path of one
    target: Target,
}

impl Client {
    /// Does it, and prints the figures.
    ///
    /// # Errors
    /// If the server cannot be reached, or the informer does not sync.
    ///
    /// # Cancel safety
    /// Ends with it.
    pub async fn run(self) -> Result<()> {
        match self {
            Self::Sync(sync) => sync.run().await,
            // As tasks, which is what informers are: on the main thread, each piece of the body would wake another.
            Self::Drain(drain) => tokio::spawn(drain.run()).await?,
            Self::Events(events) => events.run().await,
            Self::EventsDrain(drain) => tokio::spawn(drain.run()).await?,
        }
    }
}

impl Drain {
    /// Throws everything away and prints the figures: what a client with this HTTP client cannot save.
    async fn run(self) -> Result<()> {
        let client = self.target.client().await?;
        let mut meter = Meter::start(false);
        let fetched = self.fetch.run(&client, |_| {}).await?;
        meter.stop();
        let figures = meter.finish(Phase::Drain, 0).await?;
        print(&Figures { bytes: Some(fetched.bytes), ..figures })
    }
}
