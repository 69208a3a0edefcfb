//! Our side: one informer in a process of its own.

pub mod callers;
mod events;
pub mod memory;
pub mod read;
mod sync;
mod target;
pub mod watches;

use anyhow::Result;
use clap::Subcommand;

pub use self::callers::Callers;
pub use self::events::Events;
pub use self::read::Read;
pub use self::sync::Sync;
pub use self::target::Target;
pub use self::watches::Watches;

/// What a client's process does.
#[derive(Debug, Subcommand)]
pub enum Client {
    /// Be the process of one informer
    #[command(hide = true)]
    Sync(Sync),
    /// Be the process of one informer whose objects change
    #[command(hide = true)]
    Events(Events),
    /// Be the process that reads lists
    #[command(hide = true)]
    Read(Read),
    /// Be the process that keeps watches open
    #[command(hide = true)]
    Watches(Watches),
    /// Be the process of many callers
    #[command(hide = true)]
    Callers(Callers),
}

impl Client {
    /// Does it, and prints the figures.
    ///
    /// # Errors
    /// If the server cannot be reached, or the informer does not sync.
    ///
    /// # Cancel safety
    /// The informer stops when the future is dropped.
    pub async fn run(self) -> Result<()> {
        match self {
            Self::Sync(sync) => sync.run().await,
            Self::Events(events) => events.run().await,
            Self::Read(read) => read.run().await,
            Self::Watches(watches) => watches.run().await,
            Self::Callers(callers) => callers.run().await,
        }
    }
}
