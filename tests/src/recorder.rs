//! What a client asked, seen from its own side: the same on both arms, TLS or not.

use std::sync::{Arc, Mutex, PoisonError};

use http::header::CONTENT_TYPE;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use tokio::time::Instant;

/// The requests of one client, oldest first. A cheap handle.
#[derive(Debug, Clone, Default)]
pub struct Recorder(Arc<Mutex<Vec<Sent>>>);

/// One request.
#[derive(Debug, Clone)]
pub struct Sent {
    /// Its path.
    pub path: String,
    /// Its query, as it was written.
    pub query: String,
    /// Its headers, but for credentials, which are added later.
    pub headers: http::HeaderMap,
    /// When it was sent.
    pub at: Instant,
    /// The HTTP status of its answer; `None` while there is none, or if there never was one.
    pub status: Option<u16>,
    /// The content type of its answer.
    pub content_type: Option<String>,
}

impl Recorder {
    /// A client that asks through `client`, and the recorder of what it asks.
    #[must_use]
    pub fn around(client: Client) -> (Client, Self) {
        let recorder = Self::default();
        let (namespace, log) = (client.default_namespace().to_owned(), recorder.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, log) = (client.clone(), log.clone());
            async move {
                let number = log.sent(&request);
                let answer = client.send(request).await;
                if let Ok(answer) = &answer {
                    log.answered(number, answer);
                }
                answer
            }
        });
        (Client::new(service, namespace), recorder)
    }

    /// Everything so far.
    #[must_use]
    pub fn all(&self) -> Vec<Sent> {
        self.lock().clone()
    }

    /// The watches of a resource (its plural) so far, streaming lists included.
    #[must_use]
    pub fn watches(&self, plural: &str) -> Vec<Sent> {
        let mut all = self.all();
        all.retain(|sent| sent.is_about(plural) && sent.is_watch());
        all
    }

    /// The lists of a resource (its plural) so far, each page for itself.
    #[must_use]
    pub fn lists(&self, plural: &str) -> Vec<Sent> {
        let mut all = self.all();
        all.retain(|sent| sent.is_about(plural) && !sent.is_watch());
        all
    }

    fn sent(&self, request: &Request<Body>) -> usize {
        let mut log = self.lock();
        log.push(Sent {
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
            headers: request.headers().clone(),
            at: Instant::now(),
            status: None,
            content_type: None,
        });
        log.len() - 1
    }

    fn answered(&self, number: usize, answer: &Response<Body>) {
        let content_type = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let sent = &mut self.lock()[number];
        sent.status = Some(answer.status().as_u16());
        sent.content_type = content_type.map(ToOwned::to_owned);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Sent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sent {
    /// The value of a query parameter, empty where it is missing. Not decoded: for numbers and
    /// words.
    #[must_use]
    pub fn parameter(&self, name: &str) -> &str {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(own, _)| *own == name).map(|(_, value)| value).next().unwrap_or_default()
    }

    /// Whether it is a watch.
    #[must_use]
    pub fn is_watch(&self) -> bool {
        self.parameter("watch") == "true"
    }

    /// Whether it is a watch that begins with a list.
    #[must_use]
    pub fn is_streaming_list(&self) -> bool {
        self.parameter("sendInitialEvents") == "true"
    }

    fn is_about(&self, plural: &str) -> bool {
        self.path.rsplit('/').next() == Some(plural)
    }
}
