//! Where a client's bytes come from.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::memory;

/// A server, or what one has said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The URL of a server that wants neither TLS nor a token.
    Url(String),
    /// The path of a kubeconfig, whose current context is used.
    Kubeconfig(PathBuf),
    /// The path of a recorded answer, which is given to every list.
    Recording(PathBuf),
}

impl Target {
    /// Makes a client.
    ///
    /// # Errors
    /// If a file cannot be read, or says what kube does not understand.
    ///
    /// # Cancel safety
    /// Nothing happens but reading.
    pub async fn client(&self) -> Result<kube::Client> {
        match self {
            Self::Url(_) | Self::Kubeconfig(_) => Ok(kube::Client::try_from(self.config().await?)?),
            Self::Recording(path) => memory::recording(path),
        }
    }

    /// How a server is reached.
    ///
    /// # Errors
    /// If a file cannot be read, or says what kube does not understand; of a recording.
    ///
    /// # Cancel safety
    /// Nothing happens but reading.
    pub async fn config(&self) -> Result<kube::Config> {
        match self {
            Self::Url(url) => Ok(kube::Config::new(url.parse()?)),
            Self::Kubeconfig(path) => {
                let (kubeconfig, options) =
                    (Kubeconfig::read_from(path)?, KubeConfigOptions::default());
                Ok(kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?)
            }
            Self::Recording(path) => bail!("{} is no server", path.display()),
        }
    }

    /// As it is written on a command line.
    ///
    /// # Errors
    /// If a path is not UTF-8.
    pub fn argument(&self) -> Result<String> {
        let text = |path: &Path| path.to_str().map(str::to_owned).context("the path is not UTF-8");
        match self {
            Self::Url(url) => Ok(url.clone()),
            Self::Kubeconfig(path) => text(path),
            Self::Recording(path) => Ok(format!("recording:{}", text(path)?)),
        }
    }
}

impl FromStr for Target {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.strip_prefix("recording:") {
            Some(path) => Self::Recording(path.into()),
            None if text.starts_with("http://") => Self::Url(text.to_owned()),
            None => Self::Kubeconfig(text.into()),
        })
    }
}
