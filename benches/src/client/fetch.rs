//! What an informer asks for, asked for without one.

use anyhow::{Result, bail, ensure};
use bytes::Bytes;
use clap::Args;
use futures_util::StreamExt;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};
use http::{Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use memchr::memmem;

use crate::figures::{Initial, Wire};

/// What the bookmark says that ends the initial events of a watch.
pub(super) const END: &[u8] = b"k8s.io/initial-events-end";

/// How a watch is asked for that begins with the objects that there are.
pub(super) const INITIAL_EVENTS: &str = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true\
                     &resourceVersionMatch=NotOlderThan&timeoutSeconds=300";

/// The last bytes of a body, enough for that bookmark.
const TAIL: usize = 1024;

/// All Pods, as they come.
#[derive(Debug, Clone, Args)]
pub struct Fetch {
    /// How they come
    pub initial: Initial,
    /// In which format
    pub wire: Wire,
    /// Ask for metadata only
    #[arg(long)]
    pub metadata: bool,
    /// Ask for pages of so many objects
    #[arg(long)]
    pub page_size: Option<usize>,
}

/// What has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Of all bodies.
    pub bytes: u64,
    /// Of the last one.
    pub content_type: String,
}

impl Fetch {
    /// Gives each chunk of the bodies to `each`, up to the end of the list.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses.
    ///
    /// # Cancel safety
    /// Gives up the request.
    pub async fn run(&self, client: &kube::Client, mut each: impl FnMut(&Bytes)) -> Result<Fetched> {
        match (self.initial, self.page_size) {
            (Initial::WatchList, _) => self.watch(client, &mut each).await,
            (Initial::List, None) => Ok(self.list(client, "resourceVersion=0", &mut each).await?.0),
            (Initial::List, Some(size)) => self.pages(client, size, &mut each).await,
        }
    }

    async fn watch(&self, client: &kube::Client, each: &mut impl FnMut(&Bytes)) -> Result<Fetched> {
        let response = self.send(client, INITIAL_EVENTS).await?;
        let mut fetched = Fetched { bytes: 0, content_type: content_type(&response) };
        let (mut body, mut tail) = (response.into_body().into_data_stream(), Vec::new());
        let end = memmem::Finder::new(END);
        while let Some(chunk) = body.next().await {
            let chunk = chunk?;
            fetched.bytes += chunk.len() as u64;
            each(&chunk);
            keep_tail(&mut tail, &chunk);
            // Nothing follows the bookmark, so it is at the end of what has arrived.
            if end.find(&tail).is_some() {
                return Ok(fetched);
            }
        }
        bail!("the watch ended before its bookmark")
    }

    async fn pages(
        &self,
        client: &kube::Client,
        size: usize,
        each: &mut impl FnMut(&Bytes),
    ) -> Result<Fetched> {
        ensure!(self.wire == Wire::Json, "the token for the next page is found in JSON only");
        let (mut bytes, mut token) = (0, String::new());
        loop {
            let next = if token.is_empty() { String::new() } else { format!("&continue={token}") };
            let (page, begin) = self.list(client, &format!("limit={size}{next}"), each).await?;
            bytes += page.bytes;
            match continue_token(&begin) {
                Some(next) => token = next,
                None => return Ok(Fetched { bytes, ..page }),
            }
        }
    }

    /// What has come, and how it begins.
    async fn list(
        &self,
        client: &kube::Client,
        query: &str,
        each: &mut impl FnMut(&Bytes),
    ) -> Result<(Fetched, Vec<u8>)> {
        let response = self.send(client, query).await?;
        let mut fetched = Fetched { bytes: 0, content_type: content_type(&response) };
        let (mut body, mut begin) = (response.into_body().into_data_stream(), Vec::new());
        while let Some(chunk) = body.next().await {
            let chunk = chunk?;
            fetched.bytes += chunk.len() as u64;
            each(&chunk);
            if begin.len() < TAIL {
                begin.extend_from_slice(&chunk[..chunk.len().min(TAIL)]);
            }
        }
        Ok((fetched, begin))
    }

    pub(super) async fn send(&self, client: &kube::Client, query: &str) -> Result<Response<Body>> {
        let request = Request::get(format!("/api/v1/pods?{query}"))
            .header(ACCEPT, self.accept())
            .header(ACCEPT_ENCODING, "identity")
            .body(Body::empty())?;
        let response = client.send(request).await?;
        ensure!(response.status().is_success(), "the server answers {}", response.status());
        Ok(response)
    }

    fn accept(&self) -> String {
        let wire = match self.wire {
            Wire::Json => "application/json",
            Wire::Protobuf => "application/vnd.kubernetes.protobuf",
        };
        let list = if self.initial == Initial::List { "List" } else { "" };
        match self.metadata {
            true => format!("{wire};as=PartialObjectMetadata{list};g=meta.k8s.io;v=v1"),
            false => wire.to_owned(),
        }
    }
}

fn content_type(response: &Response<Body>) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

pub(super) fn keep_tail(tail: &mut Vec<u8>, chunk: &[u8]) {
    tail.extend_from_slice(&chunk[chunk.len().saturating_sub(TAIL)..]);
    tail.drain(..tail.len().saturating_sub(TAIL));
}

/// A list's metadata come first, and in them the token for the next page.
fn continue_token(begin: &[u8]) -> Option<String> {
    let metadata = String::from_utf8_lossy(&begin[..begin.len().min(TAIL)]);
    let (metadata, _) = metadata.split_once("\"items\"")?;
    let (_, token) = metadata.split_once("\"continue\":\"")?;
    Some(token.split_once('"')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_across_chunks() {
        let mut tail = Vec::new();
        keep_tail(&mut tail, &[b'x'; 3 * TAIL]);
        keep_tail(&mut tail, &END[..9]);
        assert_eq!(memmem::find(&tail, END), None);
        keep_tail(&mut tail, &END[9..]);
        assert!(memmem::find(&tail, END).is_some());
        assert_eq!(tail.len(), TAIL);
    }

    #[test]
    fn tokens_are_those_of_the_list() {
        let page = br#"{"kind":"PodList","metadata":{"resourceVersion":"7","continue":"abc"},"items":[]}"#;
        assert_eq!(continue_token(page).as_deref(), Some("abc"));
        let last = br#"{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[{"continue":"abc"}]}"#;
        assert_eq!(continue_token(last), None);
    }
}
