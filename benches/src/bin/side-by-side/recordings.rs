//! What the server says, recorded to be replayed.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use futures_util::StreamExt;
use http::Request;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};
use http_body_util::BodyExt;
use informer_benches::figures::{Initial, Wire};
use kube::client::Body;
use tempfile::TempDir;

/// What the bookmark says that ends the initial events of a watch. Nothing follows it.
const END: &[u8] = b"k8s.io/initial-events-end";

/// Enough for that bookmark.
const TAIL: usize = 1024;

/// Made when they are first asked for, and removed with this value.
pub(crate) struct Recordings {
    folder: TempDir,
    client: kube::Client,
}

impl Recordings {
    pub(crate) fn new(client: kube::Client) -> Result<Self> {
        Ok(Self {
            folder: tempfile::Builder::new().prefix("informer-side-by-side").tempdir()?,
            client,
        })
    }

    /// The path of a recording: a line with the content type, then the body.
    pub(crate) async fn of(&self, initial: Initial, wire: Wire) -> Result<PathBuf> {
        let path = self.folder.path().join(format!("{}-{}", initial.name(), wire.name()));
        if !path.exists() {
            let (content_type, body) = self.fetch(initial, wire).await?;
            let mut file = BufWriter::new(std::fs::File::create(&path)?);
            writeln!(file, "{content_type}")?;
            file.write_all(&body)?;
            file.flush()?;
        }
        Ok(path)
    }

    async fn fetch(&self, initial: Initial, wire: Wire) -> Result<(String, Vec<u8>)> {
        let query = match initial {
            Initial::List => "resourceVersion=0",
            Initial::WatchList => {
                "watch=true&allowWatchBookmarks=true&sendInitialEvents=true\
                 &resourceVersionMatch=NotOlderThan&timeoutSeconds=300"
            }
        };
        let accept = match wire {
            Wire::Json => "application/json",
            Wire::Protobuf => "application/vnd.kubernetes.protobuf",
        };
        let request = Request::get(format!("/api/v1/pods?{query}"))
            .header(ACCEPT, accept)
            .header(ACCEPT_ENCODING, "identity")
            .body(Body::empty())?;
        let response = self.client.send(request).await?;
        ensure!(response.status().is_success(), "the server answers {}", response.status());
        let content_type = response.headers().get(CONTENT_TYPE).context("no content type")?;
        let content_type = content_type.to_str()?.to_owned();
        let (mut chunks, mut body) = (response.into_body().into_data_stream(), Vec::new());
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk?);
            let tail = &body[body.len().saturating_sub(TAIL)..];
            if initial == Initial::WatchList && tail.windows(END.len()).any(|window| window == END)
            {
                break;
            }
        }
        Ok((content_type, body))
    }
}
