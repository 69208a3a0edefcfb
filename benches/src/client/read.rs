//! A reader of LISTs, which throws away what it reads.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use futures_util::StreamExt;
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body_util::BodyExt;
use kube::client::Body;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::Target;
use crate::meter::print;

/// LISTs of all Pods, one after the other, over one connection and without compression.
#[derive(Debug, Args)]
pub struct Read {
    form: Form,
    /// The value of `resourceVersion`
    version: String,
    /// How many there are
    times: usize,
    /// A URL or the path of a kubeconfig
    target: Target,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Form {
    /// The objects in JSON.
    Json,
    /// The objects in protobuf.
    Protobuf,
    /// What kubectl prints, in JSON.
    Table,
}

/// What was read, by requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answers {
    /// The length of each body.
    pub bytes: Vec<usize>,
    /// From sending the request to the first byte of the body, in microseconds.
    pub first_byte_us: Vec<u64>,
    /// From sending the request to the last byte, in microseconds.
    pub whole_us: Vec<u64>,
}

impl Read {
    /// Prints the figures of all requests.
    pub(super) async fn run(self) -> Result<()> {
        let client = self.target.client().await?;
        let mut answers =
            Answers { bytes: Vec::new(), first_byte_us: Vec::new(), whole_us: Vec::new() };
        for _ in 0..self.times {
            let began = Instant::now();
            let (mut first, mut bytes) = (None, 0);
            let mut body = ask(&client, self.form, &self.version).await?.into_data_stream();
            while let Some(chunk) = body.next().await {
                first.get_or_insert_with(|| began.elapsed());
                bytes += chunk?.len();
            }
            let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            answers.bytes.push(bytes);
            answers.first_byte_us.push(micros(first.context("the body is empty")?));
            answers.whole_us.push(micros(began.elapsed()));
        }
        print(&answers)
    }
}

impl Form {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Protobuf => "protobuf",
            Self::Table => "Table",
        }
    }

    fn accept(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
            Self::Table => "application/json;as=Table;v=v1;g=meta.k8s.io",
        }
    }
}

/// How many objects or rows a list in JSON has.
///
/// # Errors
/// If it cannot be read, or is no list.
///
/// # Cancel safety
/// Nothing happens but reading.
pub async fn count(target: &Target, form: Form) -> Result<usize> {
    #[derive(Deserialize)]
    struct List {
        #[serde(alias = "rows")]
        items: Vec<IgnoredAny>,
    }
    let body = ask(&target.client().await?, form, "").await?.collect().await?.to_bytes();
    Ok(serde_json::from_slice::<List>(&body)?.items.len())
}

async fn ask(client: &kube::Client, form: Form, version: &str) -> Result<Body> {
    let uri = format!("/api/v1/pods?resourceVersion={version}");
    let request = Request::get(uri).header(ACCEPT, form.accept()).body(Body::empty())?;
    let response = client.send(request).await?;
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let is_protobuf = content_type.is_some_and(|it| it.contains("protobuf"));
    ensure!(
        response.status().is_success() && is_protobuf == (form == Form::Protobuf),
        "{form:?} is answered {} {content_type:?}",
        response.status()
    );
    Ok(response.into_body())
}
